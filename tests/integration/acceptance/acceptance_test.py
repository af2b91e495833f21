"""All of `xschedctl acceptance`: without a GPU, on the software GPU, with injected faults of the node, and killed at any moment.

usage: acceptance_test.py XSCHEDCTL XSCHEDD [SOFTGPU_RUN FOLDER_OF_BROKEN_CUDA]
"""

import ctypes
import json
import os
import pathlib
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

CTL, DAEMON, *SOFTGPU = (os.path.abspath(path) for path in sys.argv[1:])
ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "tools/bench/acceptance/acceptance"
SCHEMA = json.loads((ROOT / "tools/xschedctl/schema/acceptance-1.json").read_text())
LIMIT_S = 120.0
STAND_IN = "Made on the software GPU, a stand-in"
MARK = "zanzibar"
OK, FOUND, USAGE, REFUSED, NOT_INSTALLED, STOPPED = 0, 1, 2, 6, 127, 130


def without_rights():
    """Drops capabilities, so that file permissions bind root, too."""
    PR_CAPBSET_DROP, DAC_OVERRIDE, DAC_READ_SEARCH = 24, 1, 2
    for capability in (DAC_OVERRIDE, DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


class WithFolder(unittest.TestCase):
    PREFIX = ()

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="xa-"))  # short, for names of sockets
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.report = self.folder / "report"
        self.temporary = self.folder / "t"
        self.temporary.mkdir()

    def environment(self, **more):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("XSCHED", "LD_", "SOFTGPU"))}
        # Without this node's nvidia-smi and installed daemon.
        return {**clean, "TMPDIR": str(self.temporary), "XSCHEDD_RUNTIME_DIR": str(self.folder / "none"), **more}

    def run_words(self, words, rights=True, **more):
        return subprocess.run([*self.PREFIX, *map(str, words)], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=LIMIT_S, check=False, env=self.environment(**more),
                              preexec_fn=None if rights else without_rights)

    def acceptance(self, *words, **more):
        return self.run_words([CTL, "acceptance", *words], **more)

    def command(self, *words, ctl=CTL):
        """The command as xschedctl starts it, with the node's /sys and /dev in the test's folder, and only the section *sound*."""
        return [sys.executable, str(SCRIPT), "--xschedctl", str(ctl), "--root", str(self.folder / "node"),
                *(["--sections", "sound"] if "--sections" not in words else []), *map(str, words)]

    def script(self, *words, ctl=CTL, **more):
        return self.run_words(self.command(*words, ctl=ctl), **more)

    def results(self, folder=None):
        return json.loads(((folder or self.report) / "results.json").read_text())

    def sound(self, folder=None):
        return next(section for section in self.results(folder)["sections"] if section["name"] == "sound")

    def said(self, level, folder=None):
        return [finding["what"] for finding in self.sound(folder)["findings"] if finding["level"] == level]

    def refused(self, done, *says):
        """One line on standard error: cause; remedy."""
        self.assertEqual(done.returncode, REFUSED, done)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for part in ("xschedctl: acceptance: ", "; ", *says):
            self.assertIn(part, done.stderr)

    def nothing_is_left(self):
        """Checks that no file and no process is left; processes are found by the folder's name, which they inherit."""
        mine = f"TMPDIR={self.temporary}".encode()

        def processes():
            found = []
            for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
                try:
                    if mine in path.read_bytes():
                        found.append((path.parent / "cmdline").read_bytes())
                except OSError:
                    pass
            return found

        end = time.monotonic() + LIMIT_S
        while (left := [*processes(), *os.listdir(self.temporary)]):
            if time.monotonic() > end:
                self.fail(f"left: {left}")
            time.sleep(0.02)

    def fake(self, path, text, mode=0o755):
        """Makes a file of the fake node, or a program."""
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path


