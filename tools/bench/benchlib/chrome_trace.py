"""Writes a trace that Perfetto (ui.perfetto.dev) and chrome://tracing load: Chrome's JSON event format.

Thread rule: plain values.
"""

import json
from typing import Dict, List, Sequence, Tuple

from .records import Dispatch, Request


def write_trace(path: str, device: str, names: Dict[int, str], dispatches: Sequence[Dispatch],
                requests: Sequence[Request], request_pid: int, instants: Sequence[Tuple[int, str]]) -> None:
    """One track for each hardware queue of each process, one for the requests, and a mark over all tracks for each instant."""
    times = [dispatch.start_ns for dispatch in dispatches] + [request.arrival_ns for request in requests]
    origin = min(times, default=0)

    def us(time_ns: int) -> float:
        return (time_ns - origin) / 1e3

    events: List[dict] = []
    for order, (pid, name) in enumerate(names.items()):
        events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}})
        events.append({"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": order}})
    for pid, queue in sorted({(dispatch.pid, dispatch.queue) for dispatch in dispatches}):
        events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": queue + 1,
                       "args": {"name": f"hardware queue {queue}"}})
    for dispatch in dispatches:
        events.append({"ph": "X", "name": dispatch.name, "cat": dispatch.kind, "pid": dispatch.pid,
                       "tid": dispatch.queue + 1, "ts": us(dispatch.start_ns),
                       "dur": (dispatch.end_ns - dispatch.start_ns) / 1e3,
                       "args": {"waited_us": (dispatch.start_ns - dispatch.arrival_ns) / 1e3}})
    if requests:
        events.append({"ph": "M", "name": "thread_name", "pid": request_pid, "tid": 0, "args": {"name": "requests"}})
    for number, request in enumerate(requests):
        # Asynchronous: requests that wait overlap.
        common = {"name": "request", "cat": "request", "id": number, "pid": request_pid, "tid": 0}
        events.append({**common, "ph": "b", "ts": us(request.arrival_ns),
                       "args": {"latency_ms": request.latency_ms, "service_ms": request.service_ms}})
        events.append({**common, "ph": "e", "ts": us(request.done_ns)})
    for time_ns, text in instants:
        events.append({"ph": "i", "s": "g", "name": text, "pid": request_pid, "tid": 0, "ts": us(time_ns)})
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"displayTimeUnit": "ms", "otherData": {"device": device}, "traceEvents": events}, file,
                  separators=(",", ":"))
