#!/usr/bin/env python3
"""The pure parts of tools/bench/gpu, on hand-made answers and kernels, without a GPU and without PyTorch."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "gpu"), HERE]

import arrivals  # noqa: E402
import figures  # noqa: E402
import report  # noqa: E402
import scenarios  # noqa: E402
import waits  # noqa: E402
from gpu_levers_test import *  # noqa: E402,F401,F403  # run with these

MS = 1_000_000


def asked(latencies, **more):
    return {"requests": [[number * 50 * MS, value] for number, value in enumerate(latencies)], "cores": 0.1, **more}


class Arrivals(unittest.TestCase):
    def command(self, **more):
        return {"start_ns": 0, "end_ns": 10_000 * MS, "rate": 20, "arrivals": "spread", "seed": 1, **more}

    def test_spread_arrivals_stay_in_their_interval(self) -> None:
        times = list(arrivals.times(self.command()))
        self.assertEqual(len(times), 200)
        for number, time_ns in enumerate(times):
            self.assertTrue((number + 0.25) * 50 * MS <= time_ns <= (number + 0.75) * 50 * MS)

    def test_poisson_arrivals_have_their_rate_and_its_spread(self) -> None:
        times = list(arrivals.times(self.command(arrivals="poisson", rate=50, end_ns=100_000 * MS)))
        gaps = [after - before for before, after in zip(times, times[1:])]
        mean = sum(gaps) / len(gaps)
        self.assertAlmostEqual(mean / (20 * MS), 1, delta=0.1)
        # The deviation of a Poisson process equals its mean; spread arrivals have a fifth of that.
        deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
        self.assertAlmostEqual(deviation / mean, 1, delta=0.15)

    def test_a_seed_gives_the_same_arrivals(self) -> None:
        for kind in ("spread", "poisson"):
            command = self.command(arrivals=kind)
            self.assertEqual(list(arrivals.times(command)), list(arrivals.times(command)))
            self.assertNotEqual(list(arrivals.times(command)), list(arrivals.times({**command, "seed": 2})))


class Scenarios(unittest.TestCase):
    def test_every_scenario_names_existing_programs(self) -> None:
        for scenario in scenarios.SCENARIOS.values():
            high = scenarios.PROGRAMS[scenario.high.program]
            below = [scenarios.PROGRAMS[name] for name in scenario.background]
            between = [scenarios.PROGRAMS[each.program] for each in scenario.middle]
            self.assertTrue(all(high.priority > each.priority for each in below), scenario.name)
            self.assertTrue(all(high.priority >= each.priority for each in between), scenario.name)
            self.assertTrue(all(each.priority > other.priority for each in between for other in below), scenario.name)
            equals = [scenarios.PROGRAMS[each.program] for each in scenario.equals]
            self.assertTrue(all(each.priority == other.priority for each in equals for other in below), scenario.name)
            self.assertTrue(all(each.kind in ("loop", "train", "language", "stranger") for each in below), scenario.name)

    def test_two_at_a_time_of_those_that_come_and_go(self) -> None:
        spans = list(scenarios.SCENARIOS["shifting"].spans.values())
        for moment in (0.1, 0.3, 0.5, 0.7, 0.9):
            self.assertEqual(sum(first <= moment < last for first, last in spans), 1 if moment in (0.1, 0.9) else 2)
        self.assertEqual((spans[0][0], spans[-1][1]), (0, 1))
        self.assertEqual(scenarios.SCENARIOS["six"].spans, {})

    def test_each_load_is_measured_alone_once(self) -> None:
        every = list(scenarios.SCENARIOS.values())
        alone = scenarios.alone_of(every)
        self.assertEqual({name for name, each in alone.items() if each.program == "graph"},
                         {"graph alone", "graph alone, 50/s poisson"})
        self.assertEqual({each.program for each in alone.values()},
                         {"eager", "graph", "bert", "bert2", *scenarios.WORKERS, "decode", "middle", "notebook", "chat", "embed", "denoise", "beams",
                          "jax-request"})
        self.assertEqual(scenarios.programs_of(every), list(scenarios.PROGRAMS.values()))
        self.assertEqual([program.name for program in scenarios.programs_of([scenarios.SCENARIOS["decode"]])],
                         ["decode", "prefill"])


class Figures(unittest.TestCase):
    def test_the_important_tenant_is_distinguished_from_others(self) -> None:
        result = figures.summary({"graph": asked([1.0, 2.0]), "middle": asked([5.0], token_ms=[1.0, 3.0]),
                                  "loop0": {"start_ns": 0, "ends_ns": [500 * MS, 1000 * MS], "cores": 0.5}}, "graph")
        self.assertEqual(result["high"]["max_ms"], 2.0)
        self.assertEqual(result["others"]["middle"]["p50_ms"], 5.0)
        self.assertEqual(result["others"]["middle"]["token"]["max_ms"], 3.0)
        self.assertAlmostEqual(result["total_per_s"], 2.0)

    def test_a_part_of_a_stretch(self) -> None:
        answer = asked([1.0, 2.0, 3.0])
        self.assertEqual(figures.latency(figures.within(answer, 50 * MS, 100 * MS))["max_ms"], 2.0)
        loop = {"ends_ns": [100 * MS, 600 * MS, 700 * MS]}
        self.assertAlmostEqual(figures.rate_within({"loop": loop, "graph": answer}, 500 * MS, 1000 * MS), 4.0)

    def test_launching_does_not_count_as_waiting(self) -> None:
        stretch = {"high": {"p50_ms": 1.0, "p99_ms": 2.0}, "total_per_s": 200.0, "rates": {"loop": 200.0}, "cores_each": 0.9}
        goals = figures.goals(stretch, stretch, stretch, 0.5, 4.0)
        self.assertAlmostEqual(goals["cores of waiting a background tenant"]["value"], 0.1)
        self.assertTrue(all(goal["ok"] for goal in goals.values()))
        late = {**stretch, "high": {"p50_ms": 1.3, "p99_ms": 2.8}, "total_per_s": 190.0, "cores_each": 2.0}
        self.assertFalse(any(goal["ok"] for goal in figures.goals(stretch, stretch, late, 0.5, 4.0).values()))

    def test_what_is_left_of_a_running_kernel(self) -> None:
        # Equal kernels: the rest is uniform. One long kernel takes most of the time.
        self.assertAlmostEqual(figures.left_of_running([100.0] * 5, 0.5), 0.05, places=4)
        self.assertAlmostEqual(figures.left_of_running([1000.0] + [1.0] * 10, 0.5), 0.495, places=3)


class Waits(unittest.TestCase):
    def test_the_parts_of_a_request_add_up(self) -> None:
        # Arrives at 1 ms while a kernel of 0.5 ms has 0.3 left; another follows; its own two with one of others' between.
        own = [(1_900_000, 2_100_000, "own"), (2_400_000, 2_600_000, "own")]
        others = {"loop0": [(800_000, 1_300_000, "running"), (1_350_000, 1_750_000, "later"), (2_150_000, 2_250_000, "leak")],
                  "loop1": [(100_000, 200_000, "long ago")]}
        request, = waits.analyse([(1_000_000, 1.7)], own, others, known=[500_000, 1_100_000], shut=[1_150_000, 9_000_000])
        self.assertAlmostEqual(request.others_before_ms, 0.3 + 0.4)
        self.assertAlmostEqual(request.idle_before_ms, 0.05 + 0.15)
        self.assertAlmostEqual(request.own_ms, 0.4)
        self.assertAlmostEqual(request.others_between_ms, 0.1)
        self.assertAlmostEqual(request.idle_between_ms, 0.2)
        self.assertAlmostEqual(request.after_ms, 0.1)
        self.assertAlmostEqual(request.first_left_ms, 0.3)
        self.assertEqual((request.later, request.tenants), (1, 1))
        self.assertAlmostEqual(request.known_ms, 0.1)
        self.assertAlmostEqual(request.shut_ms, 0.15)
        self.assertIn("running 500 µs of loop0", request.longest)
        parts = (request.others_before_ms, request.idle_before_ms, request.own_ms, request.others_between_ms,
                 request.idle_between_ms, request.after_ms)
        self.assertAlmostEqual(sum(parts), request.latency_ms)

    def test_kernels_that_overlap_count_once(self) -> None:
        union = waits.merged([(5, 9), (0, 3), (2, 4), (8, 12)])
        self.assertEqual(union, [(0, 4), (5, 12)])
        self.assertEqual(waits.covered(union, 3, 6), 2)
        self.assertEqual(waits.covered(union, 4, 5), 0)
        self.assertEqual(waits.covered([], 0, 9), 0)

    def test_a_request_whose_kernels_were_lost_is_left_out(self) -> None:
        self.assertEqual(waits.analyse([(0, 1.0)], [(2 * MS, 3 * MS, "own")], {}), [])
        self.assertEqual(waits.digest([]), {})

    def test_an_unknown_part_has_no_figure(self) -> None:
        request, = waits.analyse([(0, 1.0)], [(100, 200, "own")], {})
        self.assertIsNone(waits.means([request])["known_ms"])
        self.assertAlmostEqual(waits.means([request])["latency_ms"], 1.0)


class Report(unittest.TestCase):
    RESULTS = {
        "kernels": {"train:resnet50": {"kernels": 2, "total_ms": 1.0, "launch_ms": 0.0, "longest_us": 2800.0,
                                       "next_us": 2.0, "durations_us": [1.0, 2.0]}},
        "time-sliced graph alone": {"high": {"p50_ms": 0.6, "p99_ms": 0.7, "max_ms": 0.8}},
        "time-sliced native train": {"high": {"p50_ms": 3.0, "p99_ms": 5.0, "max_ms": 6.0}, "total_per_s": 16.0,
                                     "rates": {"train0": 8.0, "train1": 8.0}, "cores_each": 1.0},
        "time-sliced xschedd train": {"high": {"p50_ms": 1.1, "p99_ms": 2.0, "max_ms": 2.5}, "total_per_s": 17.0,
                                      "rates": {"train0": 8.5, "train1": 8.5}, "cores_each": 0.2},
        "fault endless native": {"high": {"p50_ms": 2.0, "p99_ms": 3.0, "max_ms": 3.0}, "total_per_s": 40.0, "cores_each": 1.0},
        "fault endless xschedd": {"high": {"p50_ms": 1.0, "p99_ms": 2.0, "max_ms": 2.0}, "total_per_s": 39.0, "cores_each": 1.0},
    }

    def test_each_stretch_is_compared_with_the_same_one_natively(self) -> None:
        lines = "\n".join(report.table(self.RESULTS))
        self.assertIn("| time-sliced | xschedd train | 1.10 | 2.00 | 2.50 | 17.00 | 106.2 % | 0.20 |", lines)
        self.assertIn("| fault | endless xschedd | 1.00 | 2.00 | 2.00 | 39.00 | 97.5 % | 1.00 |", lines)

    def test_goals_are_computed_from_the_longest_kernel_below(self) -> None:
        lines = "\n".join(report.goals(self.RESULTS))
        self.assertIn("time-sliced train: p50 1.100, goal 0.720: MISSED", lines)
        self.assertIn("time-sliced train: p99 2.000, goal 3.850: met", lines)
        self.assertNotIn("graph-five", lines)

    def test_a_differing_output_shows(self) -> None:
        compiled = "all equal within each, which are not compared with each other: torch.compile"
        for work, processes, words in (
                ("loop:x", [["a", "a"], ["a"]], "3 digests of 2 processes, all equal"),
                ("loop:x", [["a", "b"], ["a"]], "3 digests of 2 processes, NOT EQUAL within 1 of them"),
                ("loop:x", [["a", "a"], ["b"]], "3 digests of 2 processes, each equal in itself, NOT EQUAL to each other"),
                ("stranger:bertlarge", [["a", "a"], ["b", "b"]], f"4 digests of 2 processes, {compiled}"),
                ("stranger:bertlarge", [["a", "b"], ["b", "b"]], "4 digests of 2 processes, NOT EQUAL within 1 of them"),
                ("stranger:jax", [["a"], ["b"]], "2 digests of 2 processes, each equal in itself, NOT EQUAL to each other")):
            with self.subTest(work=work, processes=processes):
                self.assertEqual(report.outputs({work: processes}), [f"outputs of {work}: {words}"])

    def test_equals_are_compared_with_an_equal_part(self) -> None:
        self.assertEqual(report.equals({"equals train, cupy: just worked": {"train": 0.24, "cupy": 0.75}, "other": {}})[2:],
                         ["| train, cupy | just worked | train 48 %, cupy 150 % |", ""])
        self.assertEqual(report.equals({}), [])

    def test_compiled_works_are_programs(self) -> None:
        self.assertIn("stranger:bertlarge", scenarios.COMPILED)
        works = {program.work for program in scenarios.PROGRAMS.values()} | {f"stranger:{name}" for name in ("compiled", "triton")}
        self.assertEqual(scenarios.COMPILED - works, set())


class ByTurns(unittest.TestCase):
    def stretch(self, batches, latencies):
        ends = [(number + 1) * 3_000 * MS // batches for number in range(batches)]
        return {"high": asked(latencies), "loop": {"ends_ns": ends, "start_ns": 0, "cores": 1.0}}

    def round(self, native, ours, latencies):
        return {"alone": {"high": asked([1.0])}, "native": self.stretch(native, [2.0]), "xschedd": self.stretch(ours, latencies)}

    def test_each_stretch_is_compared_with_the_native_one_of_its_round(self) -> None:
        # The machine is half as fast in the second round, which no ratio shows.
        result = figures.by_turns([self.round(100, 99, [1.0, 1.1]), self.round(50, 49, [4.0]), self.round(100, 97, [1.0])], "high")
        self.assertEqual([round(ratio, 3) for ratio in result["xschedd"]["of_native"]], [0.99, 0.98, 0.97])
        self.assertEqual(result["native"]["of_native"], [1.0, 1.0, 1.0])
        self.assertEqual((result["xschedd"]["high"]["count"], result["xschedd"]["high"]["max_ms"]), (4, 4.0))
        goals = figures.goals_by_turns(result, 0.5)
        self.assertEqual({what: goal["ok"] for what, goal in goals.items()}, {"p50": True, "p99": False, "background kept": True})
        lines = report.pairs({"pairs mps bert": result, "mps native bert": {}})
        self.assertEqual(len(lines), 5)
        self.assertIn("| mps bert | alone | 1.00 | 1.00 | – | – | – |", lines)
        self.assertIn("98.0 (97.0 to 99.0) %", lines[-1])
        self.assertEqual(report.pairs({"mps native bert": {}}), [])


if __name__ == "__main__":
    unittest.main()
