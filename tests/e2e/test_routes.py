"""Each way in which a launch can reach the runtime: it is gated, and gated once.

A client of another priority is attached beside the program, so that everything it submits is counted. The program sets up
and waits for a command; it is put on hold and started. Nothing may reach the device then. After its release, its own count
of launches must equal the device's trace, and its count of submissions the daemon's.
"""

import pathlib
import re
import subprocess
import sys
import unittest

import harness
from harness import wait_for

LAUNCHES = 40
MICROS = 300

FOLDER = harness.programs / "programs/routes"
SHIM = harness.BUILD / "client-shim/libxschedd-shim.so"
TOOL = FOLDER / "libroute_tool.so"
LIBRARY = FOLDER / "libroute.so"
OTHER = FOLDER / "libroute_other.so"
SECOND = "xschedd: this process works with a second HIP runtime"

# A Python that loads an extension which is linked with HIP, as `import torch` does.
PYTHON = """
import ctypes, sys
work = ctypes.CDLL(sys.argv[1]).route_work  # RTLD_LOCAL
work.argtypes = [ctypes.c_uint, ctypes.c_ulonglong, ctypes.c_char_p]
sys.exit(work(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].encode()))
"""


def has_ggl():
    """Whether the program's runtime exports the function."""
    libraries = subprocess.run(["ldd", FOLDER / "route_pie"], check=True, capture_output=True, text=True).stdout
    return b"hipLaunchKernelGGLImpl" in pathlib.Path(re.search(r"libamdhip64\S* => (\S+)", libraries).group(1)).read_bytes()


class RouteTest(harness.NodeTest):
    """A program and its stages."""
    route = "symbols"  # the way in which the runtime's calls should reach the shim

    def setUp(self):
        super().setUp()
        self.anchor = None

    def begin(self, program, *arguments, environment=None, daemon=True):
        """Starts a program beside a client of another priority."""
        if daemon:
            self.node.start_daemon()
            self.anchor = self.node.start_anchor(priority=50)
        environment = {"E2E_CODE_OBJECT": str(harness.programs / "module_kernel.co"), **(environment or {})}
        return self.node.start(program, *arguments, priority=-10, interactive=True, environment=environment)

    def expect(self, process, word):
        """The rest of the program's next line, which begins with `word`."""
        line = process.stdout.readline()
        if not line.startswith(word):
            process.kill()
            self.fail(f"not '{word}' but '{line.strip()}': {process.stderr.read()}")
        return line[len(word):]

    def submitted(self, pid):
        return int(self.node.device_state(pid).get("submitted", 0))

    def on_device(self, pid):
        return self.node.dispatches(pid, kernel=None)

    def check(self, process, while_held=None):
        """One scheduled run of route_work: held, released, counted. `while_held` is called in between."""
        node, pid = self.node, process.pid
        self.expect(process, "ready")
        client = wait_for(lambda: node.clients().get(pid), "it is a client")
        self.assertEqual(client["route"], self.route)
        node.hold(pid)
        wait_for(lambda: node.device_state(pid).get("held_for"), "ps shows what it is held for")
        before, dispatched = self.submitted(pid), len(self.on_device(pid))
        node.tell(process, "go")
        wait_for(lambda: node.device_state(pid).get("state") == "held" or len(self.on_device(pid)) > dispatched or
                 process.poll() is not None, "the first launch comes to the gate")
        # Meanwhile another client's work passes: the device is free, only this client waits.
        node.tell(self.anchor, "work 20 200")
        self.assertEqual(self.anchor.stdout.readline().strip(), "done")
        self.assertEqual(len(self.on_device(pid)), dispatched, "work reached the device while held")
        if while_held:
            while_held()
        node.ctl("release", "--pid", pid)
        launches, submissions = self.verdict(process)
        wait_for(lambda: self.submitted(pid) >= before + submissions, "the daemon sees what was submitted")
        self.assertEqual(self.submitted(pid) - before, submissions, "each submission is gated once")
        return launches

    def check_unscheduled(self, process):
        """One run of route_work that is not scheduled: not held, not counted, and right."""
        node, pid = self.node, process.pid
        self.expect(process, "ready")
        node.ctl("hold", "--pid", pid, check=False)
        before = self.submitted(pid)
        node.tell(process, "go")
        launches, _ = self.verdict(process)
        self.assertEqual(self.submitted(pid), before, "none of its work is counted")
        node.ctl("release", "--pid", pid, check=False)
        return launches

    def verdict(self, process):
        words = self.expect(process, "right:").replace(",", "").split()
        return int(words[0]), int(words[2])

    def end(self, process, launches):
        """Lets the program end; the device has run as many kernels as it launched. Returns what it wrote to stderr."""
        out, err = process.communicate(timeout=harness.DEADLINE_S)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual(len(self.node.dispatches(process.pid)), launches, "each launch reaches the device once")
        return err

    def check_alone(self, *command, environment=None):
        process = self.begin(*command, environment=environment)
        launches = self.check(process)
        return self.end(process, launches)

    def check_load(self, *steps):
        self.check_alone(FOLDER / "load", LAUNCHES, MICROS, *steps)


