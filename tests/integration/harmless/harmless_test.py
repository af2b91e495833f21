#!/usr/bin/env python3
"""Acceptance's section harmless on the software GPU: it finds no harm, and each kind of harm in a program broken on purpose.

Usage: harmless_test.py SCRIPT XSCHEDCTL SOFTGPU_RUN SOURCE_ROOT
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT, CTL, RUN, ROOT = sys.argv[1:5]
DEVICE = f"harmless-{os.getpid()}"


def setUpModule():
    # The shared object of the software GPU outlives its programs.
    unittest.addModuleCleanup(pathlib.Path(f"/dev/shm/softgpu.{DEVICE}").unlink, missing_ok=True)


def section(minutes, broken="", *more):
    with tempfile.TemporaryDirectory(prefix="xschedd-harmless-") as folder:
        report = os.path.join(folder, "report")
        said = subprocess.run([RUN, "--name", DEVICE, "--", sys.executable, SCRIPT, "--xschedctl", CTL,
                               "--minutes", str(minutes), "--sections", "harmless", "--output", report, *more], text=True,
                              env={**os.environ, "XSCHEDD_ACCEPTANCE_BREAK": broken}, capture_output=True, timeout=250, check=False)
        with open(os.path.join(report, "results.json"), encoding="utf-8") as file:
            return said.returncode, json.load(file)["sections"][0]


class Harmless(unittest.TestCase):
    def test_no_harm_is_found_and_all_runs_are_named(self):
        status, made = section(1.5)
        self.assertEqual((status, made["verdict"]), (0, "yes"), made)
        self.assertFalse([one for one in made["findings"] if one["level"] != "ok"])
        named = {one["what"].split(":")[0] for one in (*made["findings"], *made["skipped"])}
        self.assertLessEqual({"tracked", "held", "reprioritised", "daemon killed", "graphs, each thread's default stream", "rocBLAS",
                              "hipBLASLt", "MIOpen", "cuBLAS", "cuBLASLt", "cuDNN", "PyTorch"}, named)

    def test_installed_libraries_are_compared_and_the_others_named(self):
        status, made = section(3, "", "--repeat", "tracked:runtime")
        self.assertEqual((status, made["verdict"]), (0, "yes"), made)
        self.assertEqual([row["values"] for row in made["tables"][0]["rows"]], [[2, 1, 1]], made)
        status, made = section(3, "wrong", "--repeat", "tracked:runtime")
        self.assertEqual((status, made["verdict"]), (1, "no"), made)
        self.assertIn("in 0 of 3 without it", made["line"])
        status, made = section(3, "", "--repeat", "tracked:cublas")
        self.assertEqual((status, made["verdict"], len(made["skipped"])), (0, "unknown", 1), made)

    def test_an_unscheduled_program_proves_nothing(self):
        status, made = section(1, "absent")
        self.assertEqual((status, made["verdict"]), (0, "partly"), made)
        self.assertFalse([one for one in made["findings"] if one["level"] != "warning"], made)
        self.assertIn("it was not a client of the daemon", made["findings"][0]["what"])
        self.assertIn("xschedctl doctor", made["findings"][0]["fix"])

    def test_each_harm_is_an_error_with_its_seed(self):
        for broken, what in (("lost", "other data"), ("crash", "ended by signal 6"), ("status", "broken on purpose")):
            status, made = section(1, broken, "--repeat", "tracked:1")
            errors = [one for one in made["findings"] if one["level"] == "error"]
            self.assertEqual((status, made["verdict"]), (1, "no"), made)
            self.assertIn(what, errors[0]["what"])
            self.assertIn("seed 1", errors[0]["what"])
            self.assertIn("in 0 of 3 without it", errors[0]["what"])

    def test_the_command_that_repeats_a_finding_works_as_printed(self):
        _, made = section(1, "status", "--repeat", "tracked:1")
        error = next(one for one in made["findings"] if one["level"] == "error")
        command = error["fix"].split("to repeat it: ", 1)[1].split(" ; ")[0]
        with tempfile.TemporaryDirectory(prefix="xschedd-harmless-") as folder:
            said = subprocess.run(command, shell=True, cwd=folder, text=True, env={"PATH": os.environ["PATH"]}, capture_output=True,
                                  timeout=250, check=False)
        self.assertEqual(said.returncode, 1, said)
        self.assertIn(error["what"].split(";")[0], said.stdout)

    def test_a_hang_is_an_error(self):
        # A hang is 15 s, and then there must be time to see that it does not happen without xschedd.
        status, made = section(1, "hang", "--repeat", "tracked:1")
        self.assertEqual(status, 1, made)
        self.assertIn("did not end", made["line"])


if __name__ == "__main__":
    del sys.argv[1:5]
    unittest.main()
