"""Where the daemon looks for cgroups (daemon/registry/cgroups.h), for programs that make some.

Thread rule: any thread.
"""

import pathlib
from typing import Optional


def hierarchy() -> Optional[pathlib.Path]:
    """systemd's own where there are hierarchies of version 1, else the unified one; None: neither is mounted."""
    for path in ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        root = pathlib.Path(path)
        if (root / "cgroup.procs").exists():  # /sys/fs/cgroup has it only where it is the hierarchy itself
            return root
    return None
