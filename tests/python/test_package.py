"""The Python package without any GPU work: run by versions_test.py under each installed Python, with the shim and without.

usage: test_package.py with|without
"""

import ctypes
import os
import stat
import sys
import tempfile
import threading
import unittest

import xschedd

SHIM = sys.argv[1] == "with"
NOTHING = xschedd.Result.NOT_CONNECTED if SHIM else xschedd.Result.NO_SHIM


class TorchStream:
    cuda_stream = 0x1000


class CupyStream:
    ptr = 0x2000


class NumbaStream:
    handle = ctypes.c_void_p(0x3000)


class Hints(unittest.TestCase):
    def test_state(self):
        self.assertIs(xschedd.state(), xschedd.State.IDLE if SHIM else xschedd.State.NO_SHIM)
        self.assertFalse(xschedd.is_scheduled())
        self.assertEqual(bool(xschedd.shim_version()), SHIM)
        self.assertIsNone(xschedd.device_status(0))
        self.assertEqual(xschedd.status().devices, ())

    def test_hints_of_the_process_are_remembered(self):
        self.assertIs(xschedd.hint(priority=20, weight=300, deadline_ms=16.6), NOTHING)
        status = xschedd.status()
        if SHIM:
            self.assertEqual((status.priority_hint, status.weight_hint, status.deadline_ms), (20, 300, 16.6))
        else:
            self.assertEqual((status.priority_hint, status.weight_hint, status.deadline_ms), (None, None, None))
        self.assertIs(xschedd.hint(priority=None, weight=None, deadline_ms=None), NOTHING)
        status = xschedd.status()
        self.assertEqual((status.priority_hint, status.weight_hint, status.deadline_ms), (None, None, None))

    def test_streams(self):
        for stream in (None, 0, 4711, ctypes.c_void_p(5), ctypes.c_void_p(), TorchStream(), CupyStream(), NumbaStream()):
            self.assertIs(xschedd.hint(stream, priority=1), NOTHING)
        for wrong in (True, "stream", 1.5, object()):
            with self.assertRaises(TypeError):
                xschedd.hint(wrong, priority=1)
        for wrong in (-1, 1 << 64):
            with self.assertRaises(ValueError):
                xschedd.hint(wrong, priority=1)

    def test_values_out_of_range(self):
        for options in ({"priority": 101}, {"priority": -101}, {"weight": 0}, {"weight": 10001}, {"deadline_ms": 0},
                        {"deadline_ms": -1}, {"deadline_ms": 3600001}, {"deadline_ms": float("nan")}):
            for stream in ((), (None,)):
                with self.assertRaises(ValueError, msg=options):
                    xschedd.hint(*stream, **options)
        for options in ({}, {"priority": "high"}, {"priority": 1.5}, {"weight": True}):
            with self.assertRaises(TypeError, msg=options):
                xschedd.hint(**options)
        for block in (lambda: xschedd.priority(101), lambda: xschedd.weight(0), lambda: xschedd.deadline(0),
                      lambda: xschedd.group("g" * 256), lambda: xschedd.group("\0"), lambda: xschedd.hold(0),
                      lambda: xschedd.hold(3601), lambda: xschedd.hold(1, device=64), lambda: xschedd.device_status(64)):
            with self.assertRaises(ValueError):
                block()
        with self.assertRaises(TypeError):
            xschedd.hold(1, device=1, stream=None)

    def test_holds_and_groups(self):
        self.assertIs(xschedd.hold(1), NOTHING)
        self.assertIs(xschedd.release(), NOTHING)
        self.assertIs(xschedd.hold(1, stream=None), NOTHING)
        self.assertIs(xschedd.release(stream=None), NOTHING)
        with xschedd.held(0.5, device=0) as result:
            self.assertIs(result, NOTHING)
        self.assertIs(xschedd.group("ranks"), xschedd.Result.OK if SHIM else NOTHING)

    def test_hints_of_streams_are_independent(self):
        for on in (True, False):
            self.assertIs(xschedd.schedule_streams(on), xschedd.Result.OK if SHIM else NOTHING)
            self.assertIs(xschedd.status().schedules_streams, on and SHIM)
        self.assertEqual(xschedd.status().streams_held_ns, 0)

    @staticmethod
    def hinted():
        return xschedd.status().priority_hint

    def test_blocks(self):
        def expect(priority):
            self.assertEqual(self.hinted(), priority if SHIM else None)

        with xschedd.priority(20) as block:
            self.assertIs(block.result, NOTHING)
            expect(20)
            with xschedd.priority(-5), xschedd.weight(50), xschedd.deadline(5):
                expect(-5)
                self.assertEqual(xschedd.status().weight_hint, 50 if SHIM else None)
            expect(20)
        expect(None)
        xschedd.hint(priority=7)
        with self.assertRaises(KeyError), xschedd.priority(20):
            raise KeyError
        expect(7)
        xschedd.hint(priority=None)

        @xschedd.priority(30)
        def important(depth):
            expect(30)
            if depth > 0:
                important(depth - 1)
            expect(30)
            return depth

        self.assertEqual(important(2), 2)
        expect(None)

    def test_blocks_of_threads_that_end_in_another_order(self):
        first_is_in, second_is_in = threading.Event(), threading.Event()

        def other():
            first_is_in.wait()
            with xschedd.priority(40):
                second_is_in.set()
                first_is_out.wait()
                self.inside = self.hinted()

        first_is_out = threading.Event()
        thread = threading.Thread(target=other)
        thread.start()
        with xschedd.priority(20):
            first_is_in.set()
            second_is_in.wait()
        first_is_out.set()
        thread.join()
        self.assertEqual(self.inside, 40 if SHIM else None)
        self.assertIsNone(self.hinted())


