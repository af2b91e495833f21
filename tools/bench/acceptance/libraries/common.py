"""Shared by the programs of libraries: finding a library, small data, and the CPU's results.

Thread rule: pure, except for `find`, which loads a library.
"""

import ctypes
import glob
import math
import os
import struct
import sys
from typing import List, Optional, Sequence

from probe import call

SIZE = 16  # rows and columns of a matrix
COUNT = SIZE * SIZE


class Absent(Exception):
    """The library is not installed, or not for this GPU."""


class Wrong(Exception):
    """The library's result differs from the CPU's."""


def find(names: Sequence[str]) -> ctypes.CDLL:
    """Finds a library through the loader, in ROCm's folder, or in the folders of Python's packages."""
    folders = ["/opt/rocm/lib", *(folder for path in sys.path for folder in glob.glob(os.path.join(path, "nvidia/*/lib")))]
    for name in names:
        for path in [name, *(os.path.join(folder, name) for folder in folders)]:
            try:
                return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            except OSError:
                pass
    raise Absent(f"no {names[0]}")


def matrix(salt: int) -> List[float]:
    """Small integers: sums of their products are exact in float, in any order."""
    return [float((at * 7 + salt * 5) % 9 - 4) for at in range(COUNT)]


def packed(values: Sequence[float]) -> ctypes.Array:
    return (ctypes.c_ubyte * (4 * len(values))).from_buffer_copy(struct.pack(f"{len(values)}f", *values))


def check_product(data: bytes, left: Sequence[float], right: Sequence[float]) -> None:
    """Checks a product whose matrices are stored by columns, as in BLAS."""
    expected = [sum(left[row + SIZE * at] * right[at + SIZE * column] for at in range(SIZE))
                for column in range(SIZE) for row in range(SIZE)]
    if list(struct.unpack(f"{COUNT}f", data)) != expected:
        raise Wrong("a product differs from the CPU's")


def check_softmax(data: bytes, values: Sequence[float]) -> None:
    """Checks the softmax of each row of SIZE."""
    made = struct.unpack(f"{COUNT}f", data)
    for start in range(0, COUNT, SIZE):
        powers = [math.exp(value) for value in values[start:start + SIZE]]
        if any(abs(made[start + at] - power / sum(powers)) > 1e-5 for at, power in enumerate(powers)):
            raise Wrong("a softmax differs from the CPU's")


class Computation:
    """A computation with matrices, which are on the GPU in front of the memory for the result. `compute` queues it."""

    def __init__(self, gpu, stream, values: List[List[float]]):
        self.gpu, self.stream, self.values = gpu, stream, values
        self.kept = [packed(each) for each in values]
        self.memory = [gpu.allocate(4 * COUNT) for _ in range(len(values) + 1)]
        self.one, self.zero = ctypes.c_float(1), ctypes.c_float(0)
        for memory, data in zip(self.memory, self.kept):
            gpu.to_device(memory, data, stream)

    def compute(self) -> None:
        raise NotImplementedError

    def check(self, data: bytes) -> None:
        raise NotImplementedError

    def once(self) -> bytes:
        self.compute()
        data = (ctypes.c_ubyte * (4 * COUNT))()
        self.gpu.to_host(data, self.memory[-1], self.stream)
        self.check(bytes(data))
        return bytes(data)


class Product(Computation):
    """A product of two matrices."""

    def __init__(self, gpu, stream, salt: int):
        super().__init__(gpu, stream, [matrix(salt), matrix(salt + 1)])

    def check(self, data: bytes) -> None:
        check_product(data, *self.values)


class Blas(Product):
    """A product by cuBLAS or rocBLAS, whose functions have the same names except for these."""

    CREATE, SET_STREAM, SGEMM, NOT_TRANSPOSED = "", "", "", 0

    def __init__(self, library: ctypes.CDLL, gpu, stream, salt: int):
        super().__init__(gpu, stream, salt)
        self.library, self.handle = library, ctypes.c_void_p()
        call(library, self.CREATE, ctypes.byref(self.handle))
        call(library, self.SET_STREAM, self.handle, stream)

    def compute(self) -> None:
        call(self.library, self.SGEMM, self.handle, self.NOT_TRANSPOSED, self.NOT_TRANSPOSED, SIZE, SIZE, SIZE, ctypes.byref(self.one),
             self.memory[0], SIZE, self.memory[1], SIZE, ctypes.byref(self.zero), self.memory[2], SIZE)


class BlasLt(Product):
    """A product by cublasLt..., or by hipblasLt..., which has the same functions and needs an algorithm."""

    PREFIX, COMPUTE_32F = "", 0
    REAL_32F = 0

    def __init__(self, library: ctypes.CDLL, gpu, stream, salt: int):
        super().__init__(gpu, stream, salt)
        self.library, self.handle, self.what, self.layout = library, ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("Create", ctypes.byref(self.handle))
        self.call("MatmulDescCreate", ctypes.byref(self.what), self.COMPUTE_32F, self.REAL_32F)
        self.call("MatrixLayoutCreate", ctypes.byref(self.layout), self.REAL_32F, ctypes.c_uint64(SIZE), ctypes.c_uint64(SIZE),
                  ctypes.c_int64(SIZE))
        self.algorithm = self.choose()

    def call(self, name: str, *arguments) -> None:
        call(self.library, self.PREFIX + name, *arguments)

    def choose(self) -> Optional[ctypes.Array]:
        """None: the library chooses."""
        return None

    def compute(self) -> None:
        self.call("Matmul", self.handle, self.what, ctypes.byref(self.one), self.memory[0], self.layout, self.memory[1], self.layout,
                  ctypes.byref(self.zero), self.memory[2], self.layout, self.memory[2], self.layout, self.algorithm, None,
                  ctypes.c_size_t(0), self.stream)


class Softmax(Computation):
    """A softmax of SIZE images with SIZE channels of one pixel."""

    def __init__(self, gpu, stream, salt: int):
        super().__init__(gpu, stream, [matrix(salt)])

    def check(self, data: bytes) -> None:
        check_softmax(data, self.values[0])
