"""This process's hints (priority, weight, deadline, group), and holds of its own work.

Thread rule: any thread. Of several `with` blocks at once, in whatever threads, the one entered last counts.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Callable, Optional, Union

from . import _library
from ._library import ALL_DEVICES, MAX_DEVICES, PRIORITY_NONE, Result, call
from ._stream import PROCESS, Stream, handle_of

LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100
HIGHEST_WEIGHT = 10_000
LONGEST_US = 3_600_000_000


class _Unset:
    def __repr__(self) -> str:
        return "<unchanged>"


_UNSET = _Unset()


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be a whole number, not {value!r}")
    return int(value.__index__())


def _priority(value: Optional[int]) -> int:
    if value is None:
        return PRIORITY_NONE
    number = _whole(value, "priority")
    if not LOWEST_PRIORITY <= number <= HIGHEST_PRIORITY:
        raise ValueError(f"priority {number} is out of range; give {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}")
    return number


def _weight(value: Optional[int]) -> int:
    if value is None:
        return 0
    number = _whole(value, "weight")
    if not 1 <= number <= HIGHEST_WEIGHT:
        raise ValueError(f"weight {number} is out of range; give 1 to {HIGHEST_WEIGHT}")
    return number


def _microseconds(value: float, scale: float, what: str) -> int:
    us = round(float(value) * scale)
    if not 1 <= us <= LONGEST_US:
        raise ValueError(f"{what} {value} is out of range; give 1 us to an hour")
    return us


def _deadline(value: Optional[float]) -> int:
    return 0 if value is None else _microseconds(value, 1e3, "deadline_ms")


def _worst(results: list[Result]) -> Result:
    return next((result for result in results if not result), Result.OK)


def hint(
    stream: Stream = PROCESS,
    *,
    priority: Union[int, None, _Unset] = _UNSET,
    weight: Union[int, None, _Unset] = _UNSET,
    deadline_ms: Union[float, None, _Unset] = _UNSET,
) -> Result:
    """Gives a hint for a stream or, without one, for the whole process. None removes a hint.

    `stream`: a number, None (the default stream), or an object with `.cuda_stream`. A stream must exist, and its hints end
    with it. The process asks for the highest priority and weight among its own and its streams' hints; a deadline is the
    stream's own. Returns OK only if all hints reached the daemon.
    """
    given: list[tuple[str, int]] = []
    if not isinstance(priority, _Unset):
        given.append(("priority", _priority(priority)))
    if not isinstance(weight, _Unset):
        given.append(("weight", _weight(weight)))
    if not isinstance(deadline_ms, _Unset):
        given.append(("deadline", _deadline(deadline_ms)))
    if not given:
        raise TypeError("hint() needs at least one of priority, weight and deadline_ms")
    if stream is PROCESS:
        return _worst([call(f"xschedd_set_{what}", value) for what, value in given])
    handle = handle_of(stream)
    return _worst([call(f"xschedd_set_stream_{what}", handle, value) for what, value in given])


class _Blocks:
    """The open `with` blocks of one kind: the value of the one entered last applies; after all, the value from before."""

    def __init__(self, apply: Callable[[Any], Result], read: Callable[[], Any]) -> None:
        self._lock = threading.Lock()
        self._open: list[tuple[object, Any]] = []
        self._before: Any = None
        self._apply = apply
        self._read = read

    def enter(self, key: object, value: Any) -> Result:
        with self._lock:
            if not self._open:
                self._before = self._read()
            self._open.append((key, value))
            return self._apply(value)

    def leave(self, key: object) -> None:
        with self._lock:
            was_last = self._open[-1][0] is key
            self._open = [entry for entry in self._open if entry[0] is not key]
            if was_last:
                self._apply(self._open[-1][1] if self._open else self._before)


class _Block(contextlib.ContextDecorator):
    """A value that applies during a `with` block or, as a decorator, during a function's calls. `result`: of the hint."""

    def __init__(self, blocks: _Blocks, value: Any) -> None:
        self._blocks = blocks
        self._value = value
        self._keys: list[object] = []  # a block may be entered again inside itself, such as a recursive function's
        self.result: Optional[Result] = None

    def _recreate_cm(self) -> _Block:
        return _Block(self._blocks, self._value)

    def __enter__(self) -> _Block:
        key = object()
        self.result = self._blocks.enter(key, self._value)
        self._keys.append(key)
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._blocks.leave(self._keys.pop())


_priorities = _Blocks(lambda value: hint(priority=value), lambda: _library.status().priority_hint)
_weights = _Blocks(lambda value: hint(weight=value), lambda: _library.status().weight_hint)
_deadlines = _Blocks(lambda value: hint(deadline_ms=value), lambda: _library.status().deadline_ms)


def priority(value: int) -> _Block:
    """`with xschedd.priority(20): ...`, or as a decorator: the process asks for this priority meanwhile, -100 to 100."""
    _priority(value)
    return _Block(_priorities, value)


def weight(value: int) -> _Block:
    """`with xschedd.weight(300): ...`: its share among those of its priority meanwhile, 1 to 10000."""
    _weight(value)
    return _Block(_weights, value)


def deadline(ms: float) -> _Block:
    """`with xschedd.deadline(16.6): ...`: bursts of work that begin meanwhile should finish within this many ms."""
    _deadline(ms)
    return _Block(_deadlines, ms)


def group(name: str) -> Result:
    """Processes of one user that name the same group are scheduled as one. Call it before the first GPU work."""
    encoded = name.encode()
    if len(encoded) > 255 or b"\0" in encoded:
        raise ValueError("the name of a group has at most 255 bytes, and no null")
    return call("xschedd_set_group", encoded)


def _device(device: Optional[int]) -> int:
    if device is None:
        return ALL_DEVICES
    number = _whole(device, "device")
    if not 0 <= number < MAX_DEVICES:
        raise ValueError(f"device {number} is out of range; give 0 to {MAX_DEVICES - 1}, or None for all")
    return number


def hold(seconds: float, *, device: Optional[int] = None, stream: Stream = PROCESS) -> Result:
    """From now on, calls that submit GPU work wait until release(), but no longer than `seconds`: all of this process's, or
    those to one device or stream. Works without a daemon. The thread that releases must not submit work itself."""
    us = _microseconds(seconds, 1e6, "seconds")
    if stream is PROCESS:
        return call("xschedd_hold", _device(device), us)
    if device is not None:
        raise TypeError("hold() takes a device or a stream, not both")
    return call("xschedd_hold_stream", handle_of(stream), us)


def release(*, device: Optional[int] = None, stream: Stream = PROCESS) -> Result:
    """Ends a hold; without arguments, every hold of this process."""
    if stream is PROCESS:
        return call("xschedd_release", _device(device))
    if device is not None:
        raise TypeError("release() takes a device or a stream, not both")
    return call("xschedd_release_stream", handle_of(stream))


def schedule_streams(on: bool = True) -> Result:
    """From now on, submissions to a stream wait while a more important stream of this process has work on the same device;
    False ends that. Works without a daemon. A stream's priority is its hint, else the negative of its native priority."""
    return call("xschedd_schedule_streams", int(bool(on)))


@contextlib.contextmanager
def held(seconds: float, *, device: Optional[int] = None, stream: Stream = PROCESS) -> Iterator[Result]:
    """`with xschedd.held(2): ...`: hold() and release() around a block that submits nothing itself."""
    result = hold(seconds, device=device, stream=stream)
    try:
        yield result
    finally:
        release(device=device, stream=stream)
