"""rocBLAS: a product of small matrices.

Thread rule: a Work belongs to the thread that made it.
"""

import ctypes

from libraries.common import Blas, find

VENDOR = "amd"
LIBRARIES = ("librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so.0", "librocblas.so")


def load() -> ctypes.CDLL:
    return find(LIBRARIES)


class Work(Blas):
    CREATE, SET_STREAM, SGEMM = "rocblas_create_handle", "rocblas_set_stream", "rocblas_sgemm"
    NOT_TRANSPOSED = 111
