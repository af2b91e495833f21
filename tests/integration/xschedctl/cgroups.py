"""Real cgroups of the hierarchy that the daemon uses (tools/bench/benchlib/cgroups.py), for tests that may make them. Thread
rule: main thread."""

import os
import pathlib
import signal
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "tools/bench"))
from benchlib import cgroups  # noqa: E402


def find_root():
    """The folder in which they can be made; None: this machine does not allow it."""
    root = cgroups.hierarchy()
    if root is None:
        return None
    try:
        os.rmdir(tempfile.mkdtemp(prefix="xschedd-test-", dir=root))
    except OSError:
        return None
    return root


ROOT = find_root()
WHY_NOT = "no cgroup can be made here"


class Cgroup:
    """`path`: as in /proc/PID/cgroup."""

    def __init__(self, folder):
        self.folder = folder
        self.path = "/" + str(folder.relative_to(ROOT))

    def make(self):
        self.folder.mkdir()

    def below(self, name):
        inner = Cgroup(self.folder / name)
        inner.make()
        return inner

    def remove(self):
        """Removes it and the cgroups below it, and ends the processes in them."""
        for folder in sorted(self.folder.rglob("*/"), reverse=True) + [self.folder]:
            end = time.monotonic() + 30
            while folder.is_dir():
                for pid in (folder / "cgroup.procs").read_text().split():
                    try:
                        os.kill(int(pid), signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                try:
                    folder.rmdir()
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.02)


def make(test):
    """A cgroup for this test."""
    cgroup = Cgroup(pathlib.Path(tempfile.mkdtemp(prefix="xschedd-test-", dir=ROOT)))
    test.addCleanup(cgroup.remove)
    return cgroup
