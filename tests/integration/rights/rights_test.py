#!/usr/bin/env python3
"""Permissions: every call of Admin, on both sockets, for own and others' clients, compared with the table in
docs/explanation/security-model.md; settings of users and administrators together; xschedctl for users.
Usage: rights_test.py XSCHEDD XSCHEDCTL RIGHTS_CALL SCRIPTED_CLIENT [TEST]
"""

import contextlib
import errno
import grp
import json
import os
import re
import stat
import subprocess
import tempfile
from typing import Dict, List

import rights_world
from rights_world import (ALICE, BOB, GPU, INVALID_ARGUMENT, NOT_FOUND, OK, PERMISSION_DENIED, WithDaemon, needs_root,
                          wait_for)

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "explanation", "security-model.md")

# A request about one client; any valid one for a call that concerns no client.
REQUESTS = {
    "GetVersion": "", "GetCeiling": "", "GetPolicy": "", "GetStats": "", "GetMetrics": "", "Reload": "", "Drain": "", "Disable": "", "Enable": "",
    "ListClients": "selector { pid: %d }",
    "Set": "selector { pid: %d } priority: 3",
    "Hold": "selector { pid: %d } dry_run: true",
    "Release": "selector { pid: %d } dry_run: true",
    "SetPolicy": "dry_run: true linger_us: 300",
    "WatchEvents": "replay: true",
    "Explain": "pid: %d",
    "PutClaim": "claim { name: \"a\" cgroup: \"/no/such/cgroup\" }", "DeleteClaim": "name: \"a\"", "ListClaims": "",
    "ReportClaims": "",
}
# The answers to these requests if the caller has the right.
ANSWERS = {"PutClaim": INVALID_ARGUMENT, "DeleteClaim": NOT_FOUND}


def documented() -> Dict[str, List[str]]:
    """The columns of the table's rows, by call."""
    with open(DOCS, encoding="utf-8") as file:
        section = file.read().split("## Who may do what", 1)[1].split("\n## ", 1)[0]
    rows = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 6 and cells[0].startswith("`"):
            rows[cells[0].strip("`")] = cells[1:5]
    return rows


# A group that every system has, instead of xschedd-readers.
READERS, READER = grp.getgrnam("daemon"), 61237


@needs_root
class Table(WithDaemon):
    CONFIG = f'[access]\nreaders = "{READERS.gr_name}"\n'

    def verdict(self, method: str, pid: int, on: str, uid: int) -> str:
        request = REQUESTS.get(method, "")
        groups = [READERS.gr_gid] if uid == READER else None
        answer = self.call(method, request % pid if "%d" in request else request, uid=uid, on=on, count=2, also_in=groups)
        if answer.status == PERMISSION_DENIED:
            self.assertIn(";", answer.text, "a refusal without a remedy")
            return "refused"
        # A stream continues until it is ended here.
        self.assertIn(answer.status, (ANSWERS.get(method, OK), 1), f"{method}: {answer.text}")
        shown = re.findall(r"\bpid:? (\d+)", " ".join(answer.answers))
        return "yes" if str(pid) in shown or "%d" not in request and method != "WatchEvents" else "not shown"

    def test_every_call_is_as_the_table_says(self) -> None:
        own, others = self.client(uid=ALICE), self.client(uid=BOB)
        methods = subprocess.run([rights_world.CALL, "--methods"], capture_output=True, text=True,
                                 check=True).stdout.split()
        table = documented()
        self.assertEqual(sorted(table), sorted(methods), "docs/explanation/security-model.md: a row for each call")
        for method in sorted(methods, key=lambda name: {"Disable": 1, "Drain": 2, "Enable": 3}.get(name, 0)):
            found = [self.verdict(method, own.pid, "client", ALICE), self.verdict(method, others.pid, "client", ALICE),
                     self.verdict(method, others.pid, "client", READER), self.verdict(method, others.pid, "admin", 0)]
            self.assertEqual(found, [cell.split(";")[0] for cell in table[method]], method)

    def test_a_refused_call_changes_nothing_gives_the_reason_and_is_logged(self) -> None:
        for _ in range(3):
            answer = self.call("SetPolicy", "linger_us: 1", uid=ALICE)
            self.assertEqual(answer.status, PERMISSION_DENIED)
        self.assertIn("admin.sock, as root or as a member of group xschedd", answer.text)
        self.assertIn("linger_us: 200", self.call("GetPolicy", on="admin").answers[0])
        self.logged(f"(uid {ALICE}) called SetPolicy on client.sock")


