#!/usr/bin/env python3
"""A client's identity is what the kernel reports at connect time, whatever happens later to process, pid, namespaces and socket.
Usage: identity_test.py XSCHEDD XSCHEDCTL RIGHTS_CALL SCRIPTED_CLIENT [TEST]
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from typing import List

import rights_world
from rights_world import (ALICE, BOB, FAILED_PRECONDITION, GPU, NOT_FOUND, NOT_VISIBLE, OK, PERMISSION_DENIED, WELCOME,
                          Client, WithDaemon, needs, needs_root, wait_for)

# A process that connects, passes the socket over standard input (a socket pair) and waits.
CONNECTOR = textwrap.dedent("""
    import os, signal, socket, sys
    path, uid = sys.argv[1], int(sys.argv[2])
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    socket.send_fds(socket.socket(fileno=0), [b"x"], [connection.fileno()])
    connection.close()
    signal.pause()
""")


class Handed:
    """A connected socket and the process that connected it."""

    def __init__(self, path: str, uid: int) -> None:
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen([sys.executable, "-c", CONNECTOR, path, str(uid)], stdin=theirs)
        theirs.close()
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        ours.close()
        self.fd = descriptors[0]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@needs_root
class PassedOn(WithDaemon):
    def handed(self, uid: int) -> Handed:
        handed = Handed(os.path.join(self.folder, "client.sock"), uid)
        self.addCleanup(handed.end)
        return handed

    def on(self, handed: Handed, **popen) -> Client:
        client = self.client(where=f"fd:{handed.fd}", pass_fds=[handed.fd], **popen)
        os.close(handed.fd)
        self.assertTrue(client.is_welcome, client.first)
        return client

    def test_a_socket_that_is_passed_on_still_belongs_to_the_process_that_connected(self) -> None:
        handed = self.handed(ALICE)
        speaker = self.on(handed)  # root uses the socket
        self.assertEqual([(client["pid"], client["uid"], client["gid"]) for client in self.clients()],
                         [(handed.process.pid, ALICE, ALICE)])
        for pid, uid, status in ((handed.process.pid, ALICE, OK), (speaker.pid, 0, NOT_FOUND)):
            self.assertEqual(self.call("Set", f"selector {{ pid: {pid} }} priority: 4", uid=uid).status, status)

    def test_the_client_ends_with_the_process_that_connected_although_others_hold_the_socket(self) -> None:
        handed = self.handed(ALICE)
        self.on(handed)
        self.assertEqual(self.pids(), [handed.process.pid])
        handed.end()
        wait_for(lambda: not self.pids(), "the end of the client")

    def test_a_socket_passed_to_another_user_gives_that_user_no_rights(self) -> None:
        handed = self.handed(ALICE)
        self.on(handed, uid=BOB)
        for uid, status in ((ALICE, OK), (BOB, PERMISSION_DENIED)):
            self.assertEqual(self.call("Hold", f"selector {{ pid: {handed.process.pid} }}", uid=uid).status, status)

    def test_another_connections_token_is_refused(self) -> None:
        victim = self.client(uid=ALICE)
        thief = self.client("token=0123456789abcdef", uid=BOB)
        self.assertIn("another token", thief.first)
        self.assertEqual(self.pids(), [victim.pid])


@needs_root
class Changing(WithDaemon):
    def started(self, program: str, before: str = "") -> Client:
        """A client that Python code starts: it connects as `connection`, and then executes sys.argv[1]."""
        code = (f"import os, socket, sys\n{before}\nconnection = socket.socket(socket.AF_UNIX)\n"
                f"connection.connect({os.path.join(self.folder, 'client.sock')!r})\n"
                "connection.set_inheritable(True)\n" + textwrap.dedent(program) +
                "\nos.execv(sys.argv[1], [sys.argv[1], f'fd:{connection.fileno()}'])\n")
        client = Client("unused", prefix=[sys.executable, "-c", code])
        self.addCleanup(client.end)
        return client

    DROP = f"os.setgroups([]); os.setgid({ALICE}); os.setuid({ALICE})"

    def setUp(self) -> None:
        super().setUp()
        self.real = rights_world.CLIENT
        self.addCleanup(setattr, rights_world, "CLIENT", self.real)

    def test_setuid_after_connect_changes_nothing(self) -> None:
        client = self.started(self.DROP)
        self.assertTrue(client.is_welcome, client.first)
        with open(f"/proc/{client.pid}/status", encoding="utf-8") as file:
            self.assertIn(f"Uid:\t{ALICE}\t", file.read())
        self.assertEqual(self.one(client.pid)["uid"], 0)
        selector = f"selector {{ pid: {client.pid} }}"
        self.assertEqual(self.call("Hold", selector, uid=ALICE).status, PERMISSION_DENIED)
        self.assertEqual(self.call("Hold", selector, uid=0).status, OK)

    def test_a_setuid_program_acts_as_the_user_who_connected(self) -> None:
        rights_world.CLIENT = os.path.join(self.folder, "setuid_client")
        shutil.copy(self.real, rights_world.CLIENT)
        os.chmod(rights_world.CLIENT, 0o4755)
        client = self.started("", before=self.DROP)
        self.assertTrue(client.is_welcome, client.first)
        with open(f"/proc/{client.pid}/status", encoding="utf-8") as file:
            if f"Uid:\t{ALICE}\t0\t" not in file.read():
                self.skipTest("set-uid programs mean nothing in this folder (nosuid): not tested")
        self.assertEqual(self.one(client.pid)["uid"], ALICE)

    def test_a_forked_child_does_not_keep_its_parents_client(self) -> None:
        # The child uses the parent's socket, and stays alive.
        client = self.started("if os.fork(): os.wait()")
        self.assertTrue(client.is_welcome, client.first)
        self.assertEqual(self.pids(), [client.pid])
        client.process.kill()
        client.process.wait()
        wait_for(lambda: not self.pids(), "the end of the client")

    def test_a_call_after_the_client_is_gone(self) -> None:
        client = self.client(uid=ALICE)
        client.end()
        wait_for(lambda: not self.pids(), "the end of the client")
        self.assertEqual(self.call("Set", f"selector {{ pid: {client.pid} }} priority: 1", uid=ALICE).status, NOT_FOUND)
        # A client that has used a device is remembered, for its own user alone.
        second = self.client(uid=ALICE)
        second.tell("device " + GPU)
        wait_for(lambda: "pci_address" in self.call("ListClients", on="admin").answers[0], "the client's device")
        second.end()
        wait_for(lambda: not self.pids(), "the end of the client")
        self.assertEqual(self.call("Explain", f"pid: {second.pid}", uid=BOB).status, PERMISSION_DENIED)
        self.assertEqual(self.call("Explain", f"pid: {second.pid}", uid=ALICE).status, OK)


# Prefixes of commands for the tests below.
PIDS_INSIDE = ["unshare", "--pid", "--fork", "--kill-child"]
PIDS_AND_PROC_INSIDE = [*PIDS_INSIDE, "--mount-proc"]
ROOT_INSIDE = ["unshare", "--user", "--map-root-user"]


@needs(PIDS_INSIDE)
class PidNamespaces(WithDaemon):
    def test_a_client_below_is_shown_with_the_daemons_pid(self) -> None:
        client = Client(self.folder, prefix=PIDS_INSIDE)
        self.addCleanup(client.end)
        self.assertTrue(client.is_welcome, client.first)
        with open(f"/proc/{client.pid}/task/{client.pid}/children", encoding="ascii") as file:
            self.assertEqual(self.pids(), [int(file.read())])


@needs(PIDS_AND_PROC_INSIDE)
class DaemonInPidNamespace(WithDaemon):
    PREFIX = PIDS_AND_PROC_INSIDE

    def test_a_process_that_the_daemon_cannot_see_is_refused_with_that_reason(self) -> None:
        self.assertEqual(self.preamble(), NOT_VISIBLE)
        answer = self.call("ListClients", uid=ALICE)
        self.assertEqual(answer.status, FAILED_PRECONDITION)
        self.assertIn("run xschedd in the host's", answer.text)
        self.assertEqual(self.pids(), [])  # an administrator is admitted, because the mode of admin.sock decides
        self.logged("outside its pid namespace")
        self.assertIsNone(self.daemon.poll())


@needs(PIDS_AND_PROC_INSIDE)
class PidReuse(WithDaemon):
    """All processes, with the daemon, in one new pid namespace, in which the next pid can be chosen."""

    INSIDE = "XSCHEDD_TEST_INSIDE"

    def setUp(self) -> None:
        if self.INSIDE in os.environ:
            super().setUp()

    def inside(self) -> bool:
        if self.INSIDE in os.environ:
            return True
        name = self.id().replace("__main__.", "")
        done = subprocess.run([*PIDS_AND_PROC_INSIDE, sys.executable, __file__,
                               *sys.argv[1:5], name], env={**os.environ, self.INSIDE: "1"}, capture_output=True,
                              text=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("skipped", done.stderr)
        return False

    def take_pid(self, pid: int, words: List[str]) -> "subprocess.Popen[bytes]":
        for _ in range(50):
            with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
                file.write(str(pid - 1))
            process = subprocess.Popen(words)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            if process.pid == pid:
                return process
        raise AssertionError("the pid was not reused")

    def test_a_reused_pid_is_not_the_old_client(self) -> None:
        if not self.inside():
            return
        client = self.client("hint=5", uid=ALICE)
        self.assertEqual(self.pids(), [client.pid])
        client.end()
        stranger = self.take_pid(client.pid, ["sleep", "1000"])
        wait_for(lambda: not self.pids(), "the end of the client")
        answer = self.call("Set", f"selector {{ pid: {stranger.pid} }} priority: 1", uid=ALICE)
        self.assertEqual(answer.status, NOT_FOUND)

    def test_a_process_that_connects_and_ends_before_it_is_accepted(self) -> None:
        if not self.inside():
            return
        hello = self.layout()
        self.daemon.send_signal(signal.SIGSTOP)
        # Another process keeps the socket, so that only the pidfd shows the end.
        handed = Handed(os.path.join(self.folder, "client.sock"), ALICE)
        pid = handed.process.pid
        with socket.socket(fileno=handed.fd) as kept:
            kept.sendall(hello)
            handed.end()
            stranger = self.take_pid(pid, ["sleep", "1000"])
            self.daemon.send_signal(signal.SIGCONT)
            kept.settimeout(30)
            # No answer, or a welcome that the end follows at once: never a session.
            with contextlib.suppress(ConnectionResetError):
                while kept.recv(64):
                    pass
        self.assertEqual(self.pids(), [])
        self.assertIsNone(stranger.poll())


@needs(ROOT_INSIDE, uid=ALICE)
class UserNamespaces(WithDaemon):
    def test_root_of_a_user_namespace_is_the_user_outside(self) -> None:
        own, others = self.client(uid=ALICE).pid, self.client().pid
        inside = Client(self.folder, uid=ALICE, prefix=ROOT_INSIDE)
        self.addCleanup(inside.end)
        self.assertTrue(inside.is_welcome, inside.first)
        self.assertEqual(self.one(inside.pid)["uid"], ALICE)
        shown = self.ctl("ps", "--json", uid=ALICE, prefix=ROOT_INSIDE)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertEqual(sorted(client["pid"] for client in json.loads(shown.stdout)["clients"]),
                         sorted([own, inside.pid]))
        refused = self.ctl("set", "--priority", "9", "--pid", str(others), uid=ALICE, prefix=ROOT_INSIDE)
        self.assertEqual(refused.returncode, 4, refused.stderr)
        self.assertNotEqual(self.call("GetStats", uid=ALICE, on="admin", prefix=ROOT_INSIDE).connect_error, 0)


@needs(ROOT_INSIDE)
class DaemonInUserNamespace(WithDaemon):
    PREFIX = ROOT_INSIDE

    def test_users_that_it_cannot_distinguish_manage_nothing(self) -> None:
        # ALICE and BOB have the same unmapped uid there.
        victim = self.client(uid=BOB)
        self.assertTrue(victim.is_welcome, victim.first)
        for uid in (ALICE, BOB):
            answer = self.call("Hold", f"selector {{ pid: {victim.pid} }}", uid=uid)
            self.assertEqual(answer.status, PERMISSION_DENIED, answer.text)
            self.assertIn("may stand for several users", answer.text)
        self.assertEqual(self.call("GetPolicy", uid=ALICE).status, OK)


@needs_root
class Preamble(WithDaemon):
    def test_the_preamble_of_these_tests_is_valid(self) -> None:
        self.assertEqual(self.preamble(), WELCOME)


if __name__ == "__main__":
    rights_world.main()
