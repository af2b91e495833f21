#!/usr/bin/env python3
"""Runs a program in a unit's sandbox without systemd. Needs root; executes the program in its own process.

usage: sandbox.py UNIT [--capabilities NAMES] PROGRAM [ARG...]

These settings of the unit are applied: SystemCallFilter, SystemCallArchitectures, RestrictAddressFamilies, RestrictNamespaces,
RestrictRealtime, MemoryDenyWriteExecute, CapabilityBoundingSet, NoNewPrivileges, LimitNOFILE, LimitCORE, ProtectSystem
(everything is read-only except the program's --runtime-dir), PrivateNetwork, PrivateIPC. A system call that the
filter refuses kills the program instead of failing with EPERM, so that no refusal is missed. The groups of system calls
are those of `systemd-analyze syscall-filter`. --capabilities: instead of the unit's.
"""

import ctypes
import errno
import os
import pathlib
import platform
import re
import resource
import subprocess
import sys
from typing import Dict, List, Set

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NAMESPACES = 0x00020000, 0x08000000, 0x40000000, 0x7E020080
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY, SYS_MOUNT_SETATTR = -100, 0x8000, 1, 442
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
CAPABILITIES = {"CAP_CHOWN": 0, "CAP_DAC_OVERRIDE": 1, "CAP_DAC_READ_SEARCH": 2, "CAP_KILL": 5, "CAP_SYS_PTRACE": 19}
LAST_CAPABILITY = pathlib.Path("/proc/sys/kernel/cap_last_cap")
ACT_KILL, ACT_ALLOW, ACT_ENOSYS = 0x80000000, 0x7FFF0000, 0x00050000 | errno.ENOSYS
CMP_NE, CMP_MASKED_EQ = 1, 7
PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
AF_UNIX = 1


def settings(unit: pathlib.Path) -> Dict[str, List[str]]:
    """The lines of [Service] in order, by key; a key may occur more than once."""
    found: Dict[str, List[str]] = {}
    section = ""
    for line in unit.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and not line.startswith("#"):
            key, value = line.split("=", 1)
            found.setdefault(key.strip(), []).append(value.strip())
    return found


def groups() -> Dict[str, List[str]]:
    """The system calls of each @group, as systemd lists them."""
    text = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter"], check=True, capture_output=True, text=True,
                          env={**os.environ, "SYSTEMD_COLORS": "0"}).stdout
    found: Dict[str, List[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("@"):
            name = line.strip()
            found[name] = []
        elif line.startswith("    ") and not line.strip().startswith("#"):
            found[name].append(line.strip())
        elif line.startswith("#"):
            name = "rest"  # calls in no group
            found.setdefault(name, [])
    return found


def expand(name: str, known: Dict[str, List[str]]) -> Set[str]:
    if not name.startswith("@"):
        return {name}
    return {call for part in known[name] for call in expand(part, known)}


def allowed_calls(lines: List[str]) -> Set[str]:
    known = groups()
    calls = expand("@default", known)  # systemd allows these with every list of allowed calls
    for line in lines:
        names = set().union(*(expand(name, known) for name in line.lstrip("~").split()))
        calls = calls - names if line.startswith("~") else calls | names
    return calls


def check(result: int, what: str) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"sandbox: {what}: {os.strerror(ctypes.get_errno())}")


def make_namespaces(runtime_dir: str) -> None:
    check(libc.unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC), "unshare")
    check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount /")
    check(libc.mount(runtime_dir.encode(), runtime_dir.encode(), None, MS_BIND, None), "mount the runtime folder")
    read_only = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY, 0, 0, 0)
    check(libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, read_only, ctypes.sizeof(read_only)), "read-only")
    writable = (ctypes.c_uint64 * 4)(0, MOUNT_ATTR_RDONLY, 0, 0)
    check(libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, runtime_dir.encode(), 0, writable, ctypes.sizeof(writable)), "writable")