@needs_root
class Sockets(WithDaemon):
    def test_the_kernel_refuses_others_on_admin_sock(self) -> None:
        path = os.path.join(self.folder, "admin.sock")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o660)
        self.assertEqual(self.call("GetVersion", uid=ALICE, on="admin").connect_error, errno.EACCES)
        # Only the mode decides, and every user that it admits is an administrator.
        os.chown(path, 0, BOB)
        self.assertEqual(self.call("GetStats", uid=BOB, on="admin").status, OK)
        self.assertEqual(self.call("GetStats", uid=ALICE, on="admin").connect_error, errno.EACCES)
        os.chmod(path, 0o600)
        self.assertEqual(self.call("GetStats", uid=BOB, on="admin").connect_error, errno.EACCES)

    def test_root_on_client_sock_is_a_user_like_others(self) -> None:
        others = self.client(uid=ALICE)
        self.assertEqual(self.call("Set", f"selector {{ pid: {others.pid} }} priority: 5", uid=0).status,
                         PERMISSION_DENIED)


@needs_root
class Group(WithDaemon):
    """On a machine that has a group xschedd: its members are administrators. Only the daemon sees this /etc/group."""

    MEMBER = 61235

    def setUp(self) -> None:
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
            self.skipTest("this machine gives no mount namespaces")
        with open("/etc/group", encoding="utf-8") as file:
            others = [line for line in file if not line.startswith("xschedd:")]
        # pylint: disable-next=consider-using-with
        groups = tempfile.NamedTemporaryFile("w", prefix="xschedd-group-", encoding="utf-8")
        self.addCleanup(groups.close)
        groups.write("".join(others) + f"xschedd:x:{self.MEMBER}:\n")
        groups.flush()
        os.chmod(groups.name, 0o644)
        self.PREFIX = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/group && exec "$@"', groups.name]
        super().setUp()

    def test_members_are_administrators_and_others_are_not(self) -> None:
        path = os.path.join(self.folder, "admin.sock")
        self.assertEqual((os.stat(path).st_gid, stat.S_IMODE(os.stat(path).st_mode)), (self.MEMBER, 0o660))
        self.assertEqual(self.call("GetStats", uid=self.MEMBER, on="admin").status, OK)
        self.assertEqual(self.call("GetStats", uid=ALICE, on="admin").connect_error, errno.EACCES)

    def test_members_see_claims_and_root_alone_puts_and_removes_them(self) -> None:
        for method in ("ListClaims", "ReportClaims"):
            self.assertEqual(self.call(method, uid=self.MEMBER, on="admin").status, OK)
        for method in ("PutClaim", "DeleteClaim"):
            answer = self.call(method, REQUESTS[method], uid=self.MEMBER, on="admin")
            self.assertEqual(answer.status, PERMISSION_DENIED)
            self.assertIn("only root may put and delete claims", answer.text)


@needs_root
class Readers(WithDaemon):
    CONFIG = f'[access]\nreaders = "{READERS.gr_name}"\n'

    def test_a_reader_sees_all_clients_and_changes_none(self) -> None:
        pids = {self.client(uid=ALICE).pid, self.client().pid}
        groups = [READERS.gr_gid]

        def seen(uid: int, also_in: List[int]) -> List[int]:
            shown = self.ctl("--json", "ps", uid=uid, also_in=also_in)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            return [client["pid"] for client in json.loads(shown.stdout)["clients"]]
        self.assertEqual(set(seen(READER, groups)), pids)
        self.assertEqual(seen(READER, []), [])
        for words in (["top", "--batch", "--frames", "1"], ["stats"], ["config", "show"], ["metrics"], ["events"]):
            done = self.ctl(*words, uid=READER, also_in=groups)
            self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        other = str(min(pids))
        for words in (["set", "--priority", "-1", "--pid", other], ["hold", "--pid", other], ["release", "--pid", other],
                      ["disable"], ["enable"], ["reload"], ["policy", "set", "fifo"], ["set", "--priority", "-1", "--all"]):
            done = self.ctl(*words, uid=READER, also_in=groups)
            self.assertEqual(done.returncode, 4, f"{words}: {done.stderr}")
        self.assertEqual({client["priority_effective"] for client in self.clients()}, {0})
        self.assertEqual(self.ctl("explain", other, uid=READER, also_in=groups).returncode, 0)


