"""The Python package in a process with GPU work (programs/python_client.py): its hints reach the daemon, and the
daemon's data comes back through xschedctl. Without a daemon or a shim it has no effect."""

import os
import pathlib
import sys
import unittest

import harness
from harness import wait_for

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
sys.path.insert(0, str(PACKAGE))

import xschedd  # noqa: E402


class PythonProgram:
    def __init__(self, node, environment=None, **options):
        self.node = node
        self.process = node.start(sys.executable, pathlib.Path(__file__).parent / "programs/python_client.py",
                                  interactive=True, **options,
                                  environment={"HOST_CODE_OBJECT": str(harness.programs / "module_kernel.co"),
                                               "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1",
                                               "XSCHEDCTL": str(harness.ctl_path), **(environment or {})})
        self.pid = self.process.pid
        self.read("ready")

    def read(self, wanted=None):
        line = self.process.stdout.readline().rstrip("\n")
        if not line or wanted not in (None, line):
            raise AssertionError(f"{line!r}: {self.process.stderr.read()}")
        return line

    def say(self, expression):
        self.node.tell(self.process, expression)
        return self.read()


class Python(harness.NodeTest):
    def setUp(self):
        super().setUp()
        os.environ["XSCHEDCTL"] = str(harness.ctl_path)

    def clients(self):
        return {client["pid"]: client for client in xschedd.clients(runtime_dir=str(self.node.runtime_dir))}

    def shows(self, program, **wanted):
        wait_for(lambda: all(self.clients()[program.pid][name] == value for name, value in wanted.items()),
                 f"clients() shows {wanted}")

    def end(self, program):
        out, err = program.process.communicate(timeout=harness.DEADLINE_S)
        self.assertEqual((program.process.returncode, out), (0, ""), err)
        self.assertNotIn("xschedd:", err)

    def test_scheduled(self):
        self.node.start_daemon()
        program = PythonProgram(self.node)
        wait_for(lambda: program.say("xschedd.state()") == "<State.SCHEDULED: 2>", "it is scheduled")
        self.assertEqual(program.say("xschedd.status().devices"), "(0,)")
        self.assertEqual(program.say("xschedd.priority(20).__enter__().result"), "<Result.OK: 0>")
        self.shows(program, priority_effective=20, priority_source="hint")
        self.assertEqual(program.say("xschedd.hint(stream, priority=40, weight=300)"), "<Result.OK: 0>")
        self.shows(program, priority_effective=40, weight=300)
        self.assertEqual(program.say("stream.destroy()"), "None")
        self.shows(program, priority_effective=20, weight=100)

        # Its own hold delays its work until it expires, and is counted.
        self.assertEqual(program.say("[xschedd.hold(0.1), launch(None, 1000), wait()]"), "[<Result.OK: 0>, None, None]")
        self.assertEqual(program.say("xschedd.status().own_held_ns > 0"), "True")

        # Beside a client of another priority it is tracked, and counted.
        anchor = self.node.start_anchor(priority=-50)
        wait_for(lambda: program.say("xschedd.device_status(0).tracked") == "True", "tracked")
        program.say("[launch(None, 1000), wait()]")
        self.assertEqual(program.say("xschedd.device_status(0).submitted > 0"), "True")
        self.assertEqual(len(xschedd.devices(runtime_dir=str(self.node.runtime_dir))), 1)
        self.assertIsNone(anchor.poll())
        self.end(program)

    def test_events(self):
        self.node.start_daemon()
        directory = str(self.node.runtime_dir)
        with xschedd.events(follow=True, replay=True, runtime_dir=directory) as following:
            program = PythonProgram(self.node, priority=10)
            kinds = []
            while "device" not in kinds:
                event = next(following)
                if event["pid"] in (0, program.pid):
                    kinds.append(event["kind"])
            self.assertIn("connected", kinds)
        past = [event["kind"] for event in xschedd.events(runtime_dir=directory) if event["pid"] == program.pid]
        self.assertEqual(past[:1], ["connected"])
        self.end(program)
        self.node.stop_daemon()
        with self.assertRaisesRegex(xschedd.NoDaemonError, "daemon"):
            xschedd.clients(runtime_dir=directory)

    def check_harmless(self, program, hints, holds, state):
        self.assertEqual(program.say("xschedd.state().name"), repr(state))
        for words in ("priority=20", "None, priority=20", "stream, weight=20, deadline_ms=5"):
            self.assertEqual(program.say(f"xschedd.hint({words}).name"), repr(hints))
        self.assertEqual(program.say("xschedd.hold(0.001).name"), repr(holds))
        program.say("[launch(stream, 10), wait()]")
        self.assertEqual(program.say("xschedd.device_status(0)"), "None")
        self.end(program)

    def test_without_daemon(self):
        self.check_harmless(PythonProgram(self.node), "NOT_CONNECTED", "OK", "UNSCHEDULED")

    def test_without_shim(self):
        self.check_harmless(PythonProgram(self.node, shim=False), "NO_SHIM", "NO_SHIM", "NO_SHIM")

    def test_disabled(self):
        self.check_harmless(PythonProgram(self.node, environment={"XSCHEDD_DISABLE": "1"}), "INERT", "INERT", "INERT")


if __name__ == "__main__":
    unittest.main()
