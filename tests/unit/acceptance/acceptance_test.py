"""The pure parts of tools/bench/acceptance: verdicts, time, continuing a report, pages, comparison, schema, and facts about
a node from drivers' answers that are written here. No GPU, no daemon.

usage: acceptance_test.py SOURCE_ROOT
"""

import copy
import html.parser
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
PROGRAM = ROOT / "tools/bench/acceptance"
sys.path[:0] = [str(PROGRAM), str(PROGRAM.parent)]

import frame  # noqa: E402
import idle  # noqa: E402
import node  # noqa: E402
import pages  # noqa: E402
import probe  # noqa: E402
import schema  # noqa: E402
import sound  # noqa: E402
from frame import Finding, Section, Skipped  # noqa: E402

try:
    import jsonschema
except ImportError:
    jsonschema = None

LOADER = importlib.machinery.SourceFileLoader("acceptance_program", str(PROGRAM / "acceptance"))
SPECIFICATION = importlib.util.spec_from_loader(LOADER.name, LOADER)
program = importlib.util.module_from_spec(SPECIFICATION)
LOADER.exec_module(program)

OK, WARNING, ERROR = (Finding(level, level + " here", "do " + level) for level in ("ok", "warning", "error"))
HEADER = {"host": "5bce98f7", "date": "20261125-074115", "stand_in": False, "minutes": 10.0, "in_use": ""}


def report(*sections, **more):
    return frame.document({**HEADER, **more}, list(sections))


def section(verdict="yes", findings=(OK,), skipped=(), name="sound"):
    return Section(name, verdict, "a line", list(findings), list(skipped), 1.5)



class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="xschedd-acceptance-unit-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, text=""):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class Judge(unittest.TestCase):
    def verdict(self, *findings):
        judged = frame.judge("sound", list(findings), [], "all is well")
        return judged.verdict, judged.line

    def test_the_worst_finding_is_the_verdict_and_its_line(self):
        for findings, expected in (((OK,), ("yes", "all is well")),
                                   ((OK, WARNING), ("partly", "warning here; do warning")),
                                   ((WARNING, OK, ERROR), ("no", "error here; do error")),
                                   ((ERROR, WARNING, ERROR), ("no", "error here; do error (and 1 more)")),
                                   ((Finding("error", "broken"),), ("no", "broken"))):
            self.assertEqual(self.verdict(*findings), expected)

    def test_without_findings_the_verdict_is_unknown(self):
        self.assertEqual(self.verdict(), ("unknown", "nothing could be checked"))

    def test_findings_and_skips_are_kept(self):
        judged = frame.judge("sound", [OK, WARNING], [Skipped("a thing", "a reason")], "")
        self.assertEqual((judged.findings, judged.skipped), ([OK, WARNING], [Skipped("a thing", "a reason")]))


class Time(unittest.TestCase):
    def test_the_time_left_is_never_negative(self):
        now = [100.0]
        budget = frame.Budget(0.5, lambda: now[0])
        left = []
        for now[0] in (100.0, 110.0, 130.0, 1000.0):
            left.append(budget.left_s())
        self.assertEqual(left, [30.0, 20.0, 0.0, 0.0])

    def test_a_section_without_time_names_the_way_to_continue(self):
        class Place:
            folder = ""

        done = program.answer("sound", Place(), frame.Budget(0))
        self.assertEqual((done.verdict, done.line), ("unknown", "no time was left"))
        self.assertIn("--continue", done.skipped[0].why)


class Sections(InFolder):
    def answer(self, raised):
        def run(_place):
            raise raised

        class Place:
            folder = str(self.folder)

        self.addCleanup(program.SECTIONS.__setitem__, "sound", program.SECTIONS["sound"])
        program.SECTIONS["sound"] = run
        return program.answer("sound", Place(), frame.Budget(10))

    def test_a_failed_section_is_one_line_with_its_traceback_in_the_bundle(self):
        done = self.answer(RuntimeError("two\nlines"))
        self.assertEqual((done.verdict, done.line), ("unknown", "it could not be finished: two lines"))
        self.assertIn("RuntimeError", (self.folder / "failures.log").read_text())

    def test_an_exception_without_a_message(self):
        self.assertEqual(self.answer(KeyError()).line, "it could not be finished: KeyError")

    def test_a_step_that_times_out(self):
        done = self.answer(subprocess.TimeoutExpired(["probe"], 1))
        self.assertEqual(done.line, "it could not be finished: probe gave no answer in time")

    def test_ctrl_c_is_not_a_failure_of_a_section(self):
        with self.assertRaises(KeyboardInterrupt):
            self.answer(KeyboardInterrupt())

    def test_every_section_has_a_question_and_is_in_the_schema(self):
        known = schema.read()["properties"]["sections"]["items"]["properties"]["name"]["enum"]
        self.assertEqual(list(program.SECTIONS), list(frame.QUESTIONS))
        self.assertEqual(known, list(frame.QUESTIONS))