@needs_root
class Raising(WithDaemon):
    """Without configuration a user lowers and does not raise, as with nice."""

    def test_a_users_hint_holds_no_other_users_work(self) -> None:
        roots, alices = self.client(), self.client("hint=100", uid=ALICE)
        self.assertEqual(self.one(alices.pid)["priority_effective"], 0)
        for client in (roots, alices):
            client.tell("device " + GPU)
            client.tell("busy")
        self.assertEqual(roots.tell("held"), "no")
        self.assertIn("limited by the default ceiling of uid",
                      self.call("Set", f"selector {{ pid: {alices.pid} }} priority: 100", uid=ALICE).answers[0])
        self.assertEqual(self.one(alices.pid)["priority_effective"], 0)
        lowered = self.client("hint=-7", uid=ALICE)
        self.assertEqual(self.one(lowered.pid)["priority_effective"], -7)
        own = self.client("hint=100")  # a client of root
        self.assertEqual(self.one(own.pid)["priority_effective"], 100)
        # An administrator may raise its clients.
        self.call("Set", f"selector {{ pid: {alices.pid} }} priority: 40", on="admin")
        self.assertEqual(self.one(alices.pid)["priority_effective"], 40)


@needs_root
class Devices(WithDaemon):
    """Devices of a daemon without --software-gpu."""
    DEVICES: List[str] = []

    def test_an_invented_device_is_not_scheduled_and_the_client_gets_the_reason(self) -> None:
        client = self.client(uid=ALICE)
        client.tell("device " + GPU)
        self.logged(f"device {GPU}: this machine has no GPU {GPU}")
        self.assertNotIn("devices {", self.call("ListClients", on="admin").answers[0])

    def test_a_self_test_device_is_for_the_self_test(self) -> None:
        client = self.client(uid=ALICE)
        client.tell("device ffff:01:02.0")
        wait_for(lambda: "ffff:01:02.0" in self.call("ListClients", on="admin").answers[0], "the device")


@needs_root
class Audit(WithDaemon):
    def test_the_log_names_the_user_who_became_root(self) -> None:
        login = 61238
        try:
            with open("/proc/self/loginuid", encoding="utf-8") as file:
                before = file.read()
            with open("/proc/self/loginuid", "w", encoding="utf-8") as file:
                file.write(str(login))
        except OSError as error:
            self.skipTest(f"this kernel does not let a login uid be set: {error}")
        try:
            pid = self.client(uid=ALICE).pid
            self.call("Hold", f"selector {{ pid: {pid} }}", on="admin")
            wait_for(lambda: re.search(rf"hold clients=1 pid={pid} by_uid=0 by_pid=\d+ login_uid={login}", self.log()), "the hold's line")
            self.call("Set", f"selector {{ pid: {pid} }} priority: 3", on="admin")
            wait_for(lambda: re.search(rf"set to 3 by uid 0 \(pid \d+, login uid {login}\)", self.log()), "the priority's line")
        finally:
            with contextlib.suppress(OSError), open("/proc/self/loginuid", "w", encoding="utf-8") as file:
                file.write(before)


