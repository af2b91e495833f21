"""Dependencies run one way (docs/explanation/design.md): which folder includes which, from the sources in C and C++.

usage: layers_test.py SOURCE_ROOT
"""

import collections
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
PARTS = ("common", "daemon", "client-shim", "tools")
# The lists of entry points are data: the names that messages and tests show come from them.
DATA = re.compile(r"\.(def|inc)$")
# What the sources of a folder may include, besides their own folder; the longest name that fits counts.
MAY_USE = {
    "common": (),
    "daemon": ("common",),
    "daemon/policy": ("common",),
    "daemon/config": ("common", "daemon/policy"),
    "daemon/registry": ("common", "daemon/policy", "daemon/config"),
    "client-shim/core": ("common", "client-shim/include"),
    "client-shim/hip": ("common", "client-shim/core", "client-shim/stub"),
    "client-shim/cuda": ("common", "client-shim/core", "client-shim/stub"),
    "client-shim/stub": ("common", "client-shim/core", "client-shim/hip", "client-shim/cuda", "client-shim/include"),
}


def folder(path):
    return path.rsplit("/", 1)[0]


def includes():
    """(file, included file) of each include in quotes that is named from the root."""
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*")):
            if path.suffix in (".c", ".cc", ".h"):
                at = path.relative_to(ROOT).as_posix()
                for target in re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
                    yield at, target


def within(path, folders):
    return any(path.startswith(one + "/") for one in folders)


class Layers(unittest.TestCase):
    def test_who_uses_whom(self):
        broken, looked_at = [], 0
        for at, target in includes():
            own = max((one for one in MAY_USE if at.startswith(one + "/")), key=len, default=None)
            if own is None or "/" not in target or DATA.search(target):
                continue
            looked_at += 1
            if not within(target, (own, *MAY_USE[own])):
                broken.append(f"{at} includes {target}")
        self.assertEqual(broken, [])
        self.assertGreater(looked_at, 500)

    def test_what_parts_do_without(self):
        grpc = r"grpc|google/protobuf|\.pb\.h"
        forbidden = {"client-shim/hip": grpc, "client-shim/cuda": grpc, "client-shim/core": r"^hip/|^cuda",  # vendors' types
                     "daemon/policy": r"^sys/|^unistd|^fcntl|^time\.h|chrono|stream|spdlog|asio|" + grpc}  # I/O and clocks
        broken = []
        for at, pattern in forbidden.items():
            for path in sorted((ROOT / at).rglob("*")):
                if path.suffix in (".c", ".cc", ".h"):
                    for target in re.findall(r'^#include [<"]([^">]+)', path.read_text(encoding="utf-8"), re.MULTILINE):
                        if re.search(pattern, target):
                            broken.append(f"{path.relative_to(ROOT)} includes {target}")
        self.assertEqual(broken, [])

    def test_the_daemons_folders_form_no_circle(self):
        uses = collections.defaultdict(set)
        for at, target in includes():
            # The files of daemon/ itself are the core, which its folders serve, and the server, which makes them.
            if within(at, ("daemon",)) and within(target, ("daemon",)) and "daemon" not in (folder(at), folder(target)):
                uses[folder(at)].add(folder(target))
        done = {}

        def walk(one, path):
            self.assertNotIn(one, path, " -> ".join((*path, one)))
            if one not in done:
                done[one] = [walk(other, (*path, one)) for other in sorted(uses[one] - {one})]

        for one in sorted(uses):
            walk(one, ())
        self.assertGreater(len(done), 8)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
