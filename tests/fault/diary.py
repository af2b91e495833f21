"""The diaries of tenants (programs/diary.h) and the boards that the daemon gave them, read from outside.

A diary is a file; a board is found by its name in /proc/PID/maps and read through /proc/PID/mem, whatever the process is
doing, even if it is stopped. Thread rule: values; any thread, one at a time.
"""

import mmap
import os
import re
import struct

CALLS, SPANS = 4096, 65536
_HEAD = struct.Struct("8Q")
_CALL = struct.Struct("4Q")
_SPAN = struct.Struct("2Q")
_CALL_AT, _SPAN_AT = 64, 64 + _CALL.size * CALLS
SIZE = _SPAN_AT + _SPAN.size * SPANS
KINDS = {1: "launch", 2: "copy", 3: "synchronize", 4: "event", 5: "other"}


class Diary:
    def __init__(self, path):
        self.path = path
        with open(path, "w+b") as file:
            file.truncate(SIZE)
            self._map = mmap.mmap(file.fileno(), SIZE)
        self._calls_seen = self._spans_seen = 0

    def _head(self):
        return _HEAD.unpack_from(self._map, 0)

    rounds = property(lambda self: self._head()[0])
    wrong = property(lambda self: self._head()[1])
    in_call_since = property(lambda self: self._head()[2])
    longest_ns = property(lambda self: self._head()[3])
    longest_raw_ns = property(lambda self: self._head()[4])

    def new_calls(self):
        """Long calls since the last read: (start, end, noise, kind)."""
        count = self._head()[5]
        first = max(self._calls_seen, count - CALLS)
        self._calls_seen = count
        return [_CALL.unpack_from(self._map, _CALL_AT + _CALL.size * (n % CALLS)) for n in range(first, count)]

    def new_spans(self):
        """Busy spans that were not returned with an end before; the last may have no end yet (0)."""
        count = self._head()[6]
        found = []
        for n in range(max(self._spans_seen, count - SPANS), count):
            start, end = _SPAN.unpack_from(self._map, _SPAN_AT + _SPAN.size * (n % SPANS))
            found.append((start, end))
            if end:
                self._spans_seen = n + 1
        return found

    def close(self):
        self._map.close()


# common/abi.h
_MAGIC = 0x44425358
_CONTROL, _GATES, _LINE = 128, 192, 64
HELD, TRACKED = 1, 2
_MAPPING = re.compile(r"^([0-9a-f]+)-\S+ \S+ \S+ \S+ (\d+) +/memfd:xschedd-board", re.MULTILINE)


class Board:
    """A snapshot of a board: inode, lease_until_ns and the flags of two slots."""

    def __init__(self, inode, lease_until_ns, flags):
        self.inode, self.lease_until_ns, self.flags = inode, lease_until_ns, flags


def boards(pid):
    """Every board that a process has mapped (a session's memory stays mapped for good)."""
    found = []
    try:
        with open(f"/proc/{pid}/maps") as maps:
            text = maps.read()
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for address, inode in _MAPPING.findall(text):
                page = os.pread(memory.fileno(), _GATES + 2 * _LINE, int(address, 16))
                if len(page) < _GATES + 2 * _LINE or struct.unpack_from("I", page)[0] != _MAGIC:
                    continue
                lease = struct.unpack_from("Q", page, _CONTROL)[0]
                flags = [struct.unpack_from("I", page, _GATES + slot * _LINE)[0] & 3 for slot in (0, 1)]
                found.append(Board(int(inode), lease, flags))
    except (OSError, ValueError):
        pass  # the process has ended, or a thread of it has
    return found