@needs_root
class OwnersAndAdministrators(WithDaemon):
    CONFIG = f"""
[[ceiling]]
uid = {ALICE}
priority = 40
[[rule]]
group = "ruled"
priority = 7
"""

    def set(self, pid: int, words: str, uid: int, on: str = "client") -> str:
        answer = self.call("Set", f"selector {{ pid: {pid} }} {words}", uid=uid, on=on)
        self.assertEqual(answer.status, OK, answer.text)
        return answer.answers[0]

    def test_an_owner_overrides_the_hint_and_an_administrator_overrides_the_owner(self) -> None:
        pid = self.client("hint=10", uid=ALICE).pid
        effective = lambda: self.one(pid)["priority_effective"]  # noqa: E731
        self.assertEqual(effective(), 10)
        self.set(pid, "priority: -5", ALICE)
        self.assertEqual(effective(), -5)
        self.assertIn("limited by the ceiling of uid", self.set(pid, "priority: 90", ALICE))
        self.assertEqual(effective(), 40)
        self.set(pid, "priority: 20", 0, "admin")
        self.assertEqual(effective(), 20)
        self.assertIn("kept; an administrator's priority overrides it", self.set(pid, "priority: 30", ALICE))
        self.assertEqual(effective(), 20)
        self.set(pid, "reset_priority: true", ALICE)
        self.assertEqual(effective(), 20)
        self.set(pid, "priority: 31", ALICE)
        self.set(pid, "reset_priority: true", 0, "admin")
        self.assertEqual(effective(), 31)
        self.set(pid, "reset_priority: true", ALICE)
        self.assertEqual(effective(), 10)
        # The ceiling binds administrators, too.
        self.set(pid, "priority: 90", 0, "admin")
        self.assertEqual(effective(), 40)

    def test_a_rule_overrides_an_owner(self) -> None:
        pid = self.client("group=ruled", uid=ALICE).pid
        self.assertIn("a rule of the configuration sets the priority", self.set(pid, "priority: -50", ALICE))
        self.assertEqual(self.one(pid)["priority_effective"], 7)

    def test_holds_of_owner_and_administrator_are_separate(self) -> None:
        pid = self.client(uid=ALICE).pid
        selector = f"selector {{ pid: {pid} }}"
        held = lambda: self.one(pid)["hold"] == 1  # noqa: E731
        self.assertEqual(self.call("Hold", selector, uid=ALICE).status, OK)
        self.assertTrue(held())
        self.assertEqual(self.call("Release", selector, uid=ALICE).status, OK)
        self.assertFalse(held())
        # An administrator's hold, which the owner cannot end.
        self.assertEqual(self.call("Hold", selector, uid=0, on="admin").status, OK)
        refused = self.call("Release", selector, uid=ALICE)
        self.assertEqual(refused.status, PERMISSION_DENIED)
        self.assertIn(f"ask one to run xschedctl release {pid}", refused.text)
        # Both: the owner ends its own hold, and is told that the other stays.
        self.assertEqual(self.call("Hold", selector, uid=ALICE).status, OK)
        answer = self.call("Release", selector, uid=ALICE)
        self.assertIn("an administrator's hold stays", answer.answers[0])
        self.assertIn("hold_after: true", answer.answers[0])
        self.assertTrue(held())
        self.assertEqual(self.call("Release", selector, uid=0, on="admin").status, OK)
        self.assertFalse(held())
        # An owner's hold, which an administrator can end.
        self.assertEqual(self.call("Hold", selector, uid=ALICE).status, OK)
        self.assertEqual(self.call("Release", selector, uid=0, on="admin").status, OK)
        self.assertFalse(held())

    def test_an_owners_hold_really_holds(self) -> None:
        client = self.client(uid=ALICE)
        client.tell("device " + GPU)
        self.assertEqual(self.call("Hold", f"selector {{ pid: {client.pid} }}", uid=ALICE).status, OK)
        wait_for(lambda: client.tell("held") == "yes", "the shut gate")
        self.assertEqual(self.call("Release", "selector { all: true }", uid=ALICE).status, OK)
        wait_for(lambda: client.tell("held") == "no", "the open gate")


