"""What the programs of libraries share: how a library is found, small data, and the CPU's results.

Thread rule: pure but for `find`, which loads a library.
"""

import ctypes
import glob
import math
import os
import struct
import sys
from typing import List, Sequence

SIZE = 16  # rows and columns of a matrix
COUNT = SIZE * SIZE


class Absent(Exception):
    """It is not installed, or not for this GPU."""


class Wrong(Exception):
    """It computes something else than the CPU."""


def find(names: Sequence[str]) -> ctypes.CDLL:
    """By the loader, in ROCm's folder, or in the folders of Python's packages."""
    folders = ["/opt/rocm/lib", *(folder for path in sys.path for folder in glob.glob(os.path.join(path, "nvidia/*/lib")))]
    for name in names:
        for path in [name, *(os.path.join(folder, name) for folder in folders)]:
            try:
                return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            except OSError:
                pass
    raise Absent(f"no {names[0]}")


def matrix(salt: int) -> List[float]:
    """Small integers: sums of their products are exact in float, in whatever order."""
    return [float((at * 7 + salt * 5) % 9 - 4) for at in range(COUNT)]


def packed(values: Sequence[float]) -> ctypes.Array:
    return (ctypes.c_ubyte * (4 * len(values))).from_buffer_copy(struct.pack(f"{len(values)}f", *values))


def check_product(data: bytes, left: Sequence[float], right: Sequence[float]) -> None:
    """By columns, as BLAS does."""
    expected = [sum(left[row + SIZE * at] * right[at + SIZE * column] for at in range(SIZE))
                for column in range(SIZE) for row in range(SIZE)]
    if list(struct.unpack(f"{COUNT}f", data)) != expected:
        raise Wrong("a product is not the CPU's")


def check_softmax(data: bytes, values: Sequence[float]) -> None:
    """Of each row of SIZE."""
    made = struct.unpack(f"{COUNT}f", data)
    for start in range(0, COUNT, SIZE):
        powers = [math.exp(value) for value in values[start:start + SIZE]]
        if any(abs(made[start + at] - power / sum(powers)) > 1e-5 for at, power in enumerate(powers)):
            raise Wrong("a softmax is not the CPU's")


class Product:
    """Of two matrices, by `multiply`, which queues it to the stream."""

    def __init__(self, gpu, stream, salt: int):
        self.gpu, self.stream = gpu, stream
        self.values = [matrix(salt), matrix(salt + 1)]
        self.kept = [packed(values) for values in self.values]
        self.memory = [gpu.allocate(4 * COUNT) for _ in range(3)]
        self.one, self.zero = ctypes.c_float(1), ctypes.c_float(0)
        for memory, data in zip(self.memory, self.kept):
            gpu.to_device(memory, data, stream)

    def multiply(self) -> None:
        raise NotImplementedError

    def once(self) -> bytes:
        self.multiply()
        data = (ctypes.c_ubyte * (4 * COUNT))()
        self.gpu.to_host(data, self.memory[2], self.stream)
        check_product(bytes(data), *self.values)
        return bytes(data)


class Softmax:
    """`apply` queues it to the stream: of SIZE images with SIZE channels of one pixel."""

    def __init__(self, gpu, stream, salt: int):
        self.gpu, self.stream, self.values = gpu, stream, matrix(salt)
        self.kept = packed(self.values)
        self.memory = [gpu.allocate(4 * COUNT) for _ in range(2)]
        self.one, self.zero = ctypes.c_float(1), ctypes.c_float(0)
        gpu.to_device(self.memory[0], self.kept, stream)

    def apply(self) -> None:
        raise NotImplementedError

    def once(self) -> bytes:
        self.apply()
        data = (ctypes.c_ubyte * (4 * COUNT))()
        self.gpu.to_host(data, self.memory[1], self.stream)
        check_softmax(bytes(data), self.values)
        return bytes(data)
