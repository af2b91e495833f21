"""cuBLAS: a product of small matrices.

Thread rule: a Work belongs to the thread that made it.
"""

import ctypes

from libraries.common import Blas, find

VENDOR = "nvidia"
LIBRARIES = ("libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so")


def load() -> ctypes.CDLL:
    return find(LIBRARIES)


class Work(Blas):
    CREATE, SET_STREAM, SGEMM = "cublasCreate_v2", "cublasSetStream_v2", "cublasSgemm_v2"
    NOT_TRANSPOSED = 0
