#!/usr/bin/env python3
"""Prints what ELF files need from a system, and fails if they need more than glibc 2.28 (RHEL 8).

usage: needs.py FILE...
"""
from __future__ import annotations

import re
import subprocess
import sys

HIGHEST_GLIBC = (2, 28)
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}


def readelf(option: str, path: str) -> str:
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True).stdout


def libraries(path: str) -> set[str]:
    return set(re.findall(r"NEEDED.*\[(.*)\]", readelf("-d", path)))


def versions(path: str) -> dict[str, tuple[int, ...]]:
    """For each symbol that is required with a version: the version if it is GLIBC's, or (999,) for another library's."""
    found = {}
    for line in readelf("--dyn-syms", path).splitlines():
        asked = re.search(r"UND (\S+)@([A-Z_]+)_(\S+)", line)
        if asked:
            name, library, version = asked.groups()
            found[name] = tuple(map(int, version.split("."))) if library == "GLIBC" else (999,)
    return found


def other_libraries(path: str) -> list[str]:
    return [f"{path} needs {name}: link it statically" for name in sorted(libraries(path) - LIBRARIES)]


def problems(path: str) -> list[str]:
    asked = versions(path)
    highest = max(asked.values(), default=(0,))
    print(f"{path}: glibc {'.'.join(map(str, highest))}; {' '.join(sorted(libraries(path)))}")
    newer = sorted(name for name, version in asked.items() if version > HIGHEST_GLIBC)
    return (other_libraries(path) +
            [f"{path} needs {name} of a newer library: add it to common/old_glibc" for name in newer])


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    found = [problem for path in sys.argv[1:] for problem in problems(path)]
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
