"""What a killed program leaves behind: tools/bench/benchlib/processes.py and tools/bench/acceptance/private.py. No GPU, no daemon.

usage: leaves_nothing_test.py SOURCE_ROOT
"""

import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import unittest
from unittest import mock

BENCH = pathlib.Path(sys.argv[1]) / "tools/bench"
sys.path[:0] = [str(BENCH), str(BENCH / "acceptance")]

import private  # noqa: E402
from benchlib.processes import dies_with_this_process  # noqa: E402

LIMIT_S = 60.0


def forked(function) -> int:
    """The pid of a child that runs `function` and ends."""
    pid = os.fork()
    if pid == 0:
        try:
            function()
        finally:
            os._exit(0)
    return pid


class LeavesNothing(unittest.TestCase):
    def test_a_child_whose_parent_was_killed_before_it_could_ask_for_the_signal(self):
        read, write = os.pipe()

        def parent():
            before_exec, me = dies_with_this_process(), os.getpid()

            def child():
                while os.getppid() == me:
                    time.sleep(0.001)
                before_exec()
                os.write(write, b"lives")

            forked(child)
            os.kill(me, signal.SIGKILL)

        os.waitpid(forked(parent), 0)
        os.close(write)
        with os.fdopen(read, "rb") as file:
            self.assertEqual(file.read(), b"")

    def test_a_child_lives_with_its_parent(self):
        before_exec = dies_with_this_process()
        self.assertEqual(os.waitpid(forked(before_exec), 0)[1], 0)

    def test_a_folder_in_which_others_write_for_a_while_after_its_program_was_killed(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        removes, tries = shutil.rmtree, []

        def rmtree(path, **options):
            tries.append(path)
            if len(tries) > 3:
                removes(path, **options)

        def program():
            with mock.patch.object(tempfile, "tempdir", folder), mock.patch.object(shutil, "rmtree", rmtree), private.PrivateFolder():
                os.kill(os.getpid(), signal.SIGKILL)

        os.waitpid(forked(program), 0)
        end = time.monotonic() + LIMIT_S
        while os.listdir(folder):
            self.assertLess(time.monotonic(), end, os.listdir(folder))
            time.sleep(0.02)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
