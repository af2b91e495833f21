#!/usr/bin/env python3
"""The pure parts of acceptance's section harmless: sequences, time, judging. No GPU, no daemon."""

import os
import sys
import unittest
import unittest.mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "acceptance"), HERE, os.path.join(HERE, "gpu")]

import harmless  # noqa: E402
import sequence  # noqa: E402
from harmless import HELD, KILLED, TRACKED, Outcome  # noqa: E402


class Sequence(unittest.TestCase):
    def test_a_seed_is_always_the_same_and_no_other(self):
        self.assertEqual(sequence.steps(3, 2), sequence.steps(3, 2))
        self.assertEqual(len({tuple(sequence.steps(seed, lane)) for seed in range(4) for lane in range(sequence.LANES)}),
                         4 * sequence.LANES)

    def test_every_kind_is_there(self):
        for lane in range(sequence.LANES):
            made = sequence.steps(1, lane)
            self.assertEqual({step.kind for step in made}, set(sequence.KINDS))
            self.assertEqual({step.stream for step in made}, set(range(sequence.STREAMS)))
            self.assertEqual(len(made), sequence.LENGTH)

    def test_what_is_never_allowed(self):
        for step in (step for seed in range(20) for step in sequence.steps(seed, 0)):
            self.assertNotEqual(step.buffer, step.other)
            self.assertFalse(step.kind == "graph" and step.stream == 0)


class Judging(unittest.TestCase):
    NATIVES = {1: [Outcome("a"), Outcome("a")]}

    def levels(self, ours, natives=None):
        found, skipped = harmless.judged(natives or self.NATIVES, ours)
        return [(one.level, one.what.split(":")[0]) for one in found], [one.what for one in skipped]

    def test_the_same_data(self):
        self.assertEqual(self.levels({(TRACKED, 1): Outcome("a"), (HELD, 1): Outcome("a")}), ([("ok", TRACKED), ("ok", HELD)], []))

    def test_other_data_or_another_end_is_an_error_with_its_seed(self):
        found, _ = harmless.judged(self.NATIVES, {(HELD, 1): Outcome("b"), (KILLED, 1): Outcome(failure="ended by signal 6")})
        self.assertEqual([one.level for one in found], ["error", "error"])
        self.assertEqual(found[0].what, "held: seed 1: other data than without xschedd")
        self.assertIn("ended by signal 6", found[1].what)
        self.assertIn("calls_program.py 1;", found[0].fix)

    def test_what_differs_or_fails_natively_is_not_compared(self):
        natives = {1: [Outcome("a"), Outcome("b")], 2: [Outcome("a"), Outcome(failure="no")], 3: [Outcome("c"), Outcome("c")]}
        ours = {(TRACKED, seed): Outcome("c") for seed in natives}
        self.assertEqual(self.levels(ours, natives), ([("ok", TRACKED)], ["seed 1", "seed 2"]))

    def test_a_seed_is_compared_if_it_has_one_result_without_xschedd(self):
        for outcomes, is_compared in ((("a", "a"), True), (("a", "b"), False)):
            self.assertEqual(harmless.why_not_compared([Outcome(digest) for digest in outcomes]) == "", is_compared)
        self.assertIn("ended", harmless.why_not_compared([Outcome("a"), Outcome(failure="it ended by signal 6")]))

    def test_only_what_is_compared_is_run_and_counted(self):
        class Faked:
            run_s, seen = 1.0, []
            left_s = limit_s = staticmethod(lambda *_: 25.0)
            why_no_daemon = ""

            def __init__(self, *_):
                self.number = 0

            def native(self, seed):
                self.number += 1
                return Outcome("a" if seed == 1 else f"{self.number}")  # the second seed gives something else each time

            def ours(self, way, seed):
                self.seen.append((way, seed))
                return Outcome("a")

        with unittest.mock.patch.object(harmless, "Programs", Faked):
            section = harmless.run(Faked())
        self.assertEqual(Faked.seen, [(way, 1) for way in harmless.WAYS])
        self.assertTrue(section.line.startswith(f"{len(harmless.WAYS)} runs"), section.line)
        self.assertEqual([one.what for one in section.skipped], ["seed 2"])

    def test_time(self):
        self.assertEqual((harmless.whole_s(600), harmless.whole_s(60)), (harmless.MOST_S, 12.0))
        self.assertEqual([len(harmless.seeds_of(seconds, 1.0)) for seconds in (0, 1, 25, 1000)], [1, 1, 2, harmless.MOST_SEEDS])


if __name__ == "__main__":
    unittest.main()