class NoGpu(WithFolder):
    def test_it_says_no_and_what_to_do(self):
        done = self.acceptance("--output", self.report, HIP_VISIBLE_DEVICES="-1", CUDA_VISIBLE_DEVICES="-1")
        self.assertEqual((done.returncode, done.stderr), (FOUND, ""))
        self.assertRegex(done.stdout, r"(?m)^sound: no: no GPU can be opened: .*load the driver")
        self.assertNotIn(STAND_IN, done.stdout + (self.report / "report.html").read_text())
        self.nothing_is_left()

    def test_bad_usage(self):
        for words in (["--compare", "a"], ["a", "b"], ["--minutes", "0"], ["--minutes", "x"], ["--continue", "none"],
                      ["--json", "--quiet-check"], ["--json", "--compare", "a", "b"]):
            done = self.acceptance(*words)
            self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (USAGE, "", 1), (words, done.stderr))

    def test_not_installed(self):
        alone = self.folder / "bin/xschedctl"
        alone.parent.mkdir()
        shutil.copy(CTL, alone)
        done = self.run_words([alone, "acceptance"])
        if done.returncode != NOT_INSTALLED and os.path.exists("/usr/share/xschedd/bench"):
            self.skipTest("xschedd-bench is installed on this machine")
        self.assertEqual((done.returncode, done.stdout), (NOT_INSTALLED, ""))
        self.assertIn("apt install xschedd-bench", done.stderr)

    def test_files_that_are_not_reports(self):
        (self.folder / "empty").mkdir()
        self.fake("garbage/results.json", "{")
        for one in ("empty", "garbage", "absent"):
            self.refused(self.acceptance("--compare", self.folder / one, self.folder / one), "results.json")
        self.refused(self.acceptance("--continue", self.folder / "garbage"), "is not JSON", "begin a new report")
        self.assertEqual((self.folder / "garbage/results.json").read_text(), "{")

    def test_a_folder_that_exists(self):
        self.report.mkdir()
        self.refused(self.acceptance("--output", self.report), "--continue")
        self.refused(self.acceptance("--output", "/dev/null/report"), "Not a directory", "--output")


@unittest.skipIf(not SOFTGPU, "no software GPU is built")
class OnTheSoftwareGpu(WithFolder):
    PREFIX = (*SOFTGPU[:1], "--")

    def environment(self, **more):
        return super().environment(SOFTGPU_NAME=self.folder.name, **more)

    def setUp(self):
        super().setUp()
        self.addCleanup(pathlib.Path(f"/dev/shm/softgpu.{self.folder.name}").unlink, missing_ok=True)


