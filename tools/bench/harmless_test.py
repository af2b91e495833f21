#!/usr/bin/env python3
"""The pure parts of acceptance's section harmless: sequences, time, judging. No GPU, no daemon."""

import os
import sys
import unittest
import unittest.mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "acceptance"), HERE, os.path.join(HERE, "gpu")]

import calls_runs  # noqa: E402
import harmless  # noqa: E402
import sequence  # noqa: E402
from calls_runs import HELD, KILLED, REPRIORITISED, TRACKED, Outcome  # noqa: E402
from harmless import Repeated  # noqa: E402
from turns import NoAnswer  # noqa: E402


class Sequence(unittest.TestCase):
    def test_a_seed_always_gives_the_same_sequence_and_others_give_others(self):
        self.assertEqual(sequence.steps(3, 2), sequence.steps(3, 2))
        self.assertEqual(len({tuple(sequence.steps(seed, lane)) for seed in range(4) for lane in range(sequence.LANES)}),
                         4 * sequence.LANES)

    def test_every_kind_of_call_occurs(self):
        for lane in range(sequence.LANES):
            made = sequence.steps(1, lane)
            self.assertEqual({step.kind for step in made}, set(sequence.KINDS))
            self.assertEqual({step.stream for step in made}, set(range(sequence.STREAMS)))
            self.assertEqual(len(made), sequence.LENGTH)

    def test_the_launch_that_is_lost_on_purpose_changes_the_data(self):
        for seed in range(1, 20):
            made = sequence.steps(seed, 0)
            at = sequence.last_visible_kernel(made)
            self.assertEqual(made[at].kind, "kernel")
            self.assertFalse([one for one in made[at + 1:] if one.buffer == made[at].buffer and one.kind.startswith("to device")])

    def test_forbidden_steps_do_not_occur(self):
        for step in (step for seed in range(20) for step in sequence.steps(seed, 0)):
            self.assertNotEqual(step.buffer, step.other)
            self.assertFalse(step.kind == "graph" and step.stream == 0)


