#!/usr/bin/env python3
"""Acceptance's sections works and worth on the software GPU, in very short runs: the parts of a report, and relations between
its figures that hold on a busy machine, too. Times are not checked.

Usage: works_test.py SCRIPT XSCHEDCTL SOFTGPU_RUN SOURCE_ROOT
"""

import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as tree

SCRIPT, CTL, RUN, ROOT = sys.argv[1:5]
sys.path[:0] = [str(pathlib.Path(ROOT) / "tools/bench/acceptance"), str(pathlib.Path(ROOT) / "tools/bench")]
STAND_IN = "a stand-in"
DEVICE = f"works-{os.getpid()}"
SCENARIOS = ("periodic", "three tenants", "video conference", "two models")


def acceptance(folder, *words, minutes):
    return subprocess.run([RUN, "--name", DEVICE, "--", sys.executable, SCRIPT, "--xschedctl", CTL, "--minutes",
                           str(minutes), "--output", folder, *words], capture_output=True, text=True, timeout=400, check=False)


def setUpModule():
    # The shared object of the software GPU outlives its programs.
    unittest.addModuleCleanup(pathlib.Path(f"/dev/shm/softgpu.{DEVICE}").unlink, missing_ok=True)


def on_this_device():
    """Processes that run on this test's device, by their environment."""
    mine = f"SOFTGPU_NAME={DEVICE}".encode()
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            if mine in pathlib.Path(path).read_bytes().split(b"\0"):
                yield path
        except OSError:
            pass


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="xschedd-works-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.report = os.path.join(cls.folder.name, "report")
        cls.said = acceptance(cls.report, "--sections", "works,worth", minutes=1)
        with open(os.path.join(cls.report, "results.json"), encoding="utf-8") as file:
            cls.results = json.load(file)
        cls.sections = {section["name"]: section for section in cls.results["sections"]}

    def table(self, section, title):
        return next(table for table in self.sections[section]["tables"] if table["title"] == title)

    def test_both_sections_have_a_verdict(self):
        self.assertIn(self.said.returncode, (0, 1), self.said.stderr)
        self.assertEqual(list(self.sections), ["works", "worth"])
        for section in self.sections.values():
            self.assertIn(section["verdict"], ("yes", "partly", "no") if section["name"] == "works" else (
                "yes", "partly", "no", "unknown"), section)  # a run this short may have too few requests

    def test_every_part_is_present_or_named_as_skipped(self):
        text = json.dumps([self.sections["works"]["findings"], self.sections["works"]["skipped"]])
        for part in (*SCENARIOS, "the default stream", "8 threads", "live set", "PyTorch"):
            self.assertIn(part, text)
        for part in ("a launch untracked", "a launch tracked"):
            self.assertTrue(part in text or '"overhead"' in text, text)

    def test_programs_work_and_every_live_change_counts(self):
        found = {finding["what"].split(":")[0]: finding for finding in self.sections["works"]["findings"]}
        for what in ("the default stream", "8 threads"):
            self.assertEqual(found[what]["level"], "ok", found[what])
        changes = [finding["what"] for finding in self.sections["works"]["findings"] if finding["what"].startswith("live set")]
        skipped = [one["what"] for one in self.sections["works"]["skipped"]]
        self.assertEqual(len(changes) + skipped.count("live set"), 1)
        self.assertFalse([change for change in changes if "live set: 0 of" in change], changes)
        self.assertFalse([finding for finding in self.sections["works"]["findings"] if "other results" in finding["what"]])

    def test_each_figure_has_its_goal(self):
        for finding in self.sections["works"]["findings"]:
            if any(finding["what"].startswith(name) for name in SCENARIOS) and "reference" not in finding["what"]:
                self.assertIn("goal:", finding["what"])

    def test_order_of_figures(self):
        table = self.table("works", "Latency of the important program")
        self.assertTrue(table["rows"])
        for row in table["rows"]:
            values = dict(zip(table["columns"], row["values"]))
            for way in ("alone", "native", "xschedd"):
                self.assertLessEqual(values[f"p50 {way}, ms"], values[f"p99 {way}, ms"], row)
            # Kernels that fill the device wait for each other, so no program is faster beside others.
            self.assertLess(values["p50 alone, ms"], values["p50 native, ms"], row)
        times = {row["name"]: row["values"] for row in self.table("worth", "How long a transition takes")["rows"]}
        known, shut = times["from a request until the daemon knows of it"], times["from a request until the others' gates are shut"]
        if known[2] == shut[2]:  # of the same requests
            self.assertLess(known[0], shut[0])
        for values in times.values():
            self.assertLessEqual(values[0], values[1])
            self.assertGreaterEqual(values[0], 0)

    def test_pages_have_a_picture_for_each_scenario_and_name_the_software_gpu(self):
        page = (pathlib.Path(self.report) / "report.html").read_text(encoding="utf-8")
        text = (pathlib.Path(self.report) / "report.md").read_text(encoding="utf-8")
        for made in (page, text, self.said.stdout):
            self.assertIn(STAND_IN, made)
        rows = len(self.table("worth", "What is gained and lost")["rows"]) + \
            len(self.table("works", "Latency of the important program")["rows"])
        pictures = [part.split("</svg>")[0] + "</svg>" for part in page.split("<svg")[1:]]
        for picture in pictures:
            tree.fromstring("<svg" + picture)
        self.assertEqual(len(pictures), rows + 2)  # and one of each section's findings

    def test_it_matches_the_schema(self):
        import schema
        self.assertEqual(schema.problems(schema.read(), self.results), [])

    def test_nothing_is_left(self):
        self.assertEqual(list(on_this_device()), [])

    def test_without_time_the_skips_say_so(self):
        report = os.path.join(self.folder.name, "short")
        said = acceptance(report, "--sections", "works", minutes=0.03)
        self.assertEqual(said.returncode, 0, said.stderr)
        with open(os.path.join(report, "results.json"), encoding="utf-8") as file:
            section = json.load(file)["sections"][0]
        self.assertTrue(section["skipped"])
        self.assertIn("no time was left", json.dumps(section["skipped"]))


if __name__ == "__main__":
    del sys.argv[1:5]
    unittest.main()
