#!/usr/bin/env python3
"""xschedctl doctor: its findings without a daemon, beside one, in a process and in a container.

Usage: doctor_test.py XSCHEDCTL XSCHEDD FAKE_CLIENT
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import unittest

import ctl_world
from ctl_world import WithDaemon, WithFolder


class WithoutDaemon(WithFolder):
    def findings(self, result):
        answer = json.loads(result.stdout)
        self.assertEqual(answer["ok"], result.returncode == 0, result.stderr)
        found = {}
        for one in answer["findings"]:
            found.setdefault(one["check"], []).append(one["level"] + ": " + one["what"] + "; " + one["fix"])
        return {check: "\n".join(lines) for check, lines in found.items()}

    def compile(self, *options, code):
        subprocess.run(["cc", "-fPIC", *options, "-x", "c", "-"], input=code, text=True, check=True)

    def test_doctor_without_a_daemon(self):
        result = self.ctl("doctor")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("error    client socket    no daemon: ", result.stdout)
        found = self.findings(self.ctl("doctor", "--json", XSCHEDD_PRIORITY="high"))
        self.assertIn("start it: systemctl start xschedd", found["admin socket"])
        self.assertIn("ok: loads as the shim loads it: ", found["private library"])
        self.assertIn("-100 to 100", found["environment"])
        self.assertTrue(found["kernel"].startswith("ok: Linux "), found["kernel"])

    def test_doctor_does_not_wait_for_a_daemon_that_accepts_nothing(self):
        with contextlib.ExitStack() as opened:
            listener, waiting = (opened.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
            path = os.path.join(self.folder, "client.sock")
            listener.bind(path)
            listener.listen(0)
            waiting.connect(path)  # the only place in the queue
            found = self.findings(self.ctl("doctor", "--json"))
        self.assertIn("accepts no connection", found["client socket"])

    def test_doctor_says_why_the_private_library_cannot_load(self):
        def library(path):
            return self.findings(self.ctl("doctor", "--json", XSCHEDD_CLIENT_LIB=path))["private library"]
        self.assertIn("No such file or directory; install libxschedd-client.so beside", library("/nowhere/lib.so"))
        lacking = os.path.join(self.folder, "lacking.so")
        self.compile("-shared", "-o", lacking, "-Wl,-z,now", code="void absent(void); void f(void) { absent(); }")
        self.assertIn("undefined symbol: absent", library(lacking))
        crashing = os.path.join(self.folder, "crashing.so")
        self.compile("-shared", "-o", crashing, code="__attribute__((constructor)) void f(void) { __builtin_trap(); }")
        self.assertIn("ends the process by signal", library(crashing))
        other = os.path.join(self.folder, "other.so")
        self.compile("-shared", "-o", other, code="void f(void) {}")
        self.assertIn("does not export xschedd_client_start", library(other))

    def test_doctor_says_why_a_process_is_not_scheduled(self):
        program = "#include <unistd.h>\nint main(void) { pause(); return 0; }"
        plain, static = (os.path.join(self.folder, name) for name in ("plain", "static"))
        self.compile("-o", plain, code=program)
        self.compile("-static", "-o", static, code=program)
        set_uid = os.path.join(self.folder, "set-uid")
        shutil.copy(plain, set_uid)
        os.chmod(set_uid, 0o4755)

        def process(command, *options):
            pid = self.start(*(["env", *options] if options else []), command).pid
            self.wait(lambda: os.readlink(f"/proc/{pid}/exe") == command, "the program")
            return self.findings(self.ctl("doctor", "--json", "--pid", str(pid)))["process"]
        self.assertIn("LD_PRELOAD does not name it; start it by xschedctl run", process(plain))
        self.assertIn("statically linked", process(static))
        self.assertIn("set-uid", process(set_uid))
        self.assertIn("does not exist in its container", process(plain, "LD_PRELOAD=/nowhere/libxschedd-shim.so"))
        self.assertIn("there is no pid 4194999", self.findings(
            self.ctl("doctor", "--json", "--pid", "4194999"))["process"])

    def test_doctor_checks_a_container(self):
        root = os.path.join(self.folder, "root")
        os.mkdir(root)
        found = self.findings(self.ctl("doctor", "--json", "--root", root))["root"]
        for part in ("libxschedd-shim.so; bind-mount", "client.sock: its programs find no daemon", "/client as ", "not musl"):
            self.assertIn(part, found)


class Beside(WithDaemon):
    def test_doctor_with_a_daemon(self):
        answer = json.loads(self.ctl("doctor", "--json", "--pid", str(self.client())).stdout)
        found = {one["check"]: one["level"] + ": " + one["what"] for one in answer["findings"]}
        self.assertIn("ok: the daemon listens", found["client socket"])
        self.assertIn("ok: the daemon answers", found["admin socket"])
        self.assertIn("ok: xschedctl, the daemon, the shim: ", found["versions"])
        self.assertIn("has a session with the daemon", found["session"])
        self.daemon.send_signal(signal.SIGSTOP)
        stopped = self.ctl("doctor")
        self.assertEqual(stopped.returncode, 1)
        self.assertIn("error    admin socket     the daemon does not answer", stopped.stdout)


if __name__ == "__main__":
    unittest.main(argv=ctl_world.take(sys.argv))
