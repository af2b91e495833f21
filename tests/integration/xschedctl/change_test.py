#!/usr/bin/env python3
"""Changes by xschedctl and how they are shown: set, hold, release, policy, and their events.

Usage: change_test.py XSCHEDCTL XSCHEDD FAKE_CLIENT
"""

import json
import select
import subprocess
import sys
import time
import unittest

import ctl_world
from ctl_world import WithDaemon


class Change(WithDaemon):
    def test_set_reset_and_dry_run(self):
        pid = self.client("--priority", "5")
        would = self.json("set", "--priority", "-50", "--pid", str(pid), "--dry-run")
        self.assertTrue(would["dry_run"])
        self.assertEqual(would["changes"][0]["priority_after"], -50)
        self.assertEqual(self.clients()[pid]["priority_effective"], 5)
        before = time.monotonic_ns()
        done = self.json("set", "--priority", "-50", "--pid", str(pid))
        self.assertEqual((done["changes"][0]["priority_before"], done["changes"][0]["priority_after"]), (5, -50))
        self.assertGreaterEqual(time.monotonic_ns(), done["applied_ns"])
        self.assertGreater(done["applied_ns"], before - 10**9)
        self.assertEqual(self.clients()[pid]["priority_source"], "admin")
        self.json("set", "--reset", "--pid", str(pid))
        self.assertEqual(self.clients()[pid]["priority_effective"], 5)

    def test_weights_are_set_and_reset_independently_of_priorities(self):
        pid = self.client("--priority", "5")
        would = self.json("set", "--weight", "300", "--pid", str(pid), "--dry-run")
        self.assertEqual((would["changes"][0]["weight_before"], would["changes"][0]["weight_after"]), (100, 300))
        self.assertEqual(self.clients()[pid]["weight"], 100)
        self.json("set", "--weight", "300", "--priority", "-2", "--pid", str(pid))
        self.assertEqual((self.clients()[pid]["weight"], self.clients()[pid]["priority_effective"]), (300, -2))
        self.json("set", "--reset", "weight", "--pid", str(pid))
        self.assertEqual((self.clients()[pid]["weight"], self.clients()[pid]["priority_effective"]), (100, -2))
        self.json("set", "--weight", "7", "--pid", str(pid))
        self.json("set", "--reset", "--pid", str(pid))
        self.assertEqual((self.clients()[pid]["weight"], self.clients()[pid]["priority_effective"]), (100, 5))
        header, line = self.ctl("set", "--weight", "9", "--all").stdout.splitlines()
        self.assertEqual(header.split(), ["PID", "PRIO", "NOW", "WEIGHT", "NOW", "HOLD", "NOTE"])
        self.assertEqual(line.split(), [str(pid), "5", "5", "100", "9", "no", "-"])
        weights = [event["weight"] for event in self.events() if event["kind"] == "weight"]
        self.assertEqual(weights, [300, 100, 7, 100, 9])

    def test_latency_is_set_and_reset(self):
        pid = self.client("--priority", "5")
        self.assertEqual(self.clients()[pid]["latency"], "auto")
        header, line = self.ctl("set", "--latency", "strict", "--all").stdout.splitlines()
        self.assertEqual(header.split(), ["PID", "PRIO", "NOW", "WEIGHT", "NOW", "LATENCY", "NOW", "HOLD", "NOTE"])
        self.assertEqual(line.split(), [str(pid), "5", "5", "100", "100", "auto", "strict", "no", "-"])
        self.assertEqual(self.clients()[pid]["latency"], "strict")
        self.assertIn("OTHERS", self.ctl("ps").stdout)
        self.assertIn("latency=strict", self.ctl("explain", str(pid)).stdout)
        self.json("set", "--reset", "latency", "--pid", str(pid))
        self.assertEqual(self.clients()[pid]["latency"], "auto")
        self.assertEqual([event["reason"].split(":")[0] for event in self.events() if event["kind"] == "lever"],
                         ["latency strict", "latency auto"])
        self.fails(2, "set", "--latency", "low", "--pid", "1", says=("--latency auto",))

    def test_hold_and_release(self):
        pid = self.client("--busy")
        self.json("hold", "--pid", str(pid))
        self.assertTrue(self.clients()[pid]["hold"])
        self.json("release", "--all")
        self.assertFalse(self.clients()[pid]["hold"])

    def test_policy(self):
        changed = self.json("policy", "set", "--window", "2ms", "--turn", "50ms", "--guard", "0")
        self.assertEqual((changed["window_us"], changed["turn_ms"], changed["guard_ms_per_s"]), (2000, 50, 0))
        self.assertEqual(self.json("policy", "get"), changed)
        changed = self.json("policy", "set", "--share-slack", "8ms", "--laxity-margin", "1ms", "--fair-quantum", "40ms",
                            "--max-concurrent", "3")
        self.assertEqual((changed["share_slack_us"], changed["laxity_margin_us"], changed["fair_quantum_ms"]),
                         (8000, 1000, 40))
        self.assertEqual((changed["max_concurrent"], changed["max_concurrent_by_vendor"]), (3, False))
        dry = self.ctl("policy", "set", "--max-concurrent", "auto", "--dry-run")
        self.assertIn("nothing was changed", dry.stdout)
        self.assertFalse(self.json("policy", "get")["max_concurrent_by_vendor"])
        self.assertTrue(self.json("policy", "set", "--max-concurrent", "vendor")["max_concurrent_by_vendor"])
        for time_slices in ("auto", "off"):
            self.assertEqual(self.json("policy", "set", "--time-slices", time_slices)["time_slices"], time_slices)
        self.fails(2, "policy", "set", "--time-slices", "on", says=("auto",))
        self.fails(2, "policy", "set", "--share-slack", "100us", says=("range",))
        for name in changed["available"]:
            self.assertEqual(self.json("policy", "set", name)["name"], name)
        self.fails(2, "policy", "set", "no-such-policy")
        self.fails(2, "policy", "set", "--window", "900s", says=("range",))

    def events(self):
        result = self.ctl("--json", "events")
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_events_remembered_and_followed(self):
        pid = self.client()
        self.json("set", "--priority", "9", "--pid", str(pid))
        events = self.events()
        self.assertIn(("priority", pid, 9), [(event["kind"], event["pid"], event["priority"]) for event in events])
        self.assertEqual([event["time_ns"] for event in events], sorted(event["time_ns"] for event in events))

        follower = subprocess.Popen([ctl_world.CTL, "--runtime-dir", self.folder, "--json", "events", "--follow"],
                                    stdout=subprocess.PIPE, text=True)
        self.children.append(follower)
        self.addCleanup(follower.stdout.close)
        # The follower does not show when it begins to listen, so changes are made until it shows one.
        shown = []
        for priority in range(11, 100):
            self.json("set", "--priority", str(priority), "--pid", str(pid))
            if shown := select.select([follower.stdout], [], [], 0.1)[0]:
                break
        self.assertTrue(shown)
        self.assertIn(json.loads(follower.stdout.readline())["priority"], range(11, priority + 1))

    def test_every_command_answers_in_json(self):
        pid = self.client("--busy")
        for words in (["ps"], ["ps", "--devices"], ["policy", "get"], ["stats"], ["version"], ["reload"],
                      ["explain", str(pid)], ["disable"], ["enable"]):
            done = self.ctl("--json", *words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIsInstance(json.loads(done.stdout), dict)


if __name__ == "__main__":
    unittest.main(argv=ctl_world.take(sys.argv))
