#!/usr/bin/env python3
"""Runs a program, and all that it starts, as on Linux 4.18: a seccomp filter refuses what later releases added.

usage: old_kernel.py PROGRAM [ARG...]
       XSCHEDD_ON_OLD_KERNEL=PROGRAM old_kernel.py [ARG...]    for tests that start it in place of the daemon

  every system call with a number from 424 on (5.1: pidfd_send_signal; 5.3: pidfd_open; 5.9: close_range)   ENOSYS
  fcntl(F_ADD_SEALS) with F_SEAL_FUTURE_WRITE (5.1)                                                       EINVAL
  getsockopt(SO_PEERPIDFD) (6.5)                                                                          ENOPROTOOPT
  memfd_create with flags of 6.3                                                                          EINVAL

What such a kernel did otherwise is not imitated. x86-64 only.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

LD_NR, LD_ARCH, LD_ARG = 0, 4, 16  # offsets in struct seccomp_data; an argument's lower half
BPF_LD, BPF_JEQ, BPF_JGE, BPF_JSET, BPF_RET = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
AUDIT_ARCH_X86_64 = 0xC000003E
FIRST_LATER_CALL = 424
FCNTL, F_ADD_SEALS, F_SEAL_FUTURE_WRITE = 72, 1033, 0x10
GETSOCKOPT, SOL_SOCKET, SO_PEERPIDFD = 55, 1, 77
MEMFD_CREATE, LATER_MEMFD_FLAGS = 319, 0x18
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def instruction(code, value, if_true=0, if_false=0):
    return struct.pack("HBBI", code, if_true, if_false, value)


def argument(number):
    return instruction(BPF_LD, LD_ARG + 8 * number)


def refuse(error):
    return instruction(BPF_RET, REFUSE | error)


def rule(call, error, *conditions):
    """Refuses `call` if each condition (argument, comparison, value) holds. Ends with the call's number loaded."""
    allow = instruction(BPF_RET, ALLOW)
    body = [*(part for number, compare, value in conditions
              for part in (argument(number), instruction(compare, value, 1, 0), allow)), refuse(error)]
    return [instruction(BPF_JEQ, call, 0, len(body)), *body]


def main(words):
    code = [instruction(BPF_LD, LD_ARCH), instruction(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0), instruction(BPF_RET, ALLOW),
            instruction(BPF_LD, LD_NR), instruction(BPF_JGE, FIRST_LATER_CALL, 0, 1), refuse(errno.ENOSYS),
            *rule(FCNTL, errno.EINVAL, (1, BPF_JEQ, F_ADD_SEALS), (2, BPF_JSET, F_SEAL_FUTURE_WRITE)),
            *rule(GETSOCKOPT, errno.ENOPROTOOPT, (1, BPF_JEQ, SOL_SOCKET), (2, BPF_JEQ, SO_PEERPIDFD)),
            *rule(MEMFD_CREATE, errno.EINVAL, (1, BPF_JSET, LATER_MEMFD_FLAGS)), instruction(BPF_RET, ALLOW)]
    text = b"".join(code)
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(code), text)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)):
        sys.exit(f"old_kernel: prctl: {os.strerror(ctypes.get_errno())}")
    os.execvp(words[0], words)


if __name__ == "__main__":
    if platform.machine() != "x86_64":
        sys.exit("old_kernel: written for x86_64")
    standing_for = os.environ.get("XSCHEDD_ON_OLD_KERNEL")
    main([*([standing_for] if standing_for else []), *sys.argv[1:]])
