"""The library's own thread in a client. Thread rule: any thread."""

import pathlib
import re


def wakes(pid: int) -> int:
    """How often it has slept and woken."""
    agent = next(thread for thread in pathlib.Path(f"/proc/{pid}/task").iterdir()
                 if (thread / "comm").read_text().strip() == "xschedd-agent")
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (agent / "status").read_text(), re.MULTILINE).group(1))
