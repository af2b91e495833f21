#!/usr/bin/env python3
"""The levers in tools/bench/gpu: waits, latencies at one host speed, goals, picture; on hand-made answers,
without a GPU and without PyTorch. gpu_test.py runs these, too."""

import math
import os
import sys
import tempfile
import threading
import time
import unittest
import xml.etree.ElementTree as ElementTree
from typing import Dict, List, Optional
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "gpu"), HERE]

import figures  # noqa: E402
import host_waits  # noqa: E402
import lever_goals  # noqa: E402
import levers  # noqa: E402
import report  # noqa: E402
import rig  # noqa: E402
import scenarios  # noqa: E402
import tenant  # noqa: E402
import tradeoff  # noqa: E402
from benchlib.figures import quantile  # noqa: E402

__all__ = ["HostWaits", "Requests", "Cores", "Answers", "OneHostSpeed", "Levers", "LeverGoals", "NeverBehind", "Tradeoff"]

MS = 1_000_000


def answered(latencies: List[float], **more) -> dict:
    return {"requests": [[number * 50 * MS, value] for number, value in enumerate(latencies)], "cores": 0.1, **more}


def tokens(host: List[float], wait: List[float]) -> dict:
    return answered([100.0], token_ms=[own + its for own, its in zip(host, wait)], wait_ms=wait)


