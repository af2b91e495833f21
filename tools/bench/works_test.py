#!/usr/bin/env python3
"""The pure parts of acceptance's sections works and worth, on hand-made answers: goals, time, tables. No GPU, no daemon."""

import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "acceptance"), HERE, os.path.join(HERE, "gpu")]

import arrivals  # noqa: E402
import frame  # noqa: E402
import goals  # noqa: E402
import hsa_queue  # noqa: E402
import levers  # noqa: E402
import pages  # noqa: E402
import scenes  # noqa: E402
import schema  # noqa: E402
import tables  # noqa: E402
import turns  # noqa: E402
import works  # noqa: E402
import worth  # noqa: E402
from benchlib.records import moments  # noqa: E402
from frame import Row, Section, Table  # noqa: E402
from turns import ALONE, NATIVE, OURS  # noqa: E402

MS, S = 1_000_000, 1_000_000_000


def asked(*latencies_ms):
    return {"requests": [[number * 50 * MS, ms] for number, ms in enumerate(latencies_ms)], "cores": 0.1, "seconds": 1.0,
            "start_ns": 0}


def loop(per_s):
    return {"ends_ns": [(number + 1) * S // per_s for number in range(per_s)] if per_s else [], "cores": 0.1, "seconds": 1.0,
            "start_ns": 0}


def measured(scene=scenes.PERIODIC, mode="held", rates=(100, 90), native=(30.0,), ours=(12.0,)):
    rounds = [{ALONE: {"service": asked(10.0, 10.0)}, NATIVE: {"service": asked(20.0, *native), "busy": loop(rates[0])},
               OURS: {"service": asked(11.0, *ours), "busy": loop(rates[1])}}]
    return turns.Measured(scene, rounds, mode, {NATIVE: {}, OURS: {}})


def result(**more):
    values = {"name": "periodic", "p50": {ALONE: 8.0, NATIVE: 16.0, OURS: 9.0}, "p99": {ALONE: 10.0, NATIVE: 30.0, OURS: 12.0},
              "kept": 0.9, "busy": 0.2, "mode": "held", "requests": 100, "late": {}, "others_p99": {}, "longest": {ALONE: [10.0, 10.0], NATIVE: [30.0, 20.0], OURS: [12.0, 12.0]}}
    return goals.Result(**{**values, **more})


class Figures(unittest.TestCase):
    def test_a_scenarios_figures(self):
        made = goals.result_of(measured())
        self.assertEqual((made.p99, made.p50[OURS]), ({ALONE: 10.0, NATIVE: 30.0, OURS: 12.0}, 11.0))
        self.assertAlmostEqual(made.kept, 0.9, places=6)
        self.assertAlmostEqual(made.busy, 0.023, places=6)
        self.assertEqual((made.mode, made.requests, made.late), ("held", 2, {}))
        self.assertEqual(made.longest, {ALONE: [10.0], NATIVE: [30.0], OURS: [12.0]})

    def test_a_program_that_did_nothing_gives_no_figures(self):
        unanswered = measured()
        unanswered.rounds[0][ALONE]["service"] = asked()
        for broken in (measured(rates=(0, 90)), unanswered):
            self.assertIsNone(goals.result_of(broken))

    def test_late_requests(self):
        scene = scenes.Scene(scenes.PERIODIC.scenario, deadline_ms=25)
        self.assertEqual(goals.result_of(measured(scene)).late, {ALONE: 0.0, NATIVE: 0.5, OURS: 0.0})

    def test_results_are_compared_if_they_are_always_the_same_natively(self):
        digests = {NATIVE: {"a": ["1", "1"], "b": ["2", "3"], "c": ["4"]}, OURS: {"a": ["1", "5"], "b": ["6"], "c": ["4", "4"]}}
        self.assertEqual(goals.different(digests), ["a"])


class Goals(unittest.TestCase):
    def level(self, alone, native, ours):
        found = goals.nearer("one", alone, native, ours)
        self.assertIn("met" if found.level == "ok" else "missed", found.what)
        return found.level

    def test_a_latency_is_nearer_to_alone_than_natively(self):
        self.assertEqual([self.level(10, 30, ours) for ours in (10, 12, 29.9, 30.5, 34)], ["ok", "ok", "ok", "warning", "error"])

    def test_without_a_native_loss_there_is_no_gain(self):
        self.assertEqual([self.level(10, 10.5, ours) for ours in (10, 11, 12)], ["ok", "ok", "warning"])

    def test_others_keep_what_the_mode_promises(self):
        self.assertAlmostEqual(goals.promised("held", 0.2), 0.7)
        self.assertAlmostEqual(goals.promised("", 0.2), 0.7)
        self.assertAlmostEqual(goals.promised("waits-wide", 0.2), 0.7)
        for mode in goals.BESIDE:
            self.assertAlmostEqual(goals.promised(mode, 0.2), 0.9)
        self.assertEqual(goals.promised("held", 1.0), 0)
        levels = [goals.keeps(result(kept=kept)).level for kept in (1.0, 0.71, 0.69, 0.36, 0.34)]
        self.assertEqual(levels, ["ok", "ok", "warning", "warning", "error"])
        self.assertEqual(goals.keeps(result(kept=0.71, mode="free")).level, "warning")

    def test_deadlines_count_instead_of_p99(self):
        late = {ALONE: 0.0, NATIVE: 0.5, OURS: 0.5}
        found = goals.judged(result(late=late, p99={ALONE: 1.0, NATIVE: 1.0, OURS: 100.0}))
        self.assertEqual([one.level for one in found], ["ok", "ok"])
        self.assertEqual([goals.in_time("one", {**late, OURS: ours}).level for ours in (0.5, 0.55, 0.7)], ["ok", "warning", "error"])

    def test_middle_programs_are_no_worse_than_natively(self):
        def level(ours):
            return goals.judged(result(others_p99={"report": {NATIVE: 20.0, OURS: ours}}))[1].level
        self.assertEqual([level(ours) for ours in (10.0, 21.9, 22.1)], ["ok", "ok", "warning"])

    def test_a_delay_in_few_rounds_proves_no_failure(self):
        def of(*ours):
            return goals.judged(result(p99={ALONE: 10.0, NATIVE: 20.0, OURS: 90.0},
                                       longest={ALONE: [10.0] * 3, NATIVE: [20.0] * 3, OURS: list(ours)}))[0]
        self.assertEqual([of(*ours).level for ours in ((12.0, 90.0, 12.0), (12.0, 90.0, 90.0))], ["warning", "error"])
        self.assertIn("12, 90, 12", of(12.0, 90.0, 12.0).what)

    def test_few_requests_prove_no_failure(self):
        late = result(p99={ALONE: 10.0, NATIVE: 20.0, OURS: 90.0}, kept=0.1,
                      longest={ALONE: [10.0], NATIVE: [20.0], OURS: [90.0]})
        self.assertEqual([one.level for one in goals.judged(late)], ["error", "error"])
        late.requests = goals.MIN_REQUESTS - 1
        found = goals.judged(late)
        self.assertEqual([one.level for one in found], ["warning", "warning"])
        self.assertTrue(all("only 49 requests" in one.what and "--minutes" in one.fix for one in found))

    def test_changes_of_priority(self):
        changes = [turns.Change(0, 10 * MS, "second"), turns.Change(400 * MS, 410 * MS, "first")]
        ends = {"first": [5 * MS, *range(412 * MS, 800 * MS, 2 * MS)], "second": list(range(13 * MS, 400 * MS, 2 * MS))}
        taken = goals.taken(changes, ends, 800 * MS)
        self.assertEqual([(one.command_ms, one.effect_ms, one.is_turned) for one in taken], [(10.0, 3.0, True), (10.0, 2.0, True)])
        self.assertEqual(goals.live(taken)[0].level, "ok")
        stuck = goals.taken(changes, {"first": ends["first"], "second": []}, 800 * MS)
        self.assertEqual([(one.effect_ms, one.is_turned) for one in stuck], [(None, False), (2.0, True)])
        self.assertEqual(goals.live(stuck)[0].level, "error")
        shared = goals.taken(changes[:1], {"first": ends["second"], "second": ends["second"]}, 400 * MS)
        self.assertEqual([(one.effect_ms, one.is_turned) for one in shared], [(3.0, False)])

    def test_launches(self):
        found = goals.launches([(1000, 1050), (1000, 1060), (1000, 1500)], [(1000, 2100)])
        self.assertEqual([one.level for one in found], ["ok", "warning"])
        self.assertIn("+60 ns on 1000 ns", found[0].what)
        self.assertEqual(goals.launches([], []), [])

    def test_a_daemon_that_holds_no_client(self):
        self.assertEqual(works.of_daemon({"observes_only": False, "policy": "priority"}), [])
        self.assertEqual([works.of_daemon({"observes_only": seen, "policy": name})[0].level
                          for seen, name in ((True, "priority"), (False, "fifo"))], ["warning", "warning"])


class Worth(unittest.TestCase):
    def verdict(self, *results):
        return worth.verdict_of(list(results))[0]

    def test_latency_gained_within_the_promised_loss(self):
        poor, dear = result(p99={ALONE: 10.0, NATIVE: 30.0, OURS: 29.0}), result(kept=0.5)
        self.assertEqual(self.verdict(result()), "yes")
        self.assertEqual(self.verdict(result(), poor), "partly")
        self.assertEqual((self.verdict(poor), self.verdict(dear)), ("no", "no"))
        self.assertEqual((self.verdict(), self.verdict(result(requests=9))), ("unknown", "unknown"))
        self.assertEqual(self.verdict(result(), result(requests=9, kept=0.5)), "yes")

    def test_fewer_late_requests_are_worth_it(self):
        p99 = {ALONE: 10.0, NATIVE: 30.0, OURS: 35.0}
        for ours, expected in ((0.1, "yes"), (0.3, "no")):
            self.assertEqual(self.verdict(result(p99=p99, late={ALONE: 0.0, NATIVE: 0.3, OURS: ours})), expected)

    def test_the_line_has_gain_and_loss(self):
        text = worth.verdict_of([result(), result(kept=0.95)])[1]
        self.assertIn("for 0.0 to 0.0 %", worth.verdict_of([result(kept=1.0001)])[1])
        for part in ("2.50 to 2.50 times", "5.0 to 10.0 %", "2 of 2"):
            self.assertIn(part, text)

    def test_a_gate_wakes_the_launch_that_it_had_stopped(self):
        launches = [(0, 1 * MS), (2 * MS, 7 * MS), (8 * MS, 9 * MS)]
        self.assertEqual(worth.woken_ms([5 * MS], launches), [2.0])
        self.assertEqual(worth.woken_ms([int(1.5 * MS), 5 * MS, 20 * MS], launches), [2.0])
        self.assertEqual(worth.woken_ms([], launches), [])

    def test_a_time_without_values_has_no_row(self):
        made = worth.times_of({"one": [1.0, 3.0, 2.0], "none": []})
        self.assertEqual([(row.name, row.values) for row in made[0].rows], [("one", [2.0, 3.0, 3])])
        self.assertEqual(worth.times_of({"none": []}), [])

    def test_what_levers_give_is_compared_with_alone_and_with_none(self):
        rounds = {way: [{levers.SERVICE: asked(4.0, 6.0, 8.0), levers.OTHER: loop(10)}] * 2 for way in levers.WAYS}
        rounds[levers.ALONE] = [{levers.SERVICE: asked(2.0, 2.0, 4.0)}] * 2
        rounds["both"] = [{levers.SERVICE: asked(2.0, 3.0, 4.0), levers.OTHER: loop(5)}] * 2
        made = {row.name: row.values for row in levers.gains_of(rounds).rows}
        self.assertEqual(list(made), list(levers.WAYS)[1:])
        self.assertEqual(made[levers.PLAIN], [3.0, 2.0, 100.0])
        self.assertEqual(made["both"], [1.5, 1.0, 50.0])

    def test_what_a_change_of_a_lever_costs(self):
        stretches = {name: {levers.SERVICE: asked(2.0, 4.0, 6.0), name: {"change_ns": [1 * MS, 2 * MS, 9 * MS]}} for name in levers.CHANGES}
        stretches[levers.QUIET] = {levers.SERVICE: asked(2.0, 2.0, 3.0)}
        for row in levers.costs_of(stretches).rows:
            self.assertEqual(row.values, [2.0, 9.0, 3, 2.0, 2.0])

    def test_masks_of_compute_units(self):
        for units in (1, 8, 32, 80, 304):
            for mask, count in ((hsa_queue.half_mask(units), max(1, units // 2)), (hsa_queue.mask_of(units, units), units)):
                self.assertEqual((len(mask), sum(bin(word).count("1") for word in mask)), (-(-units // 32), count), units)

    def test_moments_of_the_daemons_events(self):
        events = [{"kind": "busy", "pid": 7, "for_pid": 0, "time_ns": 3}, {"kind": "busy", "pid": 8, "for_pid": 0, "time_ns": 2},
                  {"kind": "held", "pid": 8, "for_pid": 7, "time_ns": 4}, {"kind": "opened", "pid": 8, "for_pid": 0, "time_ns": 6}]
        with tempfile.NamedTemporaryFile("w", suffix=".log") as file:
            file.write("".join(json.dumps(event) + "\n" for event in events) + "no event\n" + json.dumps(events[0])[:-3])
            file.flush()
            self.assertEqual(moments(file.name, 7, 8), ([3], [4], [6]))
            self.assertEqual(moments(file.name, 7), ([3], [4], []))


class Time(unittest.TestCase):
    def test_each_part_has_its_share_of_the_time_left(self):
        left, given = scenes.whole_s(1000), []
        self.assertEqual(left, scenes.MAX_S)
        for name in scenes.PARTS:
            given.append(scenes.share_s(name, left))
            left -= given[-1]
        self.assertAlmostEqual(left, 0)
        self.assertTrue(all(seconds > 10 for seconds in given), given)

    def test_with_little_time_only_parts_that_fit_are_begun(self):
        self.assertEqual(scenes.whole_s(8), 6)
        self.assertEqual(scenes.share_s("checks", 20), 0)
        self.assertEqual(scenes.share_s(scenes.TWO_MODELS, 6), 6)
        self.assertEqual(scenes.share_s(scenes.TWO_MODELS, 4), 0)

    def test_the_time_left_decides_how_many_rounds(self):
        plans = {seconds: scenes.plan(seconds) for seconds in (1, 6, 8, 20, 50, 100, 1000)}
        rounds = [plan.rounds for plan in plans.values()]
        self.assertEqual(rounds, [1, 2, 3, 3, 3, 6, 6])
        for seconds, plan in plans.items():
            self.assertLessEqual(plan.stretch_s, 3.0)
            if seconds >= 4:
                needed = plan.learn_s + plan.rounds * scenes.WAYS * (plan.stretch_s + scenes.PAUSE_S)
                self.assertLessEqual(needed, seconds + 0.2)

    def test_no_way_always_comes_first(self):
        orders = [scenes.order_of(["a", "b", "c"], number) for number in range(6)]
        for place in range(3):
            self.assertEqual(sorted(order[place] for order in orders), ["a", "a", "b", "b", "c", "c"])
        self.assertEqual(len({tuple(order) for order in orders}), 6)

    def test_frames_arrive_at_even_intervals(self):
        times = list(arrivals.times({"start_ns": 0, "end_ns": S, "rate": 25, "arrivals": "periodic", "seed": 1}))
        self.assertEqual({round(b - a) for a, b in zip(times, times[1:])}, {40 * MS})
        self.assertEqual(len(times), 25)


class Programs(unittest.TestCase):
    def test_every_scenario_has_its_programs_and_needs_no_privilege(self):
        for scene in (scenes.PERIODIC, scenes.THREE, scenes.VIDEO, scenes.MODELS, scenes.LIKE_MODELS):
            names = [asked.program for asked in scene.scenario.asked] + list(scene.scenario.background)
            priorities = [scenes.PROGRAMS[name].priority for name in names]
            self.assertEqual(max(priorities), 0)
            self.assertGreater(priorities[0], priorities[-1])
            built_in = {scenes.is_built_in(scenes.PROGRAMS[name]) for name in names}
            self.assertEqual(built_in, {scene is not scenes.MODELS})


class Pages(unittest.TestCase):
    def setUp(self):
        table = Table("A <title>", ["p99 native, ms", "p99 xschedd, ms"], [Row("one", [30.0, 12.5], "a|note"), Row("two", [0.0, 0.0])],
                      ["p99 native, ms", "p99 xschedd, ms"])
        section = Section("works", "yes", "a line", [], [], 1.0, [table])
        header = {"host": "5bce98f7", "date": "20261125-074115", "stand_in": True, "minutes": 10.0, "in_use": ""}
        self.table, self.results = table, frame.document(header, [section])

    def test_a_table_survives_saving_and_matches_the_schema(self):
        read = json.loads(json.dumps(self.results))
        self.assertEqual(schema.problems(schema.read(), read), [])
        self.assertEqual(frame.sections_of(read)[0].tables, [self.table])
        del read["sections"][0]["tables"][0]["rows"][0]["values"]
        self.assertNotEqual(schema.problems(schema.read(), read), [])

    def test_both_pages_have_it_and_name_the_software_gpu(self):
        text, page = pages.markdown(self.results), pages.page(self.results)
        for made in (text, page):
            self.assertIn(pages.STAND_IN, made)
            self.assertIn("12.5", made)
        self.assertIn("| one | 30 | 12.5 | a\\|note |", text)
        self.assertIn("A &lt;title&gt;", page)

    def test_a_bar_for_each_drawn_column_of_each_row(self):
        import xml.etree.ElementTree as tree
        for row, widths in zip(self.table.rows, ((350.0, 145.8), (0.0, 0.0))):
            bars = tree.fromstring(tables.picture(self.table, row)).findall("{http://www.w3.org/2000/svg}rect")
            self.assertEqual([float(bar.get("width")) for bar in bars], list(widths))


if __name__ == "__main__":
    unittest.main()