class Resume(InFolder):
    NAMES = ("node7", "5bce98f7")

    def begin(self, results=None, text=None):
        self.file("results.json", json.dumps(results) if text is None else text)
        return program.resume(str(self.folder), {**HEADER, "date": "20270101-000000", "minutes": 3.0}, self.NAMES)

    def refused(self, pattern, results=None, text=None):
        with self.assertRaisesRegex(Exception, pattern) as caught:
            self.begin(results, text)
        self.assertNotIn("\n", str(caught.exception))
        self.assertIn("; ", str(caught.exception))  # cause; remedy

    def test_only_sections_with_a_verdict_are_kept(self):
        for verdict in ("yes", "partly", "no"):
            header, sections = self.begin(report(section(verdict)))
            self.assertEqual((header, sections), (HEADER, [section(verdict)]))
        self.assertEqual(self.begin(report(section("unknown")))[1], [])

    def test_a_report_that_was_killed_before_its_first_section(self):
        for name in (None, "results.json.new"):
            if name:
                self.file(name, '{"sch')
            header, sections = program.resume(str(self.folder), HEADER, self.NAMES)
            self.assertEqual((header, sections), (HEADER, []))

    def test_a_report_of_another_node_or_device_is_refused(self):
        self.refused("begun on another node", report(section(), host="eeeeeeee"))
        self.refused("begun on another device", report(section(), stand_in=True))
        self.assertEqual(self.begin(report(section(), host="node7"))[0]["host"], "node7")  # by --show-host

    def test_a_folder_without_a_valid_report_is_refused(self):
        for text in ("", "\0\0", "{", "[]", "null", "1", '{"schema": "xschedctl/ps/1"}', "[" * 5000):
            self.refused("is not JSON|is not of xschedctl/acceptance/1", text=text)
        for spoilt in self.spoilt():
            self.refused("is not of xschedctl/acceptance/1", spoilt)

    @staticmethod
    def spoilt():
        """Copies of a valid report, each with one error."""
        good = report(section(skipped=[Skipped("a", "b")]))
        for path, wrong in ((["date"], "yesterday"), (["stand_in"], 0), (["minutes"], True), (["minutes"], "10"),
                            (["sections"], {}), (["sections", 0], []), (["sections", 0, "verdict"], "perhaps"),
                            (["sections", 0, "name"], "nobody's"), (["sections", 0, "findings", 0, "level"], "bad"),
                            (["sections", 0, "skipped", 0, "why"], None), (["more"], 1), (["sections", 0, "more"], 1)):
            spoilt = copy.deepcopy(good)
            inner = spoilt
            for step in path[:-1]:
                inner = inner[step]
            inner[path[-1]] = wrong
            yield spoilt
        for path in (["host"], ["sections", 0, "line"], ["sections", 0, "findings", 0, "fix"]):
            spoilt = copy.deepcopy(good)
            inner = spoilt
            for step in path[:-1]:
                inner = inner[step]
            del inner[path[-1]]
            yield spoilt


class Files(InFolder):
    def test_a_file_is_replaced_whole_or_not_at_all(self):
        path = self.file("results.json", "before")
        frame.write_whole(str(path), "after")
        self.assertEqual(path.read_text(), "after")
        with self.assertRaises(OSError):
            frame.write_whole(str(self.folder / "none/results.json"), "x")
        with self.assertRaises(UnicodeEncodeError):
            frame.write_whole(str(path), "\udcff")
        self.assertEqual(path.read_text(), "after")

    def test_a_file_that_cannot_be_written_is_reported_until_it_can(self):
        store = program.Store(str(self.folder / "later"))
        store.write(report(section()))
        self.assertEqual(store.complaint, "No such file or directory")
        os.mkdir(store.folder)
        store.write(report(section()))
        self.assertEqual((store.complaint, sorted(os.listdir(store.folder))), ("", ["report.html", "report.md", "results.json"]))
        self.assertEqual(frame.load(store.folder), report(section()))