def loop(batches: int) -> dict:
    return {"ends_ns": [(number + 1) * 1000 * MS // batches for number in range(batches)], "start_ns": 0, "cores": 0.1}


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now_ns = 1000 * MS

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


class HostWaits(unittest.TestCase):
    """With a class built like torch.Tensor: methods of a base class, some of which call others."""

    def setUp(self) -> None:
        clock = self.clock = Clock()

        class Base:
            is_cuda, fails = True, False

            def item(self):
                clock.sleep(0.02)
                if self.fails:
                    raise RuntimeError
                return 1

            cpu = tolist = __int__ = __float__ = __index__ = item

            def __bool__(self):
                return self.item() == 1

        self.kind = type("Tensor", (Base,), {})
        self.waits = host_waits.Waits(self.kind)
        stopped = mock.patch.object(host_waits, "time", clock)
        stopped.start()
        self.addCleanup(stopped.stop)

    def test_what_blocks_is_timed_and_taken_once(self) -> None:
        tensor = self.kind()
        # bool() calls item() here: of nested calls one counts.
        for call in (tensor.cpu, tensor.item, tensor.tolist, lambda: bool(tensor), lambda: int(tensor), lambda: [0, 1][tensor]):
            self.assertEqual(call(), 1)
            self.clock.sleep(0.5)
            self.assertEqual(self.waits.take_ms(), 20)
            self.assertEqual(self.waits.take_ms(), 0)

    def test_a_tensor_on_the_host_is_no_wait(self) -> None:
        tensor = self.kind()
        tensor.is_cuda = False
        self.assertEqual(tensor.item(), 1)
        self.assertEqual(self.waits.take_ms(), 0)

    def test_a_call_that_fails_counts_and_the_next_one_too(self) -> None:
        tensor = self.kind()
        tensor.fails = True
        with self.assertRaises(RuntimeError):
            tensor.item()
        tensor.fails = False
        tensor.item()
        self.assertEqual(self.waits.take_ms(), 40)


class Requests(unittest.TestCase):
    def answer(self, work_s: float, **command) -> dict:
        clock = Clock()
        work = mock.Mock()
        work.step.side_effect = lambda: clock.sleep(work_s)
        with mock.patch.object(tenant, "time", clock):
            return tenant.requests(work, {"start_ns": clock.now_ns, "end_ns": clock.now_ns + 100 * MS, **command})

    def test_a_request_behind_an_unfinished_one_is_queued(self) -> None:
        # Arrivals spread around every 20 ms, each takes 30: the n-th ends 30 n after the first began.
        answer = self.answer(0.03, rate=50, arrivals="spread", seed=1)
        first, queued = answer["requests"][0][0], answer["queued_ms"]
        self.assertEqual((len(queued), queued[0]), (5, 0))
        for number, (arrival, latency) in enumerate(answer["requests"]):
            self.assertAlmostEqual(latency - queued[number], 30, places=3)
            self.assertAlmostEqual(arrival / MS + queued[number], first / MS + 30 * number, places=3)
        self.assertGreater(min(queued[1:]), 0)

    def test_a_request_behind_a_finished_one_is_not(self) -> None:
        self.assertEqual(self.answer(0.005, rate=50, arrivals="spread", seed=1)["queued_ms"], [0.0] * 5)

    def test_back_to_back_none_is(self) -> None:
        self.assertEqual(self.answer(0.01, rate=0)["queued_ms"], [0.0] * 10)


class Cores(unittest.TestCase):
    def test_programs_begin_apart_and_elsewhere_in_each_turn(self) -> None:
        with mock.patch.object(rig.os, "sched_getaffinity", lambda _: {3, 1, 2, 0}):
            self.assertEqual(rig.cores_of(["chat", "loop"], 0), {"chat": 0, "loop": 2})
            self.assertEqual(rig.cores_of(["chat", "loop"], 3), {"chat": 3, "loop": 1})
            self.assertEqual(rig.cores_of(["chat", "loop"], -1), {"chat": 3, "loop": 1})
            self.assertEqual(set(rig.cores_of(list("abcde"), 0).values()), {0, 1, 2, 3})

    def test_threads_begin_on_the_core_and_are_free_again(self) -> None:
        usual = os.sched_getaffinity(0)
        tenant.begin_on(max(usual), time.monotonic_ns() + 100 * MS)
        self.assertEqual(os.sched_getaffinity(0), {max(usual)})
        for timer in [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]:
            timer.join()
        self.assertEqual(os.sched_getaffinity(0), usual)
        tenant.begin_on(max(usual), 0)
        self.assertEqual(os.sched_getaffinity(0), usual)


class Answers(unittest.TestCase):
    def test_one_that_a_signal_cuts_is_written_to_its_end(self) -> None:
        written: List[bytes] = []

        def write(_: int, data: bytes) -> int:
            written.append(data[:7])
            return len(written[-1])

        with mock.patch.object(tenant.os, "write", write):
            tenant.say({"requests": list(range(9))})
        self.assertEqual(b"".join(written), b'{"requests": [0, 1, 2, 3, 4, 5, 6, 7, 8]}\n')


class OneHostSpeed(unittest.TestCase):
    def test_waits_of_tokens_and_of_requests(self) -> None:
        for answer, expected in (
                (tokens([10.0, 20.0], [1.0, 2.0]), [1.0, 2.0]),
                (answered([5.0, 9.0], wait_ms=[1.0, 2.0], queued_ms=[0.0, 3.0]), [1.0, 5.0]),
                (answered([5.0, 9.0]), [])):
            self.assertEqual(figures.waited(answer), expected)

    def test_quantiles_of_sums_are_those_of_all_pairs(self) -> None:
        ones, mixed = [1.0] * 7, [0.5, 0.1, 0.1, 7.25, -0.3]
        for first, second in ((ones, mixed), (mixed, ones), (mixed, mixed), ([2.0], [3.0]), ([0.1, 0.2, 0.3], [0.7, 0.1])):
            for fraction in (0.01, 0.5, 0.9, 0.99, 1.0):
                self.assertEqual(figures.quantile_of_sum(first, second, fraction),
                                 quantile([one + other for one in first for other in second], fraction), (first, second, fraction))
        self.assertTrue(math.isnan(figures.quantile_of_sum([], [1.0], 0.5)))

    def test_a_host_that_was_slow_in_one_way_is_slow_in_all(self) -> None:
        # Natively the host was fast and waited more: as measured it is ahead, at one speed it is behind.
        slow, fast = [22.0] * 100, [11.0] * 100
        result = figures.at_one_host_speed({"alone": [tokens(slow, [0.1] * 100)],
                                            "native": [tokens(fast, [0.7] * 98 + [5.0] * 2)]})
        self.assertEqual((result["alone"]["host_p50_ms"], result["native"]["host_p50_ms"]), (22.0, 11.0))
        self.assertAlmostEqual(result["alone"]["wait"]["p50_ms"], 0.1)
        self.assertAlmostEqual(result["native"]["wait"]["p99_ms"], 5.0)
        # Half of the pool is fast, half slow: its median is the fast one.
        self.assertAlmostEqual(result["alone"]["same_host"]["p50_ms"], 11.1)
        self.assertAlmostEqual(result["native"]["same_host"]["p50_ms"], 11.7)
        self.assertAlmostEqual(result["alone"]["same_host"]["p99_ms"], 22.1)
        # The slow half, with a wait of 5 in 2 of 100: 1 of 100 sums is 27.
        self.assertAlmostEqual(result["native"]["same_host"]["p99_ms"], 22.7)
        more = figures.at_one_host_speed({"alone": [tokens(slow, [0.1] * 100)],
                                          "native": [tokens(fast, [0.7] * 96 + [5.0] * 4)]})
        self.assertAlmostEqual(more["native"]["same_host"]["p99_ms"], 27.0)

    def test_rounds_of_a_way_are_one(self) -> None:
        result = figures.at_one_host_speed({"alone": [tokens([10.0], [1.0]), tokens([10.0], [3.0]), tokens([10.0], [2.0])]})
        self.assertEqual((result["alone"]["wait"]["count"], result["alone"]["wait"]["p50_ms"]), (3, 2.0))

    def test_nothing_is_given_where_one_way_lacks_its_waits(self) -> None:
        whole = [tokens([10.0, 10.0], [1.0, 1.0])]
        for other in (answered([5.0]), answered([5.0], token_ms=[11.0, 11.0], wait_ms=[1.0]), answered([5.0, 6.0], wait_ms=[1.0, 1.0])):
            self.assertEqual(figures.at_one_host_speed({"alone": whole, "native": [other]}), {})


class Levers(unittest.TestCase):
    def test_each_loop_is_compared_with_its_native_stretch_of_the_round(self) -> None:
        rounds = [{"alone": {"high": answered([1.0])}, "native": {"high": answered([4.0]), "loop": loop(native)},
                   "held": {"high": answered([own]), "loop": loop(native // 2)}} for native, own in ((10, 1.0), (20, 3.0))]
        result = figures.of_levers(rounds, "high")
        self.assertAlmostEqual(result["held"]["kept"]["loop"], 0.5)
        self.assertEqual(result["held"]["high"]["max_ms"], 3.0)
        self.assertEqual(result["alone"]["kept"], {})
        lines = report.levers({"levers time-sliced one": {**result, "decided": {}}})
        self.assertIn("| time-sliced one | native | 4.00 | 4.00 | 4.00 | 4.00 | – | – | – | – | – | 100.0 % | 100.0 % | loop 100.0 | – | – | – |", lines)

    def test_the_daemon_learns_until_it_has_an_answer_for_each(self) -> None:
        def seconds(first_settled: int, searches_until: int = 0, least_s: float = 0) -> float:
            count = 0

            def work() -> None:
                nonlocal count
                count += 1

            return levers.learn(work, lambda: {"high": {"benefit": {"is_settled": count >= first_settled, "is_searching": count < searches_until}},
                                               "loop": {"benefit": None}}, least_s)

        self.assertEqual(seconds(1), levers.LEARN_S)
        self.assertEqual(seconds(1, least_s=2.5 * levers.LEARN_S), 3 * levers.LEARN_S)
        self.assertEqual(seconds(3), 3 * levers.LEARN_S)
        self.assertEqual(seconds(1, 2), 2 * levers.LEARN_S)
        self.assertEqual(seconds(1000), levers.LEARN_MOST_S)

    def test_the_decided_way_is_also_compared_with_its_own_processes_at_equal_priorities(self) -> None:
        rounds = [{"alone": {"high": answered([1.0])}, "native": {"high": answered([1.0]), "loop": loop(40)},
                   figures.EQUALS: {"high": answered([1.0]), "loop": loop(untracked)}, "xschedd": {"high": answered([1.0]), "loop": loop(18)}}
                  for untracked in (20, 20, 36)]
        result = figures.of_levers(rounds, "high")
        self.assertAlmostEqual(result["xschedd"]["kept"]["loop"], 0.45)
        self.assertAlmostEqual(result["xschedd"]["kept_of_same"]["loop"], 0.9)
        self.assertNotIn("kept_of_same", result["native"])
        lines = report.levers({"levers time-sliced one": {**result, "decided": {}, "modes": {"held": 1, "free": 3}, "learnt_s": 24.0}})
        self.assertTrue(lines[-3].endswith("| 45.0 % | 45.0 % | loop 45.0 | 90.0 % | – | –; held 25 %, free 75 %; learnt in 24 s |"), lines[-3])
        self.assertIn("others of the same processes at equal priorities 90.0 %, limit 97 %: MISSED", lever_goals.of_scenario(
            {**result, "held": result["native"]}, lever_goals.AS_HELD))

    def test_a_program_with_tokens_is_measured_by_them(self) -> None:
        result = figures.of_levers([{"native": {"chat": answered([100.0], token_ms=[7.0]), "middle": answered([5.0])}}], "chat")
        self.assertEqual(result["native"]["high"]["p50_ms"], 7.0)
        self.assertEqual(result["native"]["others"]["middle"]["p50_ms"], 5.0)

    def test_the_table_has_the_waits_beside_what_was_measured(self) -> None:
        result = figures.of_levers([{"alone": {"chat": tokens([20.0], [1.0])},
                                     "native": {"chat": tokens([10.0], [4.0]), "loop": loop(10)}}], "chat")
        lines = report.levers({"levers mps chat-jax": {**result, "decided": {}}})
        # The pool is 10 and 20, its median 10, its p99 20: 14/11 and 24/21.
        self.assertIn("| mps chat-jax | native | 14.00 | 14.00 | 0.67 | 0.67 | 10.00 | 4.00 | 4.00 | 1.27 | 1.14 "
                      "| 100.0 % | 100.0 % | loop 100.0 | – | – | – |", lines)
        self.assertEqual({line.count("|") for line in lines[:4]}, {18})
        self.assertIn("launch calls", lines[-1])
        self.assertEqual(report.levers({"pairs mps bert": {}}), [])


def way(p50: float, p99: float, kept: Optional[Dict[str, float]] = None, same_host: Optional[tuple] = None) -> dict:
    high: dict = {"p50_ms": p50, "p99_ms": p99}
    if same_host:
        high["same_host"] = {"p50_ms": same_host[0], "p99_ms": same_host[1]}
    return {"high": high, "others": {}, "kept": kept or {}}


class LeverGoals(unittest.TestCase):
    def lines(self, name: str, **ways: dict) -> List[str]:
        return lever_goals.lines({f"levers {name}": {key.replace("_", " "): part for key, part in ways.items()}})

    def test_each_limit_is_that_of_the_issue(self) -> None:
        """p50, p99 and others, each just within and just beyond the limit; the reference ways have 10 / 20 ms, all others are
        faster."""
        alone, either, held = ("alone",), ("native", "held"), ("held",)
        for names, beside, p50, p99, others in (
                (("graph-five",), alone, 1.35, 1.4, 1.05), (("train",), alone, 1.5, 1.8, 0.97), (("decode",), alone, 1.2, 1.3, 0.97),
                (("chat-train", "chat-compiled", "chat-jax", "chat-cupy"), either, 1.05, 1.15, 0.93),
                (("chat-four",), alone, 1.2, 1.3, 0.8), (("six",), either, 1.05, 1.15, 0.9),
                (("three", "bert", "one-five", "poisson"), held, 1.05, 1.1, 0.97)):
            for name in names:
                kept = dict.fromkeys(scenarios.SCENARIOS[name].background, 1.0)
                ways = {each: way(10.0, 20.0, kept) if each in beside else way(1.0, 1.0, kept) for each in ("alone", "native", "held")}
                for sign, word in ((-1, "met"), (1, "MISSED")):
                    ours = way(10 * (p50 + sign * 0.001), 20 * (p99 + sign * 0.001), dict.fromkeys(kept, others - sign * 0.001))
                    lines = self.lines(f"time-sliced {name}", **ways, xschedd=ours)
                    goals = [line for line in lines if line.startswith("goal, ") and " least " not in line]
                    self.assertGreaterEqual(len(goals), 3)
                    self.assertTrue(all(line.endswith(f": {word}") for line in goals), goals)

    def test_every_scenario_has_a_goal_on_both_substrates(self) -> None:
        for name in scenarios.SCENARIOS:
            self.assertIsNotNone(lever_goals.goal_of("time-sliced", name), name)
            self.assertEqual(lever_goals.goal_of("mps", name), lever_goals.MPS)
        self.assertEqual(set(lever_goals.TIME_SLICED) - set(scenarios.SCENARIOS), set())

    def test_the_better_way_is_each_figures_own(self) -> None:
        lines = self.lines("time-sliced chat-jax", alone=way(1, 1), native=way(10.0, 40.0, {"jax": 1.0}),
                           held=way(20.0, 20.0, {"jax": 0.1}), xschedd=way(10.4, 24.0, {"jax": 0.93}))
        self.assertEqual(lines[:3], [
            "goal, time-sliced chat-jax: p50 of the better of native and held 1.040 as measured, at one host speed not known, limit 1.05: met",
            "goal, time-sliced chat-jax: p99 of the better of native and held 1.200 as measured, at one host speed not known, limit 1.15: MISSED",
            "goal, time-sliced chat-jax: others of native 93.0 %, limit 93 %: met"])

    def test_both_figures_have_a_verdict(self) -> None:
        ways = {"alone": way(10.0, 20.0, None, (11.0, 22.0)), "native": way(9.0, 9.0, {"prefill": 1.0}, (9.0, 9.0)),
                "xschedd": way(20.0, 40.0, {"prefill": 0.5}, (12.1, 44.0))}
        lines = self.lines("time-sliced decode", **ways)
        self.assertEqual(lines[0], "goal, time-sliced decode: p50 of alone 2.000 as measured, 1.100 at one host speed, limit 1.2: "
                                   "MISSED as measured, met at one host speed")
        self.assertEqual(lines[1], "goal, time-sliced decode: p99 of alone 2.000 as measured, 2.000 at one host speed, limit 1.3: MISSED")
        self.assertEqual(lines[2], "goal, time-sliced decode: others of native 50.0 %, limit 97 %: MISSED")

    def test_none_of_four_may_fall_below_half(self) -> None:
        for least, word in ((0.5, "met"), (0.49, "MISSED")):
            kept = {"llama-train": 1.2, "bertlarge": 1.2, "jax": least, "cupy": 1.0}
            lines = self.lines("time-sliced chat-four", alone=way(1, 1), native=way(1, 1, dict.fromkeys(kept, 1.0)), xschedd=way(1, 1, kept))
            self.assertIn(f"goal, time-sliced chat-four: the least of the others of native {100 * least:.1f} %, limit 50 %: {word}", lines)

    def test_the_middle_does_not_make_up_for_the_low(self) -> None:
        kept = {"middle-loop0": 1.1, "middle-loop1": 1.1, "bert-loop0": 0.9, "bert-loop1": 0.8}
        native = way(1, 1, dict.fromkeys(kept, 1.0))
        lines = self.lines("time-sliced six", alone=way(1, 1), native=native, held=native, xschedd=way(1, 1, kept))
        self.assertIn("goal, time-sliced six: middle others of native 110.0 %, limit 90 %: met", lines)
        self.assertIn("goal, time-sliced six: low others of native 85.0 %, limit 90 %: MISSED", lines)

    def test_under_mps_its_priority_is_the_measure(self) -> None:
        ways = {"alone": way(1, 1), "native": way(30, 30, {"bert64": 1.0}), "mps_priority": way(10.0, 20.0, {"bert64": 0.5})}
        for p50, p99, kept, words in ((10.4, 20.9, 0.495, ["met"] * 3), (10.6, 21.1, 0.485, ["MISSED"] * 3)):
            lines = self.lines("mps bert", **ways, xschedd=way(p50, p99, {"bert64": kept}))
            self.assertEqual([line.rpartition(": ")[2] for line in lines if line.startswith("goal, ")], words)
        self.assertIn("goal, mps bert: others of mps priority 97.0 %, limit 98 %: MISSED", lines)

    def test_a_way_that_was_left_out_is_named(self) -> None:
        lines = self.lines("time-sliced bert", alone=way(1, 1), native=way(1, 1, {"bert64": 1.0}), xschedd=way(1, 1, {"bert64": 1.0}))
        self.assertEqual(lines[0], "goal, time-sliced bert: not computed: held not measured")
        self.assertEqual(lever_goals.lines({"time-sliced native bert": {}}), [])

    def test_what_was_not_measured_is_not_met(self) -> None:
        nothing = way(math.nan, math.nan, {"prefill": math.nan})
        lines = self.lines("time-sliced decode", alone=way(1, 1), native=way(1, 1, {"prefill": 1.0}), xschedd=nothing)
        self.assertFalse([line for line in lines if line.endswith(": met")])
        starved = {"alone": way(1, 1), "native": way(1, 1, {"prefill": 0.0}), "mps_priority": way(1, 1, {"prefill": 0.0})}
        self.assertTrue(self.lines("mps decode", **starved, xschedd=way(1, 1, {"prefill": 1.0}))[2].endswith("MISSED"))


class NeverBehind(unittest.TestCase):
    def behind(self, ours: dict, **peers: dict) -> List[str]:
        return lever_goals.behind({"xschedd": ours, **{key.replace("_", " "): part for key, part in peers.items()}})

    def test_each_axis_has_its_own_best(self) -> None:
        peers = {"native": way(20.0, 30.0, {"loop": 1.0}), "mps_priority": way(10.0, 40.0, {"loop": 0.8})}
        self.assertEqual(self.behind(way(10.4, 31.0, {"loop": 0.96}), **peers), [])
        self.assertEqual(self.behind(way(11.0, 33.0, {"loop": 0.9}), **peers), [
            "behind the better of native and mps priority: p50 1.100 of theirs as measured; p99 1.100 of theirs as measured; "
            "others 90.0 % of theirs"])
        self.assertEqual(self.behind(way(19.0, 31.0, {"loop": 1.0}), native=peers["native"]), [])

    def test_either_figure_of_a_latency_tells(self) -> None:
        native = way(10.0, 10.0, {"loop": 1.0}, (10.0, 10.0))
        for ours, is_reported in (((10.0, 11.0), True), ((11.0, 10.0), True), ((10.4, 10.4), False)):
            measured, same_host = ours
            line = self.behind(way(measured, 10.0, {"loop": 1.0}, (same_host, 10.0)), native=native)
            self.assertEqual(bool(line), is_reported, ours)

    def test_the_sum_says_in_how_many(self) -> None:
        good, bad = way(10.0, 10.0, {"loop": 1.0}), way(10.0, 10.0, {"loop": 0.5})
        results = {f"levers time-sliced {name}": {"alone": good, "native": good, "held": good, "xschedd": ours}
                   for name, ours in (("bert", good), ("three", bad))}
        lines = lever_goals.lines(results)
        self.assertEqual(lines[-2:], ["time-sliced three: behind the better of native: others 50.0 % of theirs",
                                      "never more than 5 % behind: MISSED, behind in 1 of 2 scenarios"])
        results.pop("levers time-sliced three")
        self.assertEqual(lever_goals.lines(results)[-1], "never more than 5 % behind: met, behind in 0 of 1 scenarios")


class Tradeoff(unittest.TestCase):
    RESULT = {"alone": way(10.0, 20.0, None, (10.0, 25.0)), "native": way(1, 40.0, {"a": 1.0, "b": 1.0}, (1, 75.0)),
              "held": way(1, 20.0, {"a": 0.1, "b": 0.3}, (1, 25.0)), "xschedd": way(1, math.nan, {"a": 1.0}, (1, 1.0)), "decided": {}}

    def test_points_are_multiples_of_alone_over_what_others_keep(self) -> None:
        self.assertEqual(tradeoff.points_of(self.RESULT), [tradeoff.Point("native", 1.0, 2.0, 3.0), tradeoff.Point("held", 0.2, 1.0, 1.0)])

    def test_a_call_has_one_picture_of_its_levers(self) -> None:
        results = {f"levers time-sliced {name}": self.RESULT for name in scenarios.SCENARIOS}
        with tempfile.TemporaryDirectory() as folder:
            report.pictures(folder, "a <GPU>", {}, {"pairs mps bert": {}})
            self.assertEqual(os.listdir(folder), [])
            report.pictures(folder, "a <GPU>", {}, results)
            self.assertEqual(os.listdir(folder), ["levers.svg"])
            root = ElementTree.parse(os.path.join(folder, "levers.svg")).getroot()
        kind = "{http://www.w3.org/2000/svg}"
        texts = [each.text for each in root.iter(f"{kind}text")]
        self.assertTrue({"a <GPU>", "time-sliced six", "native", "held"} <= set(texts))
        circles = list(root.iter(f"{kind}circle"))
        # Two ways in the legend; in each panel a full point and a ring of each.
        self.assertEqual(len(circles), 2 + 4 * len(results))
        self.assertTrue(all(0 < float(each.get("cx", "nan")) < float(root.get("width", "nan")) for each in circles))
        self.assertTrue(all(0 < float(each.get("cy", "nan")) < float(root.get("height", "nan")) for each in circles))
        native, _, held, _ = circles[2:6]
        self.assertGreater(float(native.get("cx", "nan")), float(held.get("cx", "nan")))
        self.assertLess(float(native.get("cy", "nan")), float(held.get("cy", "nan")))

    def test_every_lever_has_a_colour(self) -> None:
        import levers

        self.assertEqual({*levers.LEVERS, levers.DECIDED, "native", "mps priority"} - set(tradeoff.COLORS), set())
        self.assertEqual(set(levers.USUAL) - set(levers.LEVERS), set())


if __name__ == "__main__":
    unittest.main()
