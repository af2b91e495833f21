#!/usr/bin/env python3
"""The pure parts of the libraries in acceptance's section harmless. No GPU, no daemon."""

import importlib
import math
import os
import struct
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "acceptance"), HERE, os.path.join(HERE, "gpu")]

import harmless  # noqa: E402
import libraries  # noqa: E402
import library_runs  # noqa: E402
from calls_runs import TRACKED, Outcome  # noqa: E402
from libraries import common, runtime  # noqa: E402


class Results(unittest.TestCase):
    def test_a_product(self):
        left, right = common.matrix(1), common.matrix(2)
        made = [sum(left[row + 16 * at] * right[at + 16 * column] for at in range(16)) for column in range(16) for row in range(16)]
        common.check_product(struct.pack("256f", *made), left, right)
        made[77] += 1
        self.assertRaises(common.Wrong, common.check_product, struct.pack("256f", *made), left, right)

    def test_a_softmax(self):
        made = [1 / 16] * 256
        common.check_softmax(struct.pack("256f", *made), [3.0] * 256)
        self.assertRaises(common.Wrong, common.check_softmax, struct.pack("256f", *made), [*[3.0] * 255, 4.0])
        self.assertAlmostEqual(sum(math.exp(3) / (16 * math.exp(3)) for _ in range(16)), 1)

    def test_each_launch_of_the_graph_counts(self):
        data = bytes(range(256)) * (runtime.calls_program.BYTES // 256)
        made = {runtime.expected(data, salt) for salt in range(3)}
        self.assertEqual((len(made), {len(one) for one in made}), (3, {len(data)}))
        self.assertNotIn(data, made)

    def test_each_library_has_a_file(self):
        for name in libraries.NAMES:
            module = importlib.import_module("libraries." + name)
            self.assertIn(module.VENDOR, ("", "amd", "nvidia"))
            self.assertTrue(callable(module.load) and callable(module.Work.once))


class Programs:
    """`said`: outcomes of runs without xschedd, by name, in order; `mine`: the outcome with it."""

    def __init__(self, said, mine=Outcome("a")):
        self.said, self.mine = said, mine

    left_s = staticmethod(lambda: 100.0)

    def native(self, name):
        return self.said[name].pop(0)


def run(said, mine=Outcome("a")):
    made = library_runs.run(Programs(said, mine), list(said), lambda programs, *_: programs.mine)
    return made, [(one.what, one.why) for one in made.skipped]


class Judging(unittest.TestCase):
    def test_a_library_that_is_absent_or_fails_without_xschedd_is_skipped_with_the_reason(self):
        made, skipped = run({"rocblas": [Outcome(failure="ended with status 3: no librocblas.so")],
                             "miopen": [Outcome("a"), Outcome(failure="ended by signal 11")], "cudnn": [Outcome("a"), Outcome("b")]})
        self.assertFalse(made.ours)
        self.assertEqual(skipped[0], ("rocBLAS", "no librocblas.so"))
        self.assertIn("does not run without xschedd either: ended by signal 11", skipped[1][1])
        self.assertIn("differ without xschedd", skipped[2][1])

    def test_a_row_for_each_library_that_ran(self):
        for mine, repeated, level, same in ((Outcome("a"), {}, "ok", 1), (Outcome("a", absent="no client"), {}, "warning", 0),
                                            (Outcome("b"), {}, "warning", 0),
                                            (Outcome("b"), {(TRACKED, "cublas"): harmless.Repeated([Outcome("a")], [Outcome("a")])}, "error", 1)):
            made, _ = run({"cublas": [Outcome("a"), Outcome("a")]}, mine)
            found, tables = harmless.judged_libraries(made, repeated, ["xschedctl"], {})
            self.assertEqual([one.level for one in found], [level])
            self.assertEqual([(row.name, row.values[0], row.values[2]) for row in tables[0].rows], [("cuBLAS", 2, same)])
        self.assertIn("--repeat tracked:cublas ;", found[0].fix)
        self.assertEqual(harmless.parsed("tracked:cublas"), (TRACKED, "cublas"))


if __name__ == "__main__":
    unittest.main()
