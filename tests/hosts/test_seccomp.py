"""Hosts with a seccomp filter, before the client connects and after."""

import errno
import signal
import unittest

import host
from host import wait_for

CALLS = {"socket": 41, "connect": 42, "socketpair": 53, "sendmsg": 46, "recvmsg": 47, "poll": 7, "epoll_create1": 291,
         "epoll_wait": 232, "eventfd2": 290, "close_range": 436, "unshare": 272, "clone3": 435,
         "pidfd_open": 434, "memfd_create": 319}  # x86-64


class Seccomp(host.HostTest):
    def filter(self, action, *calls):
        return {"HOST_ACTION": action, "HOST_CALLS": ",".join(str(CALLS[call]) for call in calls)}

    def test_needed_system_calls_are_refused(self):
        for call in "socket", "epoll_create1", "sendmsg":
            with self.subTest(call):
                self.check_unscheduled(*self.odd("before=filter"), environment=self.filter(errno.EPERM, call),
                                       cause=f"seccomp filter refuses {call}")

    def test_needed_system_calls_do_not_exist(self):
        self.check_unscheduled(*self.odd("before=filter"), environment=self.filter(errno.ENOSYS, "eventfd2"),
                               cause="seccomp filter refuses eventfd2")

    def test_needed_system_calls_end_the_process(self):
        for call in "socket", "connect", "epoll_wait":
            with self.subTest(call):
                self.check_unscheduled(*self.odd("before=filter"), environment=self.filter("kill", call),
                                       cause=f"seccomp filter ends what calls {call}")

    def test_dockers_filter(self):
        """clone3 and pidfd_open do not exist; a thread cannot get its own descriptor table with unshare."""
        self.check_scheduled(*self.odd("first=filter"), environment=self.filter(errno.ENOSYS, "clone3", "pidfd_open"))

    def test_no_descriptor_table_of_its_own(self):
        """Neither close_range nor unshare: gRPC's descriptors are in the host's table, and everything else works as usual."""
        self.check_scheduled(*self.odd("before=filter"), environment=self.filter(errno.EPERM, "close_range", "unshare"))

    def test_a_sandbox_answers_system_calls(self):
        """SIGSYS goes to the program's handler, also from the shim's threads."""
        self.check_scheduled(*self.odd("first=emulate-trapped", "before=filter"),
                             environment=self.filter("trap", "close_range", "unshare"))

    def test_filter_after_connecting_and_the_daemon_restarts(self):
        """The client is connected; a new connection would end the process."""
        node = self.node
        node.start_daemon()
        process = node.start(*self.odd("after=filter"), environment=self.environment(
            HOST_STOP=self.stop_path, **self.filter("kill", "socket", "connect", "socketpair", "memfd_create")))
        self.wait_connected(process, process.pid)
        done = len(node.dispatches(process.pid))
        wait_for(lambda: len(node.dispatches(process.pid)) > done + host.LAUNCHES, "the filter is there, and it works on")
        node.stop_daemon(signal.SIGKILL)
        node.start_daemon()
        done = len(node.dispatches(process.pid))
        wait_for(lambda: process.poll() is not None or len(node.dispatches(process.pid)) > done + 1500, "it works on")
        self.stop()
        err, _ = self.check_end(process)
        self.check_said_once(err, "seccomp filter ends what calls socket")


if __name__ == "__main__":
    unittest.main()