class Schema(unittest.TestCase):
    def keywords(self, part):
        found = set(part)
        for inner in [*part.get("properties", {}).values(), *([part["items"]] if "items" in part else [])]:
            found |= self.keywords(inner)
        return found

    def test_our_validator_knows_every_keyword_of_the_schema(self):
        self.assertLessEqual(self.keywords(schema.read()), set(schema.KEYWORDS))

    def test_a_report_matches_the_schema(self):
        self.assertEqual(schema.problems(schema.read(), report(section(skipped=[Skipped("a", "b")]))), [])

    @unittest.skipIf(jsonschema is None, "no jsonschema: install python3-jsonschema")
    def test_our_validator_agrees_with_jsonschema(self):
        one = schema.read()
        jsonschema.Draft202012Validator.check_schema(one)
        validator = jsonschema.Draft202012Validator(one)
        for spoilt in Resume.spoilt():
            with self.subTest(spoilt):
                self.assertFalse(validator.is_valid(spoilt))
                self.assertEqual(len(schema.problems(one, spoilt)), len(list(validator.iter_errors(spoilt))))
        self.assertTrue(validator.is_valid(report(section())))


class Html(html.parser.HTMLParser):
    """Collects the tags and attributes of a page, and checks that each tag is closed."""

    VOID = {"meta", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], set(), ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (self.open, tag)
        self.open.pop()

    def handle_data(self, data):
        self.text += data


class Pages(unittest.TestCase):
    RESULTS = report(section("partly", [OK, WARNING, Finding("warning", "<b>&|`")], [Skipped("PyTorch", "it is not here")]))

    def test_a_page_is_one_file_that_loads_no_other(self):
        page = pages.page(self.RESULTS)
        parsed = Html(page)
        self.assertEqual(parsed.open, [])
        self.assertIn("svg", parsed.tags)
        self.assertEqual(parsed.attributes & {"src", "href", "srcset", "data", "action", "background"}, set())
        self.assertEqual({"script", "link", "img", "iframe", "object", "b"} & set(parsed.tags), set())
        self.assertNotRegex(page, r"http|url\(|@import")
        for text in ("<b>&|`", "PyTorch: it is not here", "Is it sound here?", "partly", "a line", "do warning"):
            self.assertIn(text, parsed.text)

    def test_the_picture_counts_findings(self):
        widths = dict((name, float(width)) for width, name in re.findall(
            r'width="([\d.]+)"[^>]*><title>(\d+ \w+)</title>', pages.picture(frame.sections_of(self.RESULTS)[0])))
        self.assertEqual(widths, {"1 ok": 150.0, "2 warning": 300.0, "1 skipped": 150.0})
        self.assertNotIn("rect", pages.picture(section(findings=[])))

    def test_the_text_has_the_same_findings(self):
        text = pages.markdown(self.RESULTS)
        for part in ("| Is it sound here? | partly | a line |", "- warning: warning here; do warning", "- ok: ok here",
                     "- skipped: PyTorch: it is not here", "**partly**: a line (1.5 s)"):
            self.assertIn(part, text)

    def test_a_software_gpu_is_named_first_everywhere(self):
        for is_stand_in in (True, False):
            results = report(section(), stand_in=is_stand_in)
            for text in (pages.page(results), pages.markdown(results), "\n".join(pages.summary(results)),
                         "\n".join(pages.comparison(results, report(section())))):
                self.assertEqual(pages.STAND_IN in text, is_stand_in)
                if is_stand_in:
                    self.assertLess(text.index(pages.STAND_IN), text.lower().index("sound here?" if "#" in text else "sound: "))

    def test_other_users_of_the_gpu_are_named(self):
        for who in ("", "pid 4711 has queues on an AMD GPU"):
            results = report(section(), in_use=who)
            for text in (pages.page(results), pages.markdown(results), "\n".join(pages.summary(results))):
                self.assertEqual("in use at the start: pid 4711" in text, bool(who))


