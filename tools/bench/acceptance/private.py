"""A folder for sockets, logs and a daemon's configuration, which is removed when this process ends, however it ends.

Thread rule: main thread.
"""

import os
import secrets
import shutil
import tempfile
import time
from typing import Optional

PREFIX = "xschedd-acceptance-"  # short: a socket's path may have 107 characters
PATIENCE_S = 60.0


def _guard(path: str, read: int, write: int) -> None:
    """A process of its own session, so that Ctrl-C does not reach it. Waits until its parent has ended."""
    os.setsid()
    os.close(write)
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(quiet, number)
    os.read(read, 1)  # returns when the parent ends: nothing is written
    end = time.monotonic() + PATIENCE_S
    while os.path.isdir(path) and time.monotonic() < end:
        time.sleep(0.5)  # if the parent was killed, its other children are still ending, and may still write here
        shutil.rmtree(path, ignore_errors=True)


class PrivateFolder:
    def __enter__(self) -> str:
        self._path = os.path.join(tempfile.gettempdir(), PREFIX + secrets.token_hex(4))
        read, self._write = os.pipe()
        self._pid = os.fork()  # before the folder is made, so that it always has a guard
        if self._pid == 0:
            try:
                _guard(self._path, read, self._write)
            finally:
                os._exit(0)
        os.close(read)
        os.mkdir(self._path, 0o700)
        return self._path

    def __exit__(self, *_: Optional[object]) -> None:
        shutil.rmtree(self._path, ignore_errors=True)
        os.close(self._write)
        os.waitpid(self._pid, 0)
