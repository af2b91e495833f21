"""What programs of *harmless* do wrong on purpose, for tests only, and only with the shim.

Thread rule: main thread.
"""

import os
import sys

BROKEN = os.environ.get("XSCHEDD_ACCEPTANCE_BREAK", "") if "xschedd" in os.environ.get("LD_PRELOAD", "") else ""


def leave_xschedd() -> None:
    """If it is to be absent: once again from the start, with a shim that does nothing."""
    if BROKEN == "absent" and "XSCHEDD_DISABLE" not in os.environ:
        os.environ["XSCHEDD_DISABLE"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])