class Whole(OnTheSoftwareGpu):
    def test_a_report(self):
        home = pathlib.Path(CTL).parents[2]  # so that the shim's path, which doctor shows, is below it
        done = self.acceptance("--minutes", "0.3", "--output", self.report, HOME=str(home), LD_LIBRARY_PATH=f"/opt/{MARK}",
                               MY_KEY=MARK)
        self.assertIn(done.returncode, (OK, FOUND), done)  # this test does not check findings of other sections
        self.assertEqual(done.stderr, "", done.stdout)
        first, verdict, *_, folder = done.stdout.splitlines()
        self.assertIn(STAND_IN, first)
        self.assertTrue(verdict.startswith("sound: yes: 1 GPU"), verdict)
        self.assertEqual(folder, str(self.report))
        self.assertEqual(set(os.listdir(self.report)) - {"bundle.tar", "bundle.tar.zst"}, {"report.html", "report.md", "results.json"})
        self.assertIn("the daemon names each GPU by that address", self.said("ok"))
        self.assertTrue(self.results()["stand_in"])
        for page in ("report.md", "report.html"):
            self.assertIn(STAND_IN, (self.report / page).read_text())
        self.nothing_is_left()
        parts = {**self.bundle(), **{path.name: path.read_text() for path in self.report.glob("re*")}}
        self.assertLessEqual({"support/doctor", "support/versions", "logs/xschedd.log", "report/results.json", "report/report.md"},
                             set(parts))
        self.assertIn("xschedd", parts["logs/xschedd.log"])
        self.assertIn("~/client-shim/libxschedd-shim.so", parts["report.md"])
        for name, text in parts.items():
            for word in (MARK, str(home), platform.node()):
                self.assertNotIn(word, text, name)

    def test_amds_levers(self):
        done = self.script("--sections", "worth", "--levers", "--minutes", "0.9", "--output", self.report)
        [worth] = self.results()["sections"]
        rows = {table["title"]: table["rows"] for table in worth["tables"]}
        self.assertEqual([len(rows.get(f"What {what}", [])) for what in ("AMD's levers give, without xschedd", "a change of AMD's levers costs")],
                         [5, 2], (done, worth))
        # Each call was made, many times, and none failed.
        self.assertTrue(all(row["values"][2] > 5 for row in rows["What a change of AMD's levers costs"]), rows)
        self.nothing_is_left()

    def bundle(self):
        packed, plain = self.report / "bundle.tar.zst", self.report / "bundle.tar"
        if packed.exists() and shutil.which("zstd"):
            subprocess.run(["zstd", "-q", "-d", packed], check=True)
        # Python 3.14 reads zstd itself.
        with tarfile.open(plain if plain.exists() else packed) as archive:
            return {one.name: archive.extractfile(one).read().decode() for one in archive.getmembers()}

    @unittest.skipIf(jsonschema is None, "no jsonschema: install python3-jsonschema")
    def test_the_json_output_is_the_report_and_matches_its_schema(self):
        done = self.script("--json", "--output", self.report)
        self.assertEqual((done.returncode, done.stderr), (OK, ""))
        self.assertEqual(json.loads(done.stdout), self.results())
        self.assertEqual(list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(self.results())), [])

    def test_the_default_name(self):
        done = self.script()
        [folder] = self.folder.glob("acceptance-*")
        self.assertEqual(done.stdout.splitlines()[-1], folder.name)
        self.assertRegex(folder.name, r"^acceptance-[0-9a-f]{8}-\d{8}-\d{6}$")
        shown = self.script("--show-host", "--output", self.report)
        self.assertEqual((shown.returncode, self.results()["host"]), (OK, platform.node()))

    def test_a_comparison(self):
        other = self.folder / "other"
        self.script("--output", self.report)
        self.script("--output", other)
        done = self.acceptance("--compare", self.report, other)
        self.assertEqual((done.returncode, done.stderr), (OK, ""))
        self.assertIn("sound: yes, as before", done.stdout.splitlines())
        self.assertIn(STAND_IN, done.stdout)
        results = self.results(other)
        results["sections"][0].update(verdict="no")
        results["sections"][0]["findings"][0].update(level="error", what="it burns")
        (other / "results.json").write_text(json.dumps(results))
        said = self.acceptance("--compare", self.report, other).stdout.splitlines()
        self.assertIn("sound: yes -> no", said)
        self.assertIn("  + error: it burns", said)

    def test_beside_a_daemon_that_runs(self):
        run = self.folder / "r"
        run.mkdir()
        daemon = subprocess.Popen([DAEMON, "--runtime-dir", run, "--software-gpu"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.wait_for_daemon(run)
            done = self.script("--runtime-dir", run, "--output", self.report)
            self.assertEqual((done.returncode, done.stderr), (OK, ""), done.stdout)
            self.assertNotIn("the system's daemon", [skipped["what"] for skipped in self.sound()["skipped"]])
            self.assertIn("the daemon names each GPU by that address", self.said("ok"))
            self.assertIsNone(daemon.poll())
            self.nothing_is_left()
        finally:
            daemon.terminate()
            self.assertEqual(daemon.wait(LIMIT_S), 0)

    def wait_for_daemon(self, run):
        end = time.monotonic() + LIMIT_S
        while self.run_words([CTL, "--runtime-dir", run, "version"]).returncode != 0:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)


class Interrupted(OnTheSoftwareGpu):
    def test_killed_at_any_moment(self):
        started = time.monotonic()
        self.assertEqual(self.script("--output", self.folder / "whole").returncode, OK)
        duration = time.monotonic() - started
        continued = 0
        for number in range(10):
            sent = (signal.SIGKILL, signal.SIGTERM)[number % 2]
            folder = self.folder / f"report{number}"
            process = subprocess.Popen([*self.PREFIX, *self.command("--output", folder)], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.environment())
            time.sleep(duration * (number + 1) / 11)
            process.send_signal(sent)
            self.assertEqual(process.communicate(timeout=LIMIT_S)[1], "", number)
            self.assertIn(process.returncode, (OK, -sent, STOPPED), number)
            self.nothing_is_left()
            if folder.exists():
                continued += process.returncode != OK
                done = self.script("--continue", folder)
                self.assertEqual((done.returncode, done.stderr), (OK, ""), (number, done.stdout))
                self.assertEqual((self.sound(folder)["verdict"], len(os.listdir(folder))), ("yes", 4), number)
        self.assertGreater(continued, 1)

    def test_no_time(self):
        done = self.script("--minutes", "0.0001", "--output", self.report)
        self.assertEqual((done.returncode, done.stderr), (OK, ""))
        self.assertEqual((self.sound()["verdict"], self.sound()["line"]), ("unknown", "no time was left"))
        self.assertEqual(self.script("--continue", self.report).returncode, OK)
        self.assertEqual(self.sound()["verdict"], "yes")

    def test_a_question_without_an_answer(self):
        hanging = self.fake("bin/xschedctl", f'#!/bin/sh\ncase $* in *" ps") exec sleep 1000 ;; esac\nexec "{CTL}" "$@"\n')
        done = self.script("--minutes", "0.02", "--output", self.report, ctl=hanging)
        self.assertEqual((done.returncode, done.stderr, self.sound()["verdict"]), (OK, "", "unknown"), done.stdout)
        self.nothing_is_left()

    def test_finished_sections_are_not_repeated(self):
        self.script("--output", self.report)
        results = self.results()
        results["sections"][0]["line"] = MARK
        (self.report / "results.json").write_text(json.dumps(results))
        said = self.script("--continue", self.report).stdout.splitlines()
        self.assertEqual([line for line in said if line.startswith("sound: ")], [f"sound: yes: {MARK}"])

    def in_mounts(self, script):
        """A shell with a small file system at `report`'s folder, in a mount namespace of its own."""
        unshare = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--mount", "--map-root-user"]
        if self.run_words([*unshare, "true"]).returncode != 0:
            self.skipTest("this machine gives no namespaces")
        small = self.folder / "small"
        small.mkdir()
        return self.run_words([*unshare, "sh", "-c", f'mount -t tmpfs -o size=64k tmpfs "{small}" || exit 99; cd "{small}"; {script}'],
                              ACCEPTANCE=shlex.join(self.command()))

    def test_no_space(self):
        done = self.in_mounts('head -c 1000000 /dev/zero >full 2>/dev/null; $ACCEPTANCE --output report; echo $?; ls -A report;'
                              'rm full; $ACCEPTANCE --continue report; echo $?; ls report')
        said = done.stdout.splitlines()
        self.assertEqual(said[1:4], ["sound: yes: 1 GPU, driver, runtime and shim fit together", "report", str(REFUSED)], done)
        self.assertEqual(done.stderr, "xschedctl: acceptance: the report in report is incomplete: No space left on device; make room "
                         "there, and continue it with --continue\n")
        self.assertIn(STAND_IN, said[4])  # `ls -A` had nothing to list
        self.assertEqual(said[7], str(OK))
        self.assertEqual(len(said[8:]), 4, done)

    def test_a_folder_that_is_read_only(self):
        done = self.in_mounts('$ACCEPTANCE --output report >/dev/null && mount -o remount,ro tmpfs . || exit 98;'
                              '$ACCEPTANCE --output other; echo $?; $ACCEPTANCE --continue report; echo $?')
        self.assertEqual(done.stderr.splitlines(), [
            "xschedctl: acceptance: other cannot be made: Read-only file system; name another folder with --output",
            "xschedctl: acceptance: the report in report is incomplete: Read-only file system; make room there, and continue it "
            "with --continue"])
        self.assertEqual([done.stdout.splitlines()[number] for number in (0, -1)], [str(REFUSED), str(REFUSED)], done)
        self.assertIn("sound: yes", done.stdout)


class BadSurroundings(OnTheSoftwareGpu):
    """Each fault is one line, and the rest is still checked."""

    def goes_on(self, done, verdict, level, line, rest="the daemon names each GPU by that address"):
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual((done.returncode, done.stderr), (FOUND if verdict == "no" else OK, ""), done.stdout)
        self.assertEqual(self.sound()["verdict"], verdict)
        self.assertEqual(self.said(level), [line])
        self.assertIn(f"sound: {verdict}: {line}", done.stdout)
        self.assertIn(rest, self.said("ok"))
        self.nothing_is_left()

    def test_no_permission_on_kfd(self):
        self.fake("node/dev/kfd", "", 0)
        done = self.script("--output", self.report, rights=False)
        self.goes_on(done, "no", "error", "no permission on /dev/kfd")

    def in_use(self):
        self.fake("node/sys/class/kfd/kfd/proc/4711/queues/0/type", "2\n")

    def test_a_gpu_in_use(self):
        self.in_use()
        quiet = self.script("--quiet-check")
        self.assertEqual((quiet.returncode, quiet.stdout), (FOUND, "in use: pid 4711 has queues on an AMD GPU\n"))
        self.refused(self.script("--output", self.report), "in use: pid 4711", "--beside-others")
        self.assertFalse(self.report.exists())
        done = self.script("--beside-others", "--output", self.report)
        self.assertEqual((done.returncode, self.results()["in_use"]), (OK, "pid 4711 has queues on an AMD GPU"))

    def test_a_gpu_that_is_idle(self):
        quiet = self.script("--quiet-check")
        self.assertEqual((quiet.returncode, quiet.stdout), (OK, "idle\n"))
        self.assertEqual(os.listdir(self.folder), ["t"])

    def nvidia_smi(self, **more):
        card = {"driver": "580.159.04", "mode": "Default", **more}
        self.fake("bin/nvidia-smi", "#!/bin/sh\ncase $1 in *compute-apps*) ;; *utilization*) echo 0, 0 ;;\n"
                  f"*) echo '0, NVIDIA H200, 00000000:03:00.0, {card['driver']}, {card['mode']}, Disabled' ;; esac\n")
        return {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"}

    def test_nvidias_good_driver(self):
        self.assertEqual(self.script("--output", self.report, **self.nvidia_smi()).returncode, OK)
        self.assertIn("0000:03:00.0: NVIDIA H200, driver 580.159.04, MIG Disabled", self.said("ok"))
        self.assertEqual(self.said("warning"), [])

    def test_exclusive_mode(self):
        done = self.script("--output", self.report, **self.nvidia_smi(mode="Exclusive_Process"))
        self.goes_on(done, "partly", "warning", "0000:03:00.0: compute mode Exclusive_Process, one process at a time")

    def test_a_driver_that_is_too_old(self):
        done = self.script("--output", self.report, **self.nvidia_smi(driver="450.80.02"))
        self.goes_on(done, "partly", "warning", "0000:03:00.0: driver 450.80.02 is older than 465 (CUDA 11.3), the oldest that "
                     "xschedd is expected to work with")

    def test_a_driver_that_fails(self):
        for status, words in ((803, ": libcuda.so.1 is not that of the loaded driver"), (77, "")):
            done = self.script("--output", self.report, LD_LIBRARY_PATH=SOFTGPU[1], BROKEN_CUDA=str(status))
            self.goes_on(done, "partly", "warning", f"cuInit says {status}{words}")
            shutil.rmtree(self.report)
        self.assertEqual(self.script("--output", self.report, LD_LIBRARY_PATH=SOFTGPU[1], BROKEN_CUDA="100").returncode, OK)
        self.assertEqual(self.said("warning"), [])

    def test_no_daemon(self):
        alone = self.folder / "bin/xschedctl"
        alone.parent.mkdir()
        shutil.copy(CTL, alone)
        path = ":".join(one for one in os.environ["PATH"].split(":") if not os.path.exists(one + "/xschedd"))
        if any(os.path.exists(one + "/xschedd") for one in ("/usr/sbin", "/usr/local/sbin")):
            self.skipTest("xschedd is installed on this machine")
        done = self.script("--output", self.report, ctl=alone, PATH=path, XSCHEDD_SHIM=os.path.join(os.path.dirname(CTL),
                           "../../client-shim/libxschedd-shim.so"))
        self.assertNotIn("Traceback", done.stderr)
        self.assertIn("no program could be scheduled: none runs, and there is no xschedd to start", self.said("warning"))
        self.assertTrue(any(text.endswith("memory ok") for text in self.said("ok")))
        self.assertEqual({"the system's daemon", "the GPUs as the daemon names them"},
                         {skipped["what"] for skipped in self.sound()["skipped"]})

    def test_a_daemon_that_gives_no_answer(self):
        run = self.folder / "r"
        run.mkdir()
        daemon = subprocess.Popen([DAEMON, "--runtime-dir", run, "--software-gpu"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            Whole.wait_for_daemon(self, run)
            daemon.send_signal(signal.SIGSTOP)
            done = self.script("--runtime-dir", run, "--output", self.report)
            self.assertEqual(done.returncode, OK, done)
            self.assertIn({"what": "the system's daemon", "why": "it does not answer; a private one was used instead"}, self.sound()["skipped"])
        finally:
            daemon.kill()
            daemon.wait()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