class Routes(RouteTest):
    # ---- by the linker --------------------------------------------------------------------------------------------
    def test_linked(self):
        self.check_alone(FOLDER / "route_pie", LAUNCHES, MICROS, "launch")

    def test_address_in_a_pie(self):
        self.check_alone(FOLDER / "route_pie", LAUNCHES, MICROS, "address")

    def test_address_in_a_fixed_program(self):
        # Here the address of a function is that of an entry of the program's own table.
        self.check_alone(FOLDER / "route_fixed", LAUNCHES, MICROS, "address")

    def test_library_of_a_plugin_host(self):
        self.check_load(f"open:{LIBRARY}", "launch")

    def test_library_of_python(self):
        self.check_alone(sys.executable, "-c", PYTHON, LIBRARY, LAUNCHES, MICROS, "launch")

    def test_cpp_name_of_ext_launch(self):
        self.check_alone(FOLDER / "route_pie", LAUNCHES, MICROS, "ext-module")

    def test_cpp_name_of_hcc_launch(self):
        self.check_alone(FOLDER / "route_pie", LAUNCHES, MICROS, "hcc-module")

    @unittest.skipUnless(has_ggl(), "this ROCm has no hipLaunchKernelGGLImpl")
    def test_launch_ggl(self):
        self.check_alone(FOLDER / "route_pie", LAUNCHES, MICROS, "ggl")

    # ---- by name --------------------------------------------------------------------------------------------------
    def test_dlsym_default(self):
        self.check_alone(FOLDER / "route_pie", LAUNCHES, MICROS, "default-dlsym")

    def test_dlvsym_default(self):
        self.check_alone(FOLDER / "route_pie", LAUNCHES, MICROS, "default-dlvsym")

    def test_dlsym_next(self):
        # From the program itself, which is in front of the shim.
        self.check_alone(FOLDER / "route_pie", LAUNCHES, MICROS, "next-dlsym")

    def test_dlsym_next_behind(self):
        # From a library behind the shim, whose runtime is not in the global scope.
        self.check_load(f"open:{LIBRARY}", "next-dlsym")

    def test_dlvsym_next_behind(self):
        self.check_load(f"open:{LIBRARY}", "next-dlvsym")

    def test_dlsym_default_of_a_local_library(self):
        self.check_load(f"open:{LIBRARY}", "default-dlsym")

    def test_dlsym_next_of_a_global_library(self):
        self.check_load(f"global:{LIBRARY}", "next-dlsym")

    # ---- calls that the runtime makes itself ------------------------------------------------------------------------
    def test_copy_to_symbol(self):
        process = self.begin(FOLDER / "route_pie", LAUNCHES, MICROS, "to-symbol")
        self.check(process)
        self.end(process, 0)

    # ---- beside a tool that counts the same launches --------------------------------------------------------------
    def check_tool(self, *command, environment=None):
        err = self.check_alone(*command, LAUNCHES, MICROS, "launch", environment=environment)
        self.assertIn(f"tool: {LAUNCHES} launches", err, "the tool sees each launch")

    def test_tool_behind(self):
        # `xschedctl run` puts the shim in front of other preloaded libraries.
        self.check_tool(FOLDER / "route_pie", environment={"LD_PRELOAD": str(TOOL)})

    def test_tool_in_front(self):
        self.check_tool("/usr/bin/env", f"LD_PRELOAD={TOOL}:{SHIM}", FOLDER / "route_pie")

    # ---- more than one runtime ------------------------------------------------------------------------------------
    def test_second_runtime(self):
        """Loaded while the first is in use: it runs right and unscheduled, which is reported once; the first continues."""
        process = self.begin(FOLDER / "load", LAUNCHES, MICROS, f"open:{LIBRARY}", "launch@0", f"open:{OTHER}",
                             "launch@1", "launch@0", "launch@1")
        launches = self.check(process)
        self.node.tell(process, "on")
        launches += self.check_unscheduled(process)
        self.node.tell(process, "on")
        launches += self.check(process)
        self.node.tell(process, "on")
        launches += self.check_unscheduled(process)
        self.assertEqual(self.end(process, launches).count(SECOND), 1)

    def test_second_runtime_called_first(self):
        """Of two that are loaded, the one whose functions are called first is scheduled."""
        process = self.begin(FOLDER / "load", LAUNCHES, MICROS, f"open:{LIBRARY}", f"open:{OTHER}", "launch@1",
                             "launch@0")
        launches = self.check(process)
        self.node.tell(process, "on")
        launches += self.check_unscheduled(process)
        self.assertEqual(self.end(process, launches).count(SECOND), 1)

    def check_without_daemon(self, environment):
        """Nothing is scheduled, but each of two runtimes still gets its own calls."""
        process = self.begin(FOLDER / "load", LAUNCHES, MICROS, f"open:{LIBRARY}", "launch@0", f"open:{OTHER}",
                             "launch@1", "to-symbol@0", "next-dlsym@1", environment=environment, daemon=False)
        for _ in range(4):
            self.expect(process, "ready")
            self.node.tell(process, "go")
            self.verdict(process)
            self.node.tell(process, "on")
        self.end(process, 3 * LAUNCHES)

    def test_second_runtime_without_daemon(self):
        self.check_without_daemon({})

    def test_second_runtime_disabled(self):
        self.check_without_daemon({"XSCHEDD_DISABLE": "1"})

    def test_runtime_closed_and_opened(self):
        """The client uses the runtime for the life of the process, so it is not unloaded."""
        process = self.begin(FOLDER / "load", LAUNCHES, MICROS, f"open:{LIBRARY}", "launch", "close", "pause",
                             f"open:{LIBRARY}", "launch")
        launches = self.check(process)
        self.node.tell(process, "on")
        self.expect(process, "paused")
        self.assertIn("libamdhip64", pathlib.Path(f"/proc/{process.pid}/maps").read_text())
        self.node.tell(process, "on")
        launches += self.check(process)
        self.end(process, launches)

    # ---- a limit (docs/explanation/shim.md) -----------------------------------------------------------------------------------
    def test_deepbind_is_not_intercepted(self):
        """RTLD_DEEPBIND binds a library past every preloaded object: it runs right, and unscheduled."""
        process = self.begin(FOLDER / "load", LAUNCHES, MICROS, f"deep:{LIBRARY}", "launch")
        self.end(process, self.check_unscheduled(process))


if __name__ == "__main__":
    unittest.main()