def limit_capabilities(names: List[str]) -> None:
    keep = {CAPABILITIES[name] for name in names}
    for number in range(LAST_CAPABILITY_NUMBER + 1):
        if number not in keep:
            check(libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0), f"drop capability {number}")


class Compare(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("operation", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


class Filter:
    def __init__(self) -> None:
        self.seccomp = ctypes.CDLL("libseccomp.so.2")
        self.seccomp.seccomp_init.restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.seccomp.seccomp_init(ctypes.c_uint32(ACT_KILL)))

    def number(self, name: str) -> int:
        return self.seccomp.seccomp_syscall_resolve_name(name.encode())

    def allow(self, name: str, *compares: Compare, action: int = ACT_ALLOW) -> None:
        number = self.number(name)
        if number < 0:
            return  # of another architecture
        array = (Compare * max(1, len(compares)))(*compares)
        done = self.seccomp.seccomp_rule_add_array(self.context, ctypes.c_uint32(action), number, len(compares), array)
        if done < 0:
            raise OSError(-done, f"sandbox: seccomp rule of {name}")

    def load(self) -> None:
        done = self.seccomp.seccomp_load(self.context)
        if done < 0:
            raise OSError(-done, "sandbox: seccomp_load")


def has_none(argument: int, bits: int) -> Compare:
    return Compare(argument, CMP_MASKED_EQ, bits, 0)


def make_filter(unit: Dict[str, List[str]]) -> Filter:
    calls = allowed_calls(unit["SystemCallFilter"])
    # Calls that the other settings forbid, as in systemd's own filters.
    conditional = {
        "socket": [[Compare(0, CMP_MASKED_EQ, 0xFFFFFFFF, AF_UNIX)]],
        "clone": [[has_none(0, CLONE_NAMESPACES)]],
        "mprotect": [[has_none(2, PROT_EXEC)]],
        "pkey_mprotect": [[has_none(2, PROT_EXEC)]],
        "mmap": [[has_none(2, PROT_EXEC)], [has_none(2, PROT_WRITE)]],
        "shmat": [[has_none(2, SHM_EXEC)]],
    }
    forbidden = {"unshare", "setns", "sched_setscheduler", "personality", "clone3"}
    result = Filter()
    # Its flags are in memory, where a filter cannot see them: glibc then uses clone.
    result.allow("clone3", action=ACT_ENOSYS)
    for name in sorted(calls - forbidden):
        for rule in conditional.get(name, [[]]):
            result.allow(name, *rule)
    return result


def main(words: List[str]) -> None:
    unit = settings(pathlib.Path(words.pop(0)))
    capabilities = unit["CapabilityBoundingSet"][-1].split()
    if words[0] == "--capabilities":
        capabilities = words[1].split()
        words = words[2:]
    missing = [name for name in ("RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime", "LockPersonality",
                                 "MemoryDenyWriteExecute", "NoNewPrivileges", "PrivateNetwork", "PrivateIPC") if name not in unit]
    if missing or unit["ProtectSystem"] != ["strict"]:
        sys.exit(f"sandbox: the unit no longer says {missing or 'ProtectSystem=strict'}; change this launcher with it")
    for key, kind in (("LimitNOFILE", resource.RLIMIT_NOFILE), ("LimitCORE", resource.RLIMIT_CORE)):
        limit = min(int(unit[key][-1]), resource.getrlimit(kind)[1] % 2**63)
        resource.setrlimit(kind, (limit, limit))
    system_calls = make_filter(unit)
    runtime_dir = words[words.index("--runtime-dir") + 1] if "--runtime-dir" in words else ""
    if os.path.isdir(runtime_dir):
        make_namespaces(runtime_dir)
    limit_capabilities(capabilities)
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    arguments = [os.fsencode(word) for word in words]
    system_calls.load()
    os.execv(arguments[0], arguments)


if __name__ == "__main__":
    if platform.machine() != "x86_64":
        sys.exit("sandbox: written for x86_64")
    LAST_CAPABILITY_NUMBER = int(LAST_CAPABILITY.read_text())
    main(sys.argv[1:])