class Judging(unittest.TestCase):
    NATIVES = {1: [Outcome("a"), Outcome("a")]}
    RIGHT = Repeated([], [Outcome("a")] * 3)

    def judged(self, ours, natives=None, repeated=None):
        return harmless.judged(natives or self.NATIVES, ours, {key: repeated or self.RIGHT for key in ours}, ["xschedctl"], {})

    def levels(self, ours, natives=None, repeated=None):
        found, skipped = self.judged(ours, natives, repeated)
        return [(one.level, one.what.split(":")[0]) for one in found], [one.what for one in skipped]

    def test_equal_data_is_ok(self):
        self.assertEqual(self.levels({(TRACKED, 1): Outcome("a"), (HELD, 1): Outcome("a")}), ([("ok", TRACKED), ("ok", HELD)], []))

    def test_other_data_or_another_end_is_an_error_with_its_seed(self):
        found, _ = self.judged({(HELD, 1): Outcome("b"), (KILLED, 1): Outcome(failure="ended by signal 6")})
        self.assertEqual([one.level for one in found], ["error", "error"])
        self.assertEqual(found[0].what, "held: seed 1: other data than without xschedd; wrong in 1 of 1 runs under xschedd, in 0 of 3 "
                         "without it beside the same neighbour")
        self.assertIn("ended by signal 6", found[1].what)
        self.assertIn("xschedctl acceptance --sections harmless --repeat held:1 ;", found[0].fix)
        self.assertIn("--repeat daemon-killed:1 ;", found[1].fix)
        self.assertEqual([harmless.parsed(harmless.token(way, 7)) for way in harmless.WAYS], [(way, 7) for way in harmless.WAYS])

    def test_failures_that_also_happen_without_xschedd_are_not_blamed_on_it(self):
        crashed = Outcome(failure="ended by signal 11")
        found, _ = self.judged({(HELD, 1): crashed}, None, Repeated([Outcome("a"), crashed], [Outcome("a"), crashed, Outcome("b")]))
        self.assertEqual((len(found), found[0].level), (1, "warning"))
        self.assertIn("wrong in 2 of 3 runs under xschedd, in 2 of 3 without it beside the same neighbour: not xschedd's", found[0].what)
        found, _ = self.judged({(HELD, 1): crashed}, None, Repeated())
        self.assertEqual(found[0].level, "warning")
        self.assertIn("more --minutes", found[0].fix)

    def test_the_command_that_repeats_it(self):
        said = harmless.again(HELD, 3, ["/opt/x y/xschedctl", "--runtime-dir", "/r"], {
            "HIP_VISIBLE_DEVICES": "1", "SOFTGPU_NAME": "a b", "SECRET": "no", "CUDA_VISIBLE_DEVICES": ""})
        self.assertTrue(said.startswith("to repeat it: env HIP_VISIBLE_DEVICES=1 SOFTGPU_NAME='a b' '/opt/x y/xschedctl' --runtime-dir /r "
                                        "acceptance --sections harmless --repeat held:3 ;"), said)
        for words in ("", "held", "other:1", "held:x"):
            self.assertRaises(ValueError, harmless.parsed, words)

    def test_a_seed_that_differs_or_fails_natively_is_not_compared(self):
        natives = {1: [Outcome("a"), Outcome("b")], 2: [Outcome("a"), Outcome(failure="no")], 3: [Outcome("c"), Outcome("c")]}
        ours = {(TRACKED, seed): Outcome("c") for seed in natives}
        self.assertEqual(self.levels(ours, natives), ([("ok", TRACKED)], ["seed 1", "seed 2"]))

    def test_a_seed_is_compared_if_two_runs_without_xschedd_have_one_result(self):
        for outcomes, expected in (("aa", "a"), ("ab", ""), ("aba", "a"), ("baa", "a"), ("abc", "")):
            made = [Outcome(digest) for digest in outcomes]
            self.assertEqual(harmless.expected_of(made), expected)
            self.assertEqual(harmless.why_not_compared(made) == "", expected != "")
            programs = unittest.mock.Mock(native=unittest.mock.Mock(side_effect=[*made, Outcome("a")]))
            self.assertEqual(len(harmless.natively(programs, 1)), 2 if outcomes == "aa" else 3)
        self.assertIn("ended", harmless.why_not_compared([Outcome("a"), Outcome(failure="it ended by signal 6")]))

    def test_a_run_without_xschedd_that_differs_from_two_others_is_told(self):
        natives = {1: [Outcome("b"), Outcome("a"), Outcome("a")]}
        for digest, level in (("a", "ok"), ("b", "error")):
            self.assertEqual(self.levels({(TRACKED, 1): Outcome(digest)}, natives),
                             ([(level, TRACKED)], ["seed 1: one of 3 runs without xschedd"]))

    def test_only_compared_seeds_are_run_and_counted(self):
        class Faked:
            run_s, seen = 1.0, []
            left_s = limit_s = staticmethod(lambda *_: 25.0)
            why_no_daemon = repeat = ""
            allow = xschedctl_given = staticmethod(lambda *_: ["xschedctl"])

            def __init__(self, *_):
                self.number = 0

            def native(self, seed):
                self.number += 1
                return Outcome("a" if seed == 1 else f"{self.number}")  # the second seed gives another result each time

            def ours(self, way, seed):
                self.seen.append((way, seed))
                return Outcome("a")

        with unittest.mock.patch.object(harmless, "Programs", Faked), \
                unittest.mock.patch.object(harmless.library_runs, "run", lambda *_: harmless.library_runs.Libraries()):
            section = harmless.run(Faked())
        self.assertEqual(Faked.seen, [(way, 1) for way in harmless.WAYS])
        self.assertTrue(section.line.startswith(f"{len(harmless.WAYS)} runs"), section.line)
        self.assertEqual([one.what for one in section.skipped], ["seed 2"])

    def test_a_run_without_xschedd_does_not_count(self):
        found, skipped = self.judged({(TRACKED, 1): Outcome("a", absent="it was not a client of the daemon")})
        self.assertEqual([(one.level, one.what) for one in found],
                         [("warning", "tracked: 1 of 1 runs not counted, xschedd took no part: it was not a client of the daemon")])
        self.assertTrue(found[0].fix)
        self.assertFalse(skipped)

    def test_a_daemon_that_does_not_answer_is_no_harm(self):
        programs = unittest.mock.Mock()
        programs.ours.side_effect = NoAnswer("xschedctl ps: the daemon did not answer within 5 s")
        found, _ = self.judged({(TRACKED, 1): harmless.tried(programs, TRACKED, 1)})
        self.assertEqual([one.level for one in found], ["warning"])
        self.assertIn("did not answer", found[0].what)

    def test_a_program_that_was_never_held_is_skipped_if_another_was(self):
        natives = {seed: [Outcome("a"), Outcome("a")] for seed in (1, 2)}
        for other, levels in (("", ["ok"]), (harmless.NEVER_HELD, ["warning"])):
            ours = {(HELD, 1): Outcome("a", absent=harmless.NEVER_HELD), (HELD, 2): Outcome("a", absent=other)}
            self.assertEqual([one.level for one in self.judged(ours, natives)[0]], levels)

    def test_reasons_why_a_run_was_not_scheduled(self):
        def answer(pid=7, observes_only=False, **device):
            return {"observes_only": observes_only, "clients": [
                {"pid": pid, "devices": [{"state": "idle", "submitted": 3, "held_ns": 5, **device}]}]}
        for way in harmless.WAYS:
            self.assertEqual(calls_runs.absence(answer(), 7, way), "")
            self.assertIn("not a client", calls_runs.absence(answer(pid=8), 7, way))
            self.assertIn("none of its work", calls_runs.absence(answer(state="untracked"), 7, way))
            self.assertIn("observes", calls_runs.absence(answer(observes_only=True), 7, way))
            self.assertEqual(calls_runs.absence(answer(held_ns=0), 7, way) != "", way in (HELD, REPRIORITISED))
            self.assertEqual(calls_runs.absence(answer(submitted=0), 7, way) != "", way != KILLED)

    def test_a_failure_is_repeated_with_and_without_xschedd(self):
        class Faked:
            run_s, why_no_daemon, repeat, beside_is_wrong = 1.0, "", "held:2", False
            left_s = limit_s = staticmethod(lambda *_: 25.0)
            allow = xschedctl_given = staticmethod(lambda *_: ["xschedctl"])

            def __init__(self, *_):
                self.runs = 0

            def native(self, _):
                return Outcome("a")

            def beside(self, way, seed):
                return Outcome("b" if Faked.beside_is_wrong and (way, seed) == (HELD, 2) else "a")

            def ours(self, way, seed):
                self.runs += 1
                return Outcome("a" if self.runs < 4 and (way, seed) == (HELD, 2) else "c")  # not at once

        for Faked.beside_is_wrong, verdict, counts in ((False, "no", "in 0 of 3"), (True, "partly", "in 3 of 3")):
            with unittest.mock.patch.object(harmless, "Programs", Faked):
                section = harmless.run(Faked())
            self.assertEqual((section.verdict, len(section.findings)), (verdict, 1))
            self.assertIn("wrong in 3 of 3 runs under xschedd, " + counts, section.findings[0].what)

    def test_the_number_of_seeds_follows_from_the_time(self):
        self.assertEqual((harmless.whole_s(600), harmless.whole_s(60)), (harmless.MAX_S, 12.0))
        self.assertEqual([len(harmless.seeds_of(seconds, 1.0)) for seconds in (0, 1, 25, 1000)], [1, 1, 2, harmless.MAX_SEEDS])


if __name__ == "__main__":
    unittest.main()
