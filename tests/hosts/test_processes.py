"""How processes start and what they become (programs/first_and_then.cc, hip_work.py)."""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import unittest

import harness
import host
from host import here, hosts, shim, wait_for


class Processes(host.HostTest):
    def way(self, name):
        return [hosts / "first_and_then", host.LAUNCHES, host.MICROS, name]

    def test_chain_of_exec(self):
        self.check_scheduled(*self.way("plain"), before=["/bin/sh", "-c", 'exec env "$@"', "sh", sys.executable, "-c",
                             "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"])

    def test_exec_after_work(self):
        # The trace is the second image's, because the software GPU truncates its file.
        node = self.node
        node.start_daemon()
        anchor = node.start_anchor(priority=50)
        process = node.start(*self.way("exec"), priority=-10, environment=self.environment(HOST_STOP=self.stop_path))
        first = self.wait_connected(process, process.pid)
        wait_for(lambda: process.poll() is not None or node.clients().get(process.pid, {"id": first})["id"] != first,
                 "a session of the second image")
        self.hold_and_release(process, anchor)
        self.stop()
        err, _ = self.check_end(process, verdicts=2)
        self.assertNotIn("xschedd:", err)

    def test_preload_unset_by_a_wrapper(self):
        self.check_unscheduled(*self.way("exec-without"), cause=None)

    def test_child_works(self):
        self.check_scheduled(*self.way("fork-first"), pid_of=self.only_client)

    def test_parent_works_after_fork(self):
        self.check_scheduled(*self.way("fork-after"))

    def test_daemon(self):
        self.check_scheduled(*self.way("daemon"), pid_of=self.only_client)

    def test_spawned_works(self):
        self.check_scheduled(*self.way("spawn"), pid_of=self.only_client)

    def test_spawned_works_after_parent(self):
        def second(process, anchor):
            pid = self.only_client(process, anchor)
            return pid if pid != process.pid else None
        # Both are clients then; the parent is idle.
        node = self.node
        node.start_daemon()
        anchor = node.start_anchor(priority=50)
        process = node.start(*self.way("spawn-after"), priority=-10,
                             environment=self.environment(HOST_STOP=self.stop_path))
        self.wait_connected(process, process.pid)
        child = wait_for(lambda: [pid for pid in node.clients() if pid not in (anchor.pid, process.pid)], "the child")[0]
        self.assertIn(process.pid, node.clients())
        self.hold_and_release(process, anchor, pid=child)
        self.stop()
        self.check_end(process, verdicts=2)


