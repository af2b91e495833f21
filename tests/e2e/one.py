"""Runs one test by name, for Meson: exit code 77 when it was skipped, so that a skip is not counted as a pass."""

import sys
import unittest

suite = unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])
result = unittest.TextTestRunner(verbosity=2).run(suite)
if result.testsRun == 0 or not result.wasSuccessful():
    sys.exit(1)
sys.exit(77 if result.skipped else 0)
