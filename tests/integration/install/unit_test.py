"""The systemd units: their exposure, whether systemd accepts them, and whether the daemon can run in the sandbox.

usage: unit_test.py UNIT_FOLDER XSCHEDD XSCHEDCTL FAKE_CLIENT TEST.CASE

UNIT_FOLDER: the socket units; XSCHEDD_UNIT in the environment: the service.
"""

import ctypes.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Dict, List, Optional

SOCKETS, XSCHEDD, XSCHEDCTL, FAKE_CLIENT = (pathlib.Path(path).resolve() for path in sys.argv[1:5])
UNIT = pathlib.Path(os.environ["XSCHEDD_UNIT"])
SANDBOX = pathlib.Path(__file__).with_name("sandbox.py")
MAX_EXPOSURE = 1.5
NOBODY = 65534


class WithFolder(unittest.TestCase):
    def setUp(self) -> None:
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is not installed (Debian: systemd)")
        folder = tempfile.TemporaryDirectory(prefix="xschedd-unit-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Unit(WithFolder):
    """The units as judged by systemd's own tools."""

    def setUp(self) -> None:
        super().setUp()
        # As installed, but with the daemon that was built.
        lines = UNIT.read_text(encoding="utf-8").splitlines()
        self.unit = self.folder / "xschedd.service"
        self.unit.write_text("\n".join(f"ExecStart={XSCHEDD}" if line.startswith("ExecStart=") else line for line in lines),
                             encoding="utf-8")
        self.target = shutil.copy(UNIT.with_name("xschedd.target"), self.folder)
        for socket in SOCKETS.glob("*.socket"):
            shutil.copy(socket, self.folder)

    def analyze(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run(["systemd-analyze", "--no-pager", *words], capture_output=True, text=True, check=False,
                              env={**os.environ, "SYSTEMD_COLORS": "0", "SYSTEMD_EMOJI": "0"})

    def test_exposure(self) -> None:
        said = self.analyze("security", "--offline=true", f"--threshold={int(MAX_EXPOSURE * 10)}", str(self.unit))
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertIn("Overall exposure level for xschedd.service", said.stdout)
        print(said.stdout.strip().splitlines()[-1])

    def test_verify(self) -> None:
        said = self.analyze("verify", str(self.target), str(self.unit), *(str(path) for path in sorted(self.folder.glob("*.socket"))))
        self.assertEqual((said.returncode, said.stdout, said.stderr), (0, "", ""))

    def test_the_plugin(self) -> None:
        lines = UNIT.with_name("xschedd-nri.service").read_text(encoding="utf-8").splitlines()
        folder = self.folder / "plugin"
        folder.mkdir()
        unit = folder / "xschedd-nri.service"
        # As installed, but with a program that exists.
        unit.write_text("\n".join(f"ExecStart={XSCHEDD}" if line.startswith("ExecStart=") else line for line in lines), encoding="utf-8")
        said = self.analyze("verify", "--man=no", str(unit))
        self.assertEqual((said.returncode, said.stdout, said.stderr), (0, "", ""))
        said = self.analyze("security", "--offline=true", f"--threshold={int(MAX_EXPOSURE * 10)}", str(unit))
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)

    def test_the_target_stops_all_units_and_starts_those_that_are_needed(self) -> None:
        def values(unit: pathlib.Path, key: str) -> set[str]:
            lines = unit.read_text(encoding="utf-8").splitlines()
            return {word for line in lines if line.startswith(key + "=") for word in line.partition("=")[2].split()}

        others = [unit for unit in self.folder.iterdir() if unit.suffix in (".socket", ".service")]
        self.assertEqual(len(others), 4)
        for unit in others:
            self.assertIn("xschedd.target", values(unit, "PartOf"), unit.name)
        target = pathlib.Path(self.target)
        self.assertEqual(values(target, "Wants"), {unit.name for unit in others} - {"xschedd-metrics.socket"})
        self.assertEqual(values(target, "Also"), values(target, "Wants"))
        self.assertIn(target.name, values(self.folder / "xschedd-metrics.socket", "WantedBy"))


class InSandbox(WithFolder):
    """The daemon in the unit's sandbox (sandbox.py): a system call that the filter refuses kills it."""

    def setUp(self) -> None:
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("a sandbox of capabilities needs root")
        if not ctypes.util.find_library("seccomp"):
            self.skipTest("libseccomp is not installed (Debian: libseccomp2)")
        if subprocess.run(["unshare", "--mount", "--net", "--ipc", "true"], check=False, stderr=subprocess.DEVNULL).returncode:
            self.skipTest("this machine gives no namespaces")

    def launcher(self, capabilities: Optional[str] = None) -> List[str]:
        more = [] if capabilities is None else ["--capabilities", capabilities]
        return [sys.executable, str(SANDBOX), str(UNIT), *more]

    def exe_of_anothers_client(self, capabilities: Optional[str]) -> Dict[str, str]:
        """A client of another user, as `xschedctl ps` lists it."""
        runtime = self.folder / ("sandboxed" if capabilities is None else "bare")
        runtime.mkdir(mode=0o755)
        self.folder.chmod(0o755)
        program = self.folder / "tenant"
        shutil.copy(FAKE_CLIENT, program)
        program.chmod(0o755)
        ctl = [str(XSCHEDCTL), "--runtime-dir", str(runtime)]
        with subprocess.Popen([*self.launcher(capabilities), str(XSCHEDD), "--software-gpu", "--runtime-dir", str(runtime)],
                              stderr=subprocess.DEVNULL) as daemon:
            try:
                self.eventually(lambda: subprocess.run([*ctl, "ps"], capture_output=True, check=False).returncode == 0)
                with subprocess.Popen([str(program), "--runtime-dir", str(runtime)], stdout=subprocess.PIPE, user=NOBODY,
                                      group=NOBODY, extra_groups=[], text=True) as client:
                    try:
                        self.assertEqual(client.stdout.readline(), "connected\n")
                        return self.listed(ctl)
                    finally:
                        client.terminate()
            finally:
                daemon.terminate()
                self.assertEqual(daemon.wait(30), 0)

    def listed(self, ctl: List[str]) -> Dict[str, str]:
        found: Dict[str, str] = {}

        def has_command() -> bool:
            clients = json.loads(subprocess.run([*ctl, "ps", "--json"], check=True, capture_output=True).stdout)["clients"]
            found.update(clients[0] if clients else {})
            return bool(found.get("command"))  # read by another thread, so a little later

        self.eventually(has_command)
        return found

    def eventually(self, condition) -> None:
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline, "the condition did not come true")
            time.sleep(0.02)

    def test_every_refusal_is_seen(self) -> None:
        """The launcher itself refuses what the unit forbids, and makes it visible."""
        for words in (["/bin/chown", "0", "."], ["/usr/bin/unshare", "-U", "true"], ["/usr/bin/nice", "-n", "5", "true"]):
            done = subprocess.run([*self.launcher(), *words], capture_output=True, check=False)
            self.assertEqual(done.returncode, -31, f"{words}: {done}")  # SIGSYS
        self.assertEqual(subprocess.run([*self.launcher(), "/bin/true"], check=False).returncode, 0)
        kept = subprocess.run([*self.launcher(), "/bin/grep", "^CapEff", "/proc/self/status"], capture_output=True, text=True,
                              check=True)
        self.assertEqual(int(kept.stdout.split()[1], 16), 1 << 19 | 1 << 2)  # CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH

    def test_the_executable_of_another_users_client(self) -> None:
        client = self.exe_of_anothers_client(None)
        self.assertEqual(client["uid"], NOBODY)
        self.assertEqual(client["exe"], str(self.folder / "tenant"))
        self.assertIn("tenant", client["command"])
        own = pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").strip().splitlines()[-1].split(":", 2)[2]
        self.assertEqual(client["cgroup"], own)

    def test_without_the_capability_there_is_no_executable(self) -> None:
        """The reason for CAP_SYS_PTRACE: without it a rule or `set --exe` matches no other user's client."""
        client = self.exe_of_anothers_client("")
        self.assertEqual(client["exe"], "")
        self.assertIn("tenant", client["command"])

    def test_open_files_of_another_users_process(self) -> None:
        """/proc/PID/fd shows whether a process uses a GPU; reading it needs both capabilities."""
        with subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, user=NOBODY, group=NOBODY, extra_groups=[]) as process:
            try:
                for capabilities, seen in ((None, True), ("CAP_SYS_PTRACE", False), ("CAP_DAC_READ_SEARCH", False)):
                    done = subprocess.run([*self.launcher(capabilities), "/usr/bin/find", f"/proc/{process.pid}/fd", "-lname",
                                           "/dev/null"], capture_output=True, text=True, check=False)
                    self.assertEqual(f"/proc/{process.pid}/fd/0" in done.stdout, seen, f"{capabilities}: {done}")
            finally:
                process.kill()

    def test_the_daemons_integration_tests(self) -> None:
        """The daemon's integration tests, with each daemon in the sandbox, except the one with too few descriptors: the
        launcher needs some itself."""
        wrapper = self.folder / "xschedd"
        wrapper.write_text(f'#!/bin/sh\nexec {" ".join(self.launcher())} {XSCHEDD} "$@"\n', encoding="utf-8")
        wrapper.chmod(0o755)
        subprocess.run([os.environ["XSCHEDD_DAEMON_TEST"], "~with too few descriptors*"], check=True,
                       env={**os.environ, "XSCHEDD_BINARY": str(wrapper)})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