class Loading(host.HostTest):
    plain = [hosts / "first_and_then", host.LAUNCHES, host.MICROS, "plain"]

    def test_preloaded_twice(self):
        """Two copies of the shim are one client; otherwise every launch would wait at two gates."""
        copy = self.node.dir / "copy" / shim.name
        copy.parent.mkdir()
        shutil.copy(shim, copy)
        shutil.copy(host.client_library, copy.parent)
        self.check_scheduled(*self.plain, before=["env", f"LD_PRELOAD={shim}:{shim}:{copy}"],
                             pid_of=self.only_session)

    def only_session(self, process, anchor):
        text = self.node.ctl("--json", "ps").stdout
        sessions = [client for client in json.loads(text)["clients"] if int(client["pid"]) == process.pid]
        self.assertLessEqual(len(sessions), 1)
        return process.pid if sessions and len(self.node.dispatches(process.pid)) >= 10 else None

    def test_bound_at_once(self):
        self.check_scheduled(*self.plain, environment={"LD_BIND_NOW": "1"})

    def test_preloaded_by_lib_token(self):
        """The loader replaces $LIB: by lib/x86_64-linux-gnu on Debian."""
        folder = self.node.dir / "root" / "lib/x86_64-linux-gnu"
        folder.mkdir(parents=True)
        shutil.copy(shim, folder)
        shutil.copy(host.client_library, folder)
        preload = f"{self.node.dir}/root/$LIB/{shim.name}"
        self.check_scheduled(*self.plain, before=["env", f"LD_PRELOAD={preload}"])

    def test_library_in_a_path_with_spaces(self):
        """LD_PRELOAD cannot name one; XSCHEDD_CLIENT_LIB and LD_LIBRARY_PATH can."""
        folder = self.node.dir / "a folder with spaces"
        folder.mkdir()
        shutil.copy(shim, folder)
        shutil.copy(host.client_library, folder)
        self.check_scheduled(*self.plain, before=["env", f"LD_PRELOAD={shim.name}", f"LD_LIBRARY_PATH={folder}:" +
                             str(harness.BUILD / "tools/softgpu")])

    def test_library_missing(self):
        folder = self.node.dir / "alone"
        folder.mkdir()
        shutil.copy(shim, folder)
        self.check_unscheduled(*self.plain, before=["env", f"LD_PRELOAD={folder / shim.name}"], cause="install libxschedd-client")

    def test_library_that_is_invalid(self):
        broken = self.node.dir / "broken.so"
        broken.write_text("not a library\n")
        self.check_unscheduled(*self.plain, cause="doctor", environment={"XSCHEDD_CLIENT_LIB": broken})

    def test_statically_linked(self):
        """The preload does not reach it, and its output is unchanged."""
        for program in "static_program", "static_pie_program":
            runs = [subprocess.run([*before, hosts / program], capture_output=True, text=True, timeout=harness.DEADLINE_S)
                    for before in ([], ["env", f"LD_PRELOAD={shim}"])]
            self.assertEqual([(run.returncode, run.stdout, run.stderr) for run in runs], [(3, "static\n", "")] * 2)

    @unittest.skipUnless(os.getuid() == 0, "needs root to make a setuid program")
    def test_setuid(self):
        """The loader ignores the preload; the program runs as without it."""
        folder = self.node.dir / "bin"
        folder.mkdir()
        program = folder / "first_and_then"
        shutil.copy(hosts / "first_and_then", program)
        program.chmod(0o4755)
        self.assertTrue(program.stat().st_mode & stat.S_ISUID)
        for path in (self.node.dir, folder):
            path.chmod(0o755)
        os_run = [sys.executable, "-c", "import os, sys; os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534);"
                  "os.execv(sys.argv[1], sys.argv[1:])"]
        runs = [subprocess.run([*before, *os_run, program, "1", "1", "wrong way"], capture_output=True, text=True,
                               timeout=harness.DEADLINE_S) for before in ([], ["env", f"LD_PRELOAD={shim}"])]
        self.assertEqual([(run.returncode, run.stdout, run.stderr) for run in runs], [(2, "", "")] * 2)


class Python(host.HostTest):
    def script(self, *mode, python=sys.executable):
        return [python, here / "hip_work.py", host.LAUNCHES, host.MICROS, *mode]

    def test_system_python(self):
        self.check_scheduled(*self.script(python="/usr/bin/python3"))

    def test_pythons_of_pyenv(self):
        pythons = sorted((harness.pathlib.Path.home() / ".pyenv/versions").glob("3.*/bin/python3"))
        if not pythons:
            self.skipTest("no pyenv here")
        self.node.start_daemon()
        anchor = self.node.start_anchor(priority=50)
        for python in pythons:
            process = self.node.start(*self.script(python=python), priority=-10,
                                      environment=self.environment(HOST_STOP=self.stop_path))
            wait_for(lambda: process.poll() is not None or self.node.device_state(process.pid).get("submitted", 0),
                     "its launches are seen")
            self.assertIsNone(process.poll(), python)
            self.stop()
            err, launches = self.check_end(process)
            self.assertEqual(len(self.node.dispatches(process.pid)), launches[0])
            self.assertNotIn("xschedd:", err)
            self.stop_path.write_bytes(b"\0")
        self.node.tell(anchor, "stop")

    def check_workers(self, mode):
        self.check_scheduled(*self.script(mode), pid_of=self.second_worker, verdicts=2)

    def second_worker(self, process, anchor):
        """It alone works until it is told to stop; the first may leave before the daemon or this test has seen it."""
        pid = self.only_client(process, anchor)
        with contextlib.suppress(OSError):  # the first one, which has left
            return pid if pid and str(self.stop_path) in harness.pathlib.Path(f"/proc/{pid}/maps").read_text() else None

    def test_multiprocessing_fork(self):
        self.check_workers("fork")

    def test_multiprocessing_forkserver(self):
        self.check_workers("forkserver")

    def test_multiprocessing_spawn(self):
        self.check_workers("spawn")

    def test_subprocess_after_work(self):
        self.check_scheduled(*self.script("subprocess"), verdicts=2, pid_of=lambda process, anchor: next(
            (pid for pid in self.node.clients() if pid not in (anchor.pid, process.pid)), None))


if __name__ == "__main__":
    unittest.main()
