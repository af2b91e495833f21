"""Hints from a Python program to xschedd, the priority daemon for GPUs, and the daemon's clients and events.

    with xschedd.priority(20): ...                 this process is more important meanwhile
    xschedd.hint(stream, deadline_ms=5)            one stream should finish its work within 5 ms
    xschedd.clients(), xschedd.events()            for administrators' scripts (through xschedctl)

Hints never fail: without a daemon, or without the shim in this process, they do nothing, and their `Result` says so. A
number that is out of range raises ValueError, always. Every function may be called from any thread.
"""

from ._control import (
    Benefit,
    Claim,
    Client,
    ClientDevice,
    CtlError,
    Device,
    Event,
    Events,
    MemoryLimit,
    NoDaemonError,
    NotPermittedError,
    Passed,
    Queue,
    clients,
    devices,
    events,
)
from ._hints import deadline, group, held, hint, hold, priority, release, schedule_streams, weight
from ._library import (
    DeviceStatus,
    Result,
    State,
    Status,
    device_status,
    is_scheduled,
    shim_version,
    state,
    status,
)
from ._stream import Stream

__version__ = "0.1.0"

__all__ = [
    "Benefit", "Claim", "Client", "ClientDevice", "CtlError", "Device", "DeviceStatus", "Event", "Events",
    "MemoryLimit", "NoDaemonError", "NotPermittedError", "Passed", "Queue", "Result", "State", "Status", "Stream",
    "clients", "deadline", "device_status", "devices", "events", "group", "held", "hint", "hold", "is_scheduled",
    "priority", "release", "schedule_streams", "shim_version", "state", "status", "weight", "__version__",
]
