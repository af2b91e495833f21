"""How tests/run.py and tests/tally.py report tests that pass, fail and skip; that tests/stall.py stops what they run."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[2]


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="xschedd-runner-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_python(self, script, *words):
        done = subprocess.run([sys.executable, TESTS / script, *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()


class Run(InFolder):
    def script(self, *bodies):
        cases = "".join(f"    def test_{number}(self): {body}\n" for number, body in enumerate(bodies))
        path = self.folder / "some_test.py"
        path.write_text(f"import sys, unittest\nclass Some(unittest.TestCase):\n    x = 1\n{cases}\n"
                        'if __name__ == "__main__":\n    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])\n', encoding="utf-8")
        return str(path)

    def test_exit_codes(self):
        skip = "self.skipTest('no thing here')"
        for bodies, code in ((["pass"], 0), (["pass", skip], 77), (["self.fail()", skip], 1), ([], 1)):
            self.assertEqual(self.run_python("run.py", self.script(*bodies), "given")[0], code, bodies)

    def test_a_skip_is_named(self):
        said = self.run_python("run.py", self.script("pass", "self.skipTest('no thing here')"), "given")[1]
        self.assertEqual(said, ["skipped: Some.test_1: no thing here"])

    def test_one_case_by_name(self):
        self.assertEqual(self.run_python("run.py", self.script("self.fail()", "pass"), "given", "Some.test_1"), (0, []))


class Tally(InFolder):
    def tally(self, *records, options=()):
        logs = self.folder / "meson-logs"
        logs.mkdir(exist_ok=True)
        (logs / "testlog.json").write_text("".join(json.dumps({"name": "xschedd:unit / " + name, "result": result, "stdout": out})
                                                   + "\n" for name, result, out in records), encoding="utf-8")
        return self.run_python("tally.py", *options, self.folder)

    def test_counts(self):
        self.assertEqual(self.tally(("a", "OK", ""), ("b", "OK", "")), (0, ["2 passed, 0 failed"]))
        self.assertEqual(self.tally(("a", "OK", ""), ("b", "TIMEOUT", "")), (1, ["1 passed, 1 failed"]))
        self.assertEqual(self.tally(), (1, ["0 passed, 0 failed"]))

    def test_a_skip_that_is_not_allowed_fails_in_ci_alone(self):
        known = ("restart", "SKIP", "skipped: Kept.test_stuck: no ptrace here: Permission denied\n")
        unknown = ("other", "SKIP", "skipped: X.test_y: it rains\n")
        silent = ("silent", "SKIP", "")
        self.assertEqual(self.tally(("a", "OK", ""), known, options=["--ci"]),
                         (0, ["skipped: restart: Kept.test_stuck: no ptrace here: Permission denied",
                              "1 passed, 0 failed, 1 skipped"]))
        for record in unknown, silent:
            code, lines = self.tally(("a", "OK", ""), record, options=["--ci"])
            self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 1 skipped"))
            self.assertIn("(not in tests/allowed_skips)", lines[0])
            self.assertEqual(self.tally(("a", "OK", ""), record)[0], 0)

    def test_what_a_passing_test_left_out_is_shown(self):
        said = self.tally(("daemon", "OK", "skipped: many users: users are made by root\n"), options=["--ci"])
        self.assertEqual(said, (0, ["skipped: daemon: many users: users are made by root", "1 passed, 0 failed"]))

    def test_comparisons_that_were_made_again(self):
        def result(retried, of):
            return self.tally(*(("c", "OK", f"measured: {int(number < retried)} retries\n") for number in range(of)))[0]
        self.assertEqual([result(0, 1), result(1, 1), result(1, 10), result(2, 20), result(2, 19), result(9, 10)],
                         [0, 0, 0, 0, 1, 1])
        self.assertEqual(self.tally(("c", "OK", "outside its limits: 1.3\nmeasured: 1 retries\n")),
                         (0, ["repeated: c: 1.3", "comparisons of times: 1, of which repeated: 1", "1 passed, 0 failed"]))


# Ends with 3 once it was stopped, with 0 after a minute without.
NOTICES_A_STOP = """import sys, time
before = begin = time.monotonic()
while before - begin < 60:
    time.sleep(0.01)
    now = time.monotonic()
    if now - before > 0.2:
        sys.exit(3)
    before = now
"""


class Stall(InFolder):
    def stalled(self, name, script):
        """(exit status, the last line) of stall.py with a command that runs a script of this name, which runs `script`."""
        inner, outer = self.folder / "inner.py", self.folder / name
        inner.write_text(script, encoding="utf-8")
        outer.write_text("import subprocess, sys\n"
                         "sys.exit(subprocess.run([sys.executable, *sys.argv[1:]]).returncode)\n", encoding="utf-8")
        status, said = self.run_python("stall.py", "sh", "-c", '"$@"; exit $?', "sh", sys.executable, str(outer), str(inner))
        return status, said[-1]

    def test_a_process_is_stopped_and_goes_on(self):
        status, said = self.stalled("some_test.py", NOTICES_A_STOP)
        self.assertEqual(status, 3, said)
        self.assertRegex(said, "^processes were stopped [1-9]")

    def test_one_of_a_test_that_stops_processes_is_left_alone(self):
        # A name that is in tests/e2e.
        status, said = self.stalled("test_failure.py", "import time\ntime.sleep(2)\n")
        self.assertEqual((status, said), (0, "processes were stopped 0 times"))


if __name__ == "__main__":
    unittest.main()
