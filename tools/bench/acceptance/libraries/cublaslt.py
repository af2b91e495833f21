"""cuBLASLt: a product of small matrices.

Thread rule: a Work belongs to the thread that made it.
"""

import ctypes

from libraries.common import BlasLt, find

VENDOR = "nvidia"
LIBRARIES = ("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so")


def load() -> ctypes.CDLL:
    return find(LIBRARIES)


class Work(BlasLt):
    PREFIX, COMPUTE_32F = "cublasLt", 68
