"""`python -m xschedd ARG...` runs xschedctl: the one that came with this package, else the one in PATH."""
from __future__ import annotations

import os
import pathlib
import shutil
import sys


def main() -> None:
    inside = pathlib.Path(__file__).parent / "client" / "bin" / "xschedctl"
    program = str(inside) if inside.exists() else shutil.which("xschedctl")
    if program is None:
        sys.exit("python -m xschedd: there is no xschedctl; install the wheel xschedd-client, or xschedd itself")
    os.execv(program, ["xschedctl", *sys.argv[1:]])


if __name__ == "__main__":
    main()