class Comparison(unittest.TestCase):
    def lines(self, before, after):
        return [line for line in pages.comparison(report(*before), report(*after)) if line.startswith(("sound", " "))]

    def test_equal_reports(self):
        self.assertEqual(self.lines([section()], [section()]), ["sound: yes, as before"])

    def test_a_changed_verdict_and_a_finding_of_only_one_report(self):
        self.assertEqual(self.lines([section("yes", [OK])], [section("no", [OK, ERROR])]),
                         ["sound: yes -> no", "  + error: error here"])
        self.assertEqual(self.lines([section("no", [ERROR])], [section("yes", [OK])]),
                         ["sound: no -> yes", "  - error: error here", "  + ok: ok here"])

    def test_a_section_that_one_report_lacks(self):
        self.assertEqual(self.lines([], [section()])[0], "sound: absent -> yes")
        self.assertEqual(self.lines([section()], [])[0], "sound: yes -> absent")


class NodeFacts(InFolder):
    def facts(self, **more):
        return {"kernel": "6.8", "amdgpu": "", "rocm": "", "scheduler": "", "has_kfd": False, "may_use_kfd": False, "amd": [],
                "nvidia": [], **more}

    def card(self, **more):
        return {"index": "0", "name": "NVIDIA H200", "pci": "0000:03:00.0", "driver_version": "580.159.04",
                "compute_mode": "Default", "mig.mode.current": "Disabled", **more}

    def bad(self, **more):
        return [finding for finding in sound.of_node(self.facts(**more)) if finding.level != "ok"]

    def test_no_permission_on_kfd(self):
        [finding] = self.bad(has_kfd=True)
        self.assertEqual((finding.level, finding.what), ("error", "no permission on /dev/kfd"))
        self.assertIn("render", finding.fix)
        self.assertEqual(self.bad(has_kfd=True, may_use_kfd=True) + self.bad(), [])

    def test_exclusive_mode(self):
        for mode in ("Exclusive_Process", "Prohibited"):
            [finding] = self.bad(nvidia=[self.card(compute_mode=mode)])
            self.assertEqual((finding.level, finding.fix), ("warning", "nvidia-smi -i 0 -c DEFAULT"))
            self.assertIn(mode, finding.what)

    def test_a_driver_that_is_too_old(self):
        [finding] = self.bad(nvidia=[self.card(driver_version="460.106.00")])
        self.assertEqual((finding.level, finding.fix), ("warning", "update the driver"))
        for version in ("465.19.01", "580.159.04", "[N/A]"):
            self.assertEqual(self.bad(nvidia=[self.card(driver_version=version)]), [])

    def test_the_answer_of_nvidia_smi(self):
        text = "0, NVIDIA H200, 00000000:03:00.0, 580.159.04, Default, Disabled\nNo devices were found\n"
        self.assertEqual(node.nvidia(text), [self.card()])

    def test_the_topology_of_kfd(self):
        self.file("sys/class/kfd/kfd/topology/nodes/0/properties", "simd_count 0\n")
        self.file("sys/class/kfd/kfd/topology/nodes/1/properties",
                  "simd_count 304\ndomain 2\nlocation_id 49152\ngfx_target_version 90402\nnum_cp_queues 24\n")
        self.file("sys/bus/pci/devices/0002:c0:00.0/current_compute_partition", "SPX\n")
        self.file("sys/module/amdgpu/parameters/mes", "1\n")
        facts = node.read(str(self.folder))
        self.assertEqual(facts["amd"], [{"pci": "0002:c0:00.0", "isa": "gfx942", "compute_queues": "24", "compute_partition": "SPX",
                                         "memory_partition": "not reported"}])
        self.assertEqual((facts["has_kfd"], facts["scheduler"]), (False, "MES"))


class InUse(InFolder):
    def test_nvidia(self):
        self.assertEqual(idle.nvidia_users("", "0, 0\n1, 4\n"), [])
        self.assertEqual(idle.nvidia_users("4711\n", "0, 0\n"), ["pid 4711 computes on an NVIDIA GPU"])
        self.assertEqual(idle.nvidia_users("[Insufficient Permissions]\n", "0, 5\n1, [N/A]\n"), ["GPU 0 is 5 % busy"])

    def test_amd(self):
        (self.folder / "sys/class/kfd/kfd/proc/4711/queues").mkdir(parents=True)  # it has only opened /dev/kfd
        self.assertEqual(idle.read_amd(str(self.folder)), [])
        self.file("sys/class/kfd/kfd/proc/4711/queues/0/type")
        self.file("sys/class/drm/card1/device/gpu_busy_percent", "4\n")
        self.file("sys/class/drm/card2/device/gpu_busy_percent", "97\n")
        self.file("sys/class/drm/card3/device/gpu_busy_percent", "")
        self.assertEqual(idle.read_amd(str(self.folder)), ["pid 4711 has queues on an AMD GPU", "card2 is 97 % busy"])

    def test_one_line(self):
        self.assertEqual([idle.line([]), idle.line(["a"]), idle.line(["a", "b", "c"])], [None, "a", "a (and 2 more)"])


