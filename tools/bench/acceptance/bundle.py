"""The bundle of a report: what `xschedctl support-bundle` writes, the logs of the programs that acceptance started, and the
report. The host's name and the path of the home folder are replaced everywhere.

Thread rule: `cleaner`, `packed` and `compressed` are pure, except for the program zstd; `make` runs on the main thread.
"""

import glob
import io
import os
import re
import shutil
import subprocess
import tarfile
from typing import Callable, Dict, List, Tuple

from benchlib.processes import dies_with_this_process

LIMIT = 4 << 20  # bytes of one part: the end of a longer one is kept


def cleaner(host: str, label: str, home: str) -> Callable[[str], str]:
    """A function that replaces the host's name by `label` and the home folder by ~. If the home folder is /, it is not replaced."""
    replaced: List[Tuple[str, str]] = []
    if host and host != label:
        replaced.append((rf"(?<![\w-]){re.escape(host)}(?![\w-])", label))
    if home.strip("/"):
        replaced.append((rf"{re.escape(home.rstrip('/'))}(?![\w.-])", "~"))

    def clean(text: str) -> str:
        for pattern, by in replaced:
            text = re.sub(pattern, by, text)
        return text

    return clean


def cleaned(value: object, clean: Callable[[str], str]) -> object:
    """A JSON document with every string cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [cleaned(one, clean) for one in value]
    if isinstance(value, dict):
        return {name: cleaned(one, clean) for name, one in value.items()}
    return value


def packed(parts: Dict[str, bytes]) -> bytes:
    """An archive without owners or times."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(parts):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(parts[name]), 0o600
            archive.addfile(entry, io.BytesIO(parts[name]))
    return data.getvalue()


def compressed(data: bytes) -> Tuple[str, bytes]:
    """The end of the file's name, and its bytes: compressed by Python's module (3.14) or the program zstd, else as they are."""
    try:
        from compression import zstd
        return ".tar.zst", zstd.compress(data)
    except ImportError:
        pass
    program = shutil.which("zstd")
    if program:
        done = subprocess.run([program, "-q", "-c"], input=data, capture_output=True, timeout=60, check=False)
        if done.returncode == 0:
            return ".tar.zst", done.stdout
    return ".tar", data


def of_support(path: str) -> Dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {"support/" + one.name: archive.extractfile(one).read() for one in archive.getmembers() if one.isfile()}


def make(folder: str, private: str, support: List[str], environment: Dict[str, str], clean: Callable[[str], str]) -> None:
    """`support`: the command that writes a support bundle to the file that is added to it."""
    path = os.path.join(private, "support.tar")
    done = subprocess.run([*support, path], capture_output=True, text=True, timeout=60, check=False, env=environment,
                          preexec_fn=dies_with_this_process())
    parts = of_support(path) if done.returncode == 0 else {"support/failed": done.stderr.encode()}
    for log in glob.glob(os.path.join(private, "*.log")):
        with open(log, "rb") as file:
            parts["logs/" + os.path.basename(log)] = file.read()[-LIMIT:]
    for name in ("results.json", "report.md"):
        with open(os.path.join(folder, name), "rb") as file:
            parts["report/" + name] = file.read()
    ending, data = compressed(packed({name: clean(part.decode(errors="replace")).encode() for name, part in parts.items()}))
    new = os.path.join(folder, "bundle.new")
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
        for old in glob.glob(os.path.join(folder, "bundle.tar*")):
            os.unlink(old)
        os.replace(new, os.path.join(folder, "bundle" + ending))
    except OSError:
        if os.path.exists(new):
            os.unlink(new)
        raise
