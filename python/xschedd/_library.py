"""The C API (xschedd.h) by ctypes: its functions, as the preloaded shim exports them, and its two structures.

Nothing is loaded: the functions are looked up in this process. Thread rule: any thread.
"""

from __future__ import annotations

import ctypes
import enum
from dataclasses import dataclass
from typing import Any, Callable, Optional

PRIORITY_NONE = 1 << 30
ALL_DEVICES = -1
MAX_DEVICES = 64


class Result(enum.IntEnum):
    """What became of a hint. True if it reached the daemon."""

    OK = 0
    NOT_CONNECTED = -2  # no GPU work yet, no daemon, or refused by it; hints of the process are remembered
    INERT = -3  # this process is not scheduled, for good
    NO_SHIM = -4  # no shim in this process, or one without that function
    TOO_LATE = -5  # group: there has been GPU work already

    __str__ = enum.Enum.__str__

    def __bool__(self) -> bool:
        return self is Result.OK


class State(enum.IntEnum):
    """Whether this process is scheduled."""

    NO_SHIM = -1  # the program was not started by `xschedctl run`, nor with the shim in LD_PRELOAD
    IDLE = 0  # no GPU work yet
    UNSCHEDULED = 1  # no daemon at the moment; the shim tries again
    SCHEDULED = 2  # a session with the daemon
    INERT = 3  # disabled, a child of fork, or the private library is missing

    __str__ = enum.Enum.__str__


@dataclass(frozen=True)
class Status:
    """This process, as its shim sees it. Counts are for tracked work, over all devices."""

    state: State
    client_id: int = 0
    effective_priority: int = 0
    priority_hint: Optional[int] = None
    weight_hint: Optional[int] = None
    deadline_ms: Optional[float] = None
    submitted: int = 0
    completed: int = 0
    passthrough: int = 0
    gpu_time_ns: int = 0
    held_ns: int = 0
    own_held_ns: int = 0
    devices: tuple[int, ...] = ()
    streams_held_ns: int = 0
    schedules_streams: bool = False


@dataclass(frozen=True)
class DeviceStatus:
    """This process on one of its devices."""

    held: bool
    tracked: bool
    in_flight: int
    window_limit: int
    window_us: int
    submitted: int
    completed: int
    gpu_time_ns: int
    held_ns: int
    passthrough: int


_UINT = ctypes.c_uint
_COUNT = ctypes.c_ulonglong


class _Status(ctypes.Structure):
    _fields_ = [
        ("size", _UINT), ("state", ctypes.c_int), ("client_id", _COUNT), ("effective_priority", ctypes.c_int),
        ("submitted", _COUNT), ("held_ns", _COUNT), ("passthrough", _COUNT), ("priority_hint", ctypes.c_int),
        ("weight_hint", _UINT), ("deadline_us", _COUNT), ("completed", _COUNT), ("gpu_time_ns", _COUNT),
        ("own_held_ns", _COUNT), ("devices", _COUNT), ("streams_held_ns", _COUNT), ("schedules_streams", ctypes.c_int),
    ]


class _DeviceStatus(ctypes.Structure):
    _fields_ = [
        ("size", _UINT), ("held", ctypes.c_int), ("tracked", ctypes.c_int), ("in_flight", _UINT),
        ("window_limit", _UINT), ("window_us", _UINT), ("submitted", _COUNT), ("completed", _COUNT),
        ("gpu_time_ns", _COUNT), ("held_ns", _COUNT), ("passthrough", _COUNT),
    ]


_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "xschedd_version": (),
    "xschedd_set_priority": (ctypes.c_int,),
    "xschedd_set_weight": (_UINT,),
    "xschedd_set_deadline": (_COUNT,),
    "xschedd_set_group": (ctypes.c_char_p,),
    "xschedd_set_stream_priority": (ctypes.c_void_p, ctypes.c_int),
    "xschedd_set_stream_weight": (ctypes.c_void_p, _UINT),
    "xschedd_set_stream_deadline": (ctypes.c_void_p, _COUNT),
    "xschedd_hold": (ctypes.c_int, _COUNT),
    "xschedd_release": (ctypes.c_int,),
    "xschedd_hold_stream": (ctypes.c_void_p, _COUNT),
    "xschedd_release_stream": (ctypes.c_void_p,),
    "xschedd_schedule_streams": (ctypes.c_int,),
    "xschedd_get_status": (ctypes.POINTER(_Status),),
    "xschedd_get_device_status": (ctypes.c_int, ctypes.POINTER(_DeviceStatus)),
}

_found: dict[str, Optional[Callable[..., Any]]] = {}


def _find(name: str) -> Optional[Callable[..., Any]]:
    if name not in _found:
        try:
            function = getattr(ctypes.CDLL(None), name)
        except (AttributeError, OSError):  # OSError: a statically linked Python
            function = None
        else:
            function.argtypes = _ARGUMENTS[name]
            function.restype = ctypes.c_char_p if name == "xschedd_version" else ctypes.c_int
        _found[name] = function
    return _found[name]


def call(name: str, *arguments: Any) -> Result:
    """Calls a function of the C API that returns a result. ValueError if the shim refuses an argument."""
    function = _find(name)
    if function is None:
        return Result.NO_SHIM
    answer = int(function(*arguments))
    if answer == -1:
        raise ValueError(f"{name}{arguments}: an argument is out of range")
    try:
        return Result(answer)
    except ValueError:  # a newer shim's
        return Result.NOT_CONNECTED


def shim_version() -> str:
    """The release of the shim in this process; "" without one."""
    function = _find("xschedd_version")
    return str(function().decode()) if function is not None else ""


def status() -> Status:
    """This process, as its shim sees it."""
    raw = _Status(size=ctypes.sizeof(_Status), priority_hint=PRIORITY_NONE)
    if call("xschedd_get_status", ctypes.byref(raw)) is Result.NO_SHIM:
        return Status(State.NO_SHIM)
    return Status(
        state=State(raw.state), client_id=raw.client_id, effective_priority=raw.effective_priority,
        priority_hint=None if raw.priority_hint == PRIORITY_NONE else raw.priority_hint,
        weight_hint=raw.weight_hint or None, deadline_ms=raw.deadline_us / 1000 if raw.deadline_us else None,
        submitted=raw.submitted, completed=raw.completed, passthrough=raw.passthrough, gpu_time_ns=raw.gpu_time_ns,
        held_ns=raw.held_ns, own_held_ns=raw.own_held_ns,
        devices=tuple(device for device in range(MAX_DEVICES) if raw.devices >> device & 1),
        streams_held_ns=raw.streams_held_ns, schedules_streams=bool(raw.schedules_streams))


def state() -> State:
    return status().state


def is_scheduled() -> bool:
    """Whether there is a session with the daemon now."""
    return state() is State.SCHEDULED


def device_status(device: int) -> Optional[DeviceStatus]:
    """This process on one of its devices, by the process's own ordinal (torch's). None without a session."""
    if not 0 <= device < MAX_DEVICES:
        raise ValueError(f"device {device} is out of range; give 0 to {MAX_DEVICES - 1}")
    raw = _DeviceStatus(size=ctypes.sizeof(_DeviceStatus))
    if not call("xschedd_get_device_status", device, ctypes.byref(raw)):
        return None
    return DeviceStatus(
        held=bool(raw.held), tracked=bool(raw.tracked), in_flight=raw.in_flight, window_limit=raw.window_limit,
        window_us=raw.window_us, submitted=raw.submitted, completed=raw.completed, gpu_time_ns=raw.gpu_time_ns,
        held_ns=raw.held_ns, passthrough=raw.passthrough)
