"""PyTorch: a product of small matrices on the thread's own stream.

Thread rule: a Work belongs to the thread that made it.
"""

import importlib.util
import struct

from libraries.common import SIZE, Absent, check_product, matrix

VENDOR = ""  # either


def load() -> object:
    if importlib.util.find_spec("torch") is None:
        raise Absent("PyTorch is not installed for this Python")
    import torch
    if not torch.cuda.is_available():
        raise Absent("PyTorch sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch


class Work:
    def __init__(self, library, _gpu, _stream, salt: int):
        self.torch, self.stream = library, library.cuda.Stream()
        self.values = [matrix(salt), matrix(salt + 1)]

    def once(self) -> bytes:
        torch = self.torch
        with torch.cuda.stream(self.stream):
            left, right = (torch.tensor(values, dtype=torch.float32).reshape(SIZE, SIZE).cuda() for values in self.values)
            made = (right @ left).cpu()  # by rows what BLAS does by columns
        data = struct.pack(f"{SIZE * SIZE}f", *made.flatten().tolist())
        check_product(data, *self.values)
        return data