class Gpus(unittest.TestCase):
    GPU = {"name": "H200", "pci": "0000:03:00.0", "memory": "ok"}

    def native(self, *reasons, **more):
        return {"found": [{"vendor": "nvidia", "runtime": "CUDA 13.0", "gpus": [{**self.GPU, **more}]}], "reasons": list(reasons)}

    def bad(self, native, scheduled, named):
        return [(finding.level, finding.what) for finding in sound.of_gpus(native, scheduled, named) if finding.level != "ok"]

    def test_no_finding_on_a_good_node(self):
        self.assertEqual(self.bad(self.native("no libamdhip64.so"), self.native(), ["0000:03:00.0"]), [])

    def test_no_gpu_at_all(self):
        reasons = [probe.said("hipGetDeviceCount", 100), "no libcuda.so.1"]
        [(level, what)] = self.bad({"found": [], "reasons": reasons}, None, [])
        self.assertEqual((level, what), ("error", "no GPU can be opened: hipGetDeviceCount says 100: it sees no GPU; no libcuda.so.1"))

    def test_one_vendors_driver_is_broken_and_the_other_works(self):
        broken = probe.said("cuInit", 803)
        self.assertEqual(self.bad(self.native(broken), None, []), [("warning", broken)])
        self.assertEqual(self.bad(self.native(probe.said("hipGetDeviceCount", 100)), None, []), [])

    def test_error_codes_are_explained(self):
        for name, status, word in (("hipMalloc", 35, "too old"), ("cuInit", 804, "too old"), ("cuDevicePrimaryCtxRetain", 46, "exclusive")):
            self.assertRegex(probe.said(name, status), rf"^{name} says {status}: .*{word}")
        self.assertEqual(probe.said("cuInit", 35), "cuInit says 35")

    def test_differences_under_the_shim(self):
        for scheduled, named, word in ((self.native(memory="wrong"), ["0000:03:00.0"], "other memory"),
                                       (self.native(), ["0000:04:00.0"], "does not name 0000:03:00.0")):
            [(level, what)] = self.bad(self.native(), scheduled, named)
            self.assertEqual(level, "error")
            self.assertIn(word, what)
        self.assertEqual(self.bad(self.native(memory="wrong"), None, [])[0][0], "error")


class OldPython(unittest.TestCase):
    def test_a_python_that_is_too_old_is_reported_in_one_line(self):
        script = f"import runpy, sys; sys.version_info = (3, 6, 8); sys.argv = ['x']; runpy.run_path({str(PROGRAM / 'acceptance')!r})"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (program.REFUSED, 1), done.stderr)
        self.assertIn("is too old; install 3.8", done.stderr)


class Results(InFolder):
    """tools/results/take."""

    def take(self, results, name="h200-acceptance-0123abc"):
        self.file("report/results.json", json.dumps(results))
        (self.folder / "results").mkdir(exist_ok=True)
        done = subprocess.run([sys.executable, ROOT / "tools/results/take", self.folder / "report", name, "--into", self.folder / "results"],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stderr, sorted(os.listdir(self.folder / "results"))

    def test_a_report_becomes_a_page_and_a_json_file(self):
        name = "h200-acceptance-0123abc"
        self.assertEqual(self.take(report(section())), (0, "", [name + ".json", name + ".md"]))
        self.assertEqual(json.loads((self.folder / f"results/{name}.json").read_text()), report(section()))
        page = (self.folder / f"results/{name}.md").read_text()
        self.assertIn(pages.markdown(report(section())), page)
        self.assertIn(f"({name}.json)", page)

    def test_a_report_that_is_no_result_is_refused(self):
        for results, name, word in ((report(section(), host="node7"), "a", "names its host"), ({}, "a", "is not of xschedctl/acceptance/1"),
                                    (report(section()), "../a", "is not a file name")):
            status, said, written = self.take(results, name)
            self.assertEqual((status, len(said.splitlines()), written), (1, 1, []))
            self.assertIn(word, said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