@needs_root
class Selectors(WithDaemon):
    CONFIG = "[[ceiling]]\npriority = 100\n"

    def setUp(self) -> None:
        super().setUp()
        self.own, self.others = self.client(uid=ALICE).pid, [self.client(uid=BOB).pid, self.client().pid]

    def test_only_own_clients_are_changed_and_the_others_are_counted(self) -> None:
        answer = self.call("Set", "selector { all: true } priority: 9", uid=ALICE)
        self.assertEqual(answer.status, OK, answer.text)
        self.assertIn("left_out: 2", answer.answers[0])
        self.assertEqual({pid: self.one(pid)["priority_effective"] for pid in (self.own, *self.others)},
                         {self.own: 9, self.others[0]: 0, self.others[1]: 0})

    def test_another_users_process_is_refused_by_pid(self) -> None:
        for method, request in (("Set", "selector { pid: %d } priority: 9"), ("Hold", "selector { pid: %d }"),
                                ("Release", "selector { pid: %d }"), ("Explain", "pid: %d")):
            answer = self.call(method, request % self.others[0], uid=ALICE)
            self.assertEqual(answer.status, PERMISSION_DENIED, method)
            self.assertIn(f"pid {self.others[0]} is a client of uid {BOB}", answer.text)
        # With one among own clients, nothing is changed.
        answer = self.call("Set", f"selector {{ pid: {self.own} pid: {self.others[0]} }} priority: 9", uid=ALICE)
        self.assertEqual(answer.status, PERMISSION_DENIED)
        self.assertEqual(self.one(self.own)["priority_effective"], 0)
        answer = self.call("Set", f"selector {{ uid: {BOB} }} priority: 9", uid=ALICE)
        self.assertEqual(answer.status, PERMISSION_DENIED)

    def test_no_client_matches(self) -> None:
        self.assertEqual(self.call("Set", "selector { pid: 1 } priority: 9", uid=ALICE).status, NOT_FOUND)
        self.assertEqual(self.call("Set", "priority: 9", uid=ALICE).status, INVALID_ARGUMENT)
        self.assertEqual(self.call("Set", "selector { all: true } priority: 101", uid=ALICE).status, INVALID_ARGUMENT)

    def test_a_user_sees_only_own_clients(self) -> None:
        self.assertEqual([client["pid"] for client in self.clients(uid=ALICE, on="client")], [self.own])
        self.assertIn("left_out: 2", self.call("ListClients", uid=ALICE).answers[0])
        events = " ".join(self.call("WatchEvents", "replay: true", uid=ALICE, count=2).answers)
        self.assertIn(f"pid: {self.own} ", events)
        for other in self.others:
            self.assertNotIn(f"pid: {other} ", events)

    def test_others_command_lines_are_not_shown(self) -> None:
        waiting, busy = self.client("hint=1", uid=ALICE), self.client("hint=50", uid=BOB)
        for client in (waiting, busy):
            client.tell("device " + GPU)
        wait_for(lambda: "state: CLIENT_STATE_IDLE" in self.call("ListClients", on="admin").answers[0], "tracking")
        busy.tell("busy")
        waiting.tell("busy")
        wait_for(lambda: waiting.tell("held") == "yes", "the shut gate")

        def explained(uid: int, on: str) -> str:
            return self.call("Explain", f"pid: {waiting.pid}", uid=uid, on=on).answers[0]
        wait_for(lambda: f"pid {busy.pid} (scripted_client" in explained(0, "admin"), "the administrator's view")
        own = explained(ALICE, "client")
        self.assertIn(f"pid {busy.pid} (priority 50) was busy here", own)
        self.assertNotIn(f"pid {busy.pid} (scripted_client", own)
        self.assertIn("(by an administrator)", own)


@needs_root
class Ctl(WithDaemon):
    def test_it_uses_the_socket_that_the_user_may_open(self) -> None:
        own, others = self.client(uid=ALICE).pid, self.client().pid
        shown = json.loads(self.ctl("ps", "--json", uid=ALICE).stdout)
        self.assertEqual(([client["pid"] for client in shown["clients"]], shown["left_out"]), ([own], 1))
        shown = json.loads(self.ctl("ps", "--json").stdout)
        self.assertEqual(sorted(client["pid"] for client in shown["clients"]), sorted([own, others]))
        changed = self.ctl("set", "--priority", "-3", "--all", uid=ALICE)
        self.assertEqual(changed.returncode, 0, changed.stderr)
        self.assertIn("(1 client of other users left as they are)", changed.stdout)
        shown = json.loads(self.ctl("ps", "--json", uid=ALICE).stdout)
        self.assertEqual(shown["clients"][0]["priority_source"], "owner")
        for words in (["hold", "--pid", str(own)], ["release", "--pid", str(own)], ["explain", str(own)],
                      ["policy", "get"], ["version"], ["events"], ["ps", "--devices"]):
            done = self.ctl(*words, uid=ALICE)
            self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")

    def test_commands_that_need_admin_sock_say_so_and_why(self) -> None:
        self.client(uid=BOB)
        for words in (["stats"], ["reload"], ["disable"], ["enable"], ["policy", "set", "fifo"], ["set", "--priority", "1", "--all"]):
            done = self.ctl(*words, uid=ALICE)
            self.assertEqual(done.returncode, 4, f"{words}: {done.stderr}")
            self.assertEqual(len(done.stderr.splitlines()), 1)
            for part in ("client.sock; ", "admin.sock cannot be opened: Permission denied)"):
                self.assertIn(part, done.stderr)

    def test_a_container_with_only_client_sock(self) -> None:
        pid = self.client(uid=ALICE).pid
        os.unlink(os.path.join(self.folder, "admin.sock"))
        self.assertEqual(self.ctl("set", "--priority", "2", "--pid", str(pid), uid=ALICE).returncode, 0)
        done = self.ctl("stats", uid=ALICE)
        self.assertEqual(done.returncode, 4)
        self.assertIn("admin.sock cannot be opened: No such file or directory", done.stderr)


if __name__ == "__main__":
    rights_world.main()