class Control(unittest.TestCase):
    """With a fake xschedctl whose output the test sets."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="xschedd-python-")
        self.addCleanup(self.folder.cleanup)

    def pretend(self, script):
        path = os.path.join(self.folder.name, "xschedctl")
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(path, stat.S_IRWXU)
        os.environ["XSCHEDCTL"] = path
        self.addCleanup(os.environ.pop, "XSCHEDCTL", None)

    def test_xschedctl_is_not_installed(self):
        if any(os.access(path, os.X_OK) for path in ("/usr/bin/xschedctl", "/usr/local/bin/xschedctl")):
            self.skipTest("xschedctl is installed")
        self.pretend("")
        os.environ["XSCHEDCTL"] += "-not"
        with self.assertRaisesRegex(xschedd.CtlError, "there is no xschedctl; install it"):
            xschedd.clients()

    def test_answers(self):
        self.pretend('echo "$*" >"$(dirname "$0")/asked"; [ -z "$LD_PRELOAD" ] || exit 9\n'
                     'echo \'{"clients": [{"pid": 4711}], "devices": [{"busy": 2}]}\'')
        self.assertEqual(xschedd.clients(runtime_dir="/there")[0]["pid"], 4711)
        with open(os.path.join(self.folder.name, "asked")) as asked:
            self.assertEqual(asked.read().split(), ["--runtime-dir", "/there", "--json", "ps"])
        self.assertEqual(xschedd.devices()[0]["busy"], 2)

    def test_errors(self):
        for code, error in ((3, xschedd.NoDaemonError), (4, xschedd.NotPermittedError), (6, xschedd.CtlError)):
            self.pretend('echo "xschedctl: it is so; do that" >&2\nexit %d' % code)
            for ask in (xschedd.clients, lambda: next(xschedd.events()), lambda: list(xschedd.events(follow=True))):
                with self.assertRaisesRegex(error, "^it is so; do that$") as raised:
                    ask()
                self.assertEqual(raised.exception.code, code)

    def test_events_until_closed(self):
        self.pretend('echo "$*" >"$(dirname "$0")/asked"\nfor n in 1 2 3; do echo "{\\"count\\": $n}"; done\nexec sleep 600')
        with xschedd.events(follow=True, replay=True) as stream:
            self.assertEqual([next(stream)["count"] for _ in range(3)], [1, 2, 3])
        with open(os.path.join(self.folder.name, "asked")) as asked:
            self.assertEqual(asked.read().split(), ["--json", "events", "--follow", "--replay"])
        with self.assertRaises(StopIteration):
            next(stream)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
