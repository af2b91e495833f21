"""What a stream argument may be: a number, None for the default stream, or a framework's object that has the number."""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Union

# torch.cuda.Stream has `cuda_stream` (on AMD, too), CuPy's `ptr`, Numba's `handle`.
_ATTRIBUTES = ("cuda_stream", "ptr", "handle")

Stream = Union[None, int, Any]


class _Process:
    """Stands for the whole process, in place of a stream."""

    def __repr__(self) -> str:
        return "the process"


PROCESS = _Process()


def handle_of(stream: Stream) -> Optional[int]:
    """The runtime's handle, for ctypes; None is the default stream."""
    if stream is None:
        return None
    if isinstance(stream, bool):
        raise TypeError("a stream cannot be a bool")
    if isinstance(stream, ctypes.c_void_p):
        return stream.value
    if isinstance(stream, int):
        if not 0 <= stream < 1 << 64:
            raise ValueError(f"{stream} is not a stream")
        return stream
    for attribute in _ATTRIBUTES:
        inner = getattr(stream, attribute, None)
        if inner is not None and inner is not stream:
            return handle_of(inner)
    raise TypeError(f"{type(stream).__name__} is not a stream; give a number, None, or an object with .cuda_stream")
