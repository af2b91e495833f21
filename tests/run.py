"""Runs a Python test script for Meson: `run.py SCRIPT [ARG...]` is `python3 SCRIPT ARG...`, and also reports skips.

Exit code 1: a test failed, or none ran. 77: none failed, and for each test that was skipped a line
`skipped: NAME: REASON` was printed, which tally.py collects. The scripts also run without this one.
"""

import os
import runpy
import sys
import unittest


class Program(unittest.TestProgram):
    def runTests(self):
        self.verbosity = max(self.verbosity, 2)  # so that the log of a test that hangs ends with its name
        self.warnings = None  # tests leave pipes open until they end
        exits, self.exit = self.exit, False
        super().runTests()
        for test, reason in self.result.skipped:
            print(f"skipped: {test.id().replace('__main__.', '')}: {reason}", flush=True)
        if exits:
            if self.result.testsRun == 0 and not self.result.skipped or not self.result.wasSuccessful():
                sys.exit(1)
            sys.exit(77 if self.result.skipped else 0)


unittest.main = Program
del sys.argv[0]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
