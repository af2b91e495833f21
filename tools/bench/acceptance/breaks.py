"""Errors that programs of *harmless* make on purpose, for tests only, and only with the shim.

Thread rule: main thread.
"""

import os
import sys

BROKEN = os.environ.get("XSCHEDD_ACCEPTANCE_BREAK", "") if "xschedd" in os.environ.get("LD_PRELOAD", "") else ""


def leave_xschedd() -> None:
    """If xschedd should be absent: executes the program again, with a shim that does nothing."""
    if BROKEN == "absent" and "XSCHEDD_DISABLE" not in os.environ:
        os.environ["XSCHEDD_DISABLE"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])
