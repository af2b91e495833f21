#!/usr/bin/env python3
"""Which client waits for which, as shown by ps and explain and recorded by trace.

Usage: explain_trace_test.py XSCHEDCTL XSCHEDD FAKE_CLIENT
"""

import json
import os
import signal
import subprocess
import sys
import unittest

import ctl_world
from ctl_world import WithDaemon


class Explain(WithDaemon):
    def test_ps_shows_hint_and_state(self):
        high = self.client("--priority", "5", "--busy", "--group", "ranks")
        low = self.client("--priority", "-5", "--busy")
        self.wait_for_state(low, "held")
        clients = self.clients()
        self.assertEqual(clients[high]["priority_hint"], 5)
        self.assertEqual(clients[high]["priority_source"], "hint")
        self.assertEqual(clients[high]["group"], "ranks")
        self.assertEqual(clients[low]["devices"][0]["held_for"], f"pid {high}")
        plain = self.ctl("ps")
        self.assertIn("HINT", plain.stdout.splitlines()[0])
        lines = self.ctl("ps", "--no-header").stdout.splitlines()
        self.assertEqual(len(lines), 2, lines)
        self.assertEqual(len(self.ctl("ps", "--no-header", "--pid", str(low)).stdout.splitlines()), 1)

    def test_explain_names_the_other_client_and_commands(self):
        high = self.client("--priority", "5", "--busy")
        low = self.client("--priority", "-5", "--busy")

        def held_for_long():
            device = self.json("explain", str(low))["devices"][0]
            return device["held_ns"] > device["observed_ns"] // 4
        self.wait(held_for_long, "the lower one has been held for a quarter of its time")
        answer = self.json("explain", str(low))
        self.assertEqual(answer["causes"][0]["for_pid"], high)
        self.assertEqual(answer["causes"][0]["rule"], "priority")
        self.assertIn(f"priority: pid {high} (", answer["causes"][0]["reason"])
        self.assertIn(os.path.basename(ctl_world.CLIENT), answer["causes"][0]["reason"])
        device = answer["devices"][0]
        self.assertEqual(device["running_ns"] + device["held_ns"] + device["idle_ns"] + device["untracked_ns"],
                         device["observed_ns"])
        command = answer["remedies"][0]["command"]
        self.assertEqual(command, f"xschedctl set {low} --priority 5")
        text = self.ctl("explain", str(low)).stdout
        self.assertIn("what to do:", text)
        self.assertIn(command, text)
        # The command that it shows works.
        self.assertEqual(self.ctl(*command.split()[1:]).returncode, 0)
        self.assertEqual(self.clients()[low]["devices"][0]["state"], "untracked")
        self.assertIn("did not make it wait", self.json("explain", str(high))["summary"])

    def test_explain_remembers_clients_that_have_ended(self):
        self.client("--priority", "5", "--busy")
        low = self.client("--priority", "-5", "--busy")
        self.wait(lambda: self.json("explain", str(low))["held_ns"] > 0, "the lower one has been held")
        self.children[-1].kill()
        self.children[-1].wait()
        self.wait(lambda: low not in self.clients(), "its end")
        answer = self.json("explain", str(low))
        self.assertTrue(answer["is_gone"])
        self.assertIn(f"pid {low} (priority -5, weight 100) ended ", answer["summary"])
        self.assertGreater(answer["held_ns"], 0)
        self.assertNotIn(f"xschedctl set {low} ", json.dumps(answer["remedies"]))


class Trace(WithDaemon):
    def record(self, *words):
        """Starts a trace, and waits until it records."""
        path = os.path.join(self.folder, "trace.json")
        process = subprocess.Popen([ctl_world.CTL, "--runtime-dir", self.folder, "--json", "trace", "-o", path, *words],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.children.append(process)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.wait(lambda: os.path.exists(path) and os.path.getsize(path) > 0 or process.poll() is not None, "the trace")
        return process

    def recorded(self, process):
        """The summary of the recording, and its events."""
        out, error = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 0, error)
        with open(os.path.join(self.folder, "trace.json"), encoding="utf-8") as file:
            return json.loads(out), json.load(file)["traceEvents"]

    def test_trace_has_every_client_without_gaps_or_overlaps(self):
        high = self.client("--priority", "5", "--busy")
        low = self.client("--priority", "-5", "--busy")
        still = self.client("--priority", "-7")
        self.json("policy", "set", "--guard", "0")  # its turn could be under way when the recording begins
        self.wait_for_state(low, "held")
        process = self.record()
        self.json("hold", "--pid", str(high))
        self.wait_for_state(low, "running")
        self.json("release", "--pid", str(high))
        self.wait_for_state(low, "held")
        late = self.client("--priority", "9", "--busy")
        self.wait_for_state(late, "running")
        self.json("policy", "set", "--turn", "30ms")
        self.children[-1].kill()
        self.children[-1].wait()
        self.wait(lambda: late not in self.clients(), "its end")
        process.send_signal(signal.SIGINT)
        said, events = self.recorded(process)
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        for pid in (high, low, still, late):
            self.assertIn(f"pid {pid} ", names[pid])
            self.assertIn("fake_client", names[pid])
        self.assertTrue(any(name.startswith("device 0000:fa:ce.0") for name in names.values()), names)
        slices = {pid: [event for event in events if event["ph"] == "X" and event["pid"] == pid] for pid in names}
        for pid in (high, low, still, late):
            for one, next_one in zip(slices[pid], slices[pid][1:]):
                self.assertAlmostEqual(one["ts"] + one["dur"], next_one["ts"], places=2)
        for pid in (high, low, still):
            self.assertEqual(slices[pid][0]["ts"], 0)
            self.assertAlmostEqual(sum(one["dur"] for one in slices[pid]), said["duration_ns"] / 1e3, places=1)
        self.assertLess(sum(one["dur"] for one in slices[late]), said["duration_ns"] / 1e3)
        self.assertEqual([one["name"] for one in slices[still]], ["idle"])
        states = [one["name"] for one in slices[low]]
        self.assertEqual(states[:3], [f"held for pid {high}", "running", f"held for pid {high}"])
        self.assertEqual(slices[low][2]["args"]["for_pid"], high)
        self.assertEqual([one["args"]["rule"] for one in slices[high] if one["name"] == "held: hold"][:1], ["hold"])
        marks = {event["name"]: event for event in events if event["ph"] == "i"}
        self.assertLessEqual({"hold", "release", "policy"}, set(marks))
        self.assertIn("by uid", marks["hold"]["args"]["why"])
        counts = [event["args"] for event in events if event["ph"] == "C"]
        self.assertIn({"running": 1, "held": 1}, counts)
        self.assertEqual(said["slices"], sum(len(of_one) for of_one in slices.values()))

    def test_trace_for_a_duration(self):
        self.client("--busy")
        said, events = self.recorded(self.record("--duration", "1s"))
        self.assertEqual(said["duration_ns"], 10**9)
        self.assertEqual([event["dur"] for event in events if event["ph"] == "X"], [10**6])

    def test_trace_reports_a_file_that_it_cannot_write(self):
        self.fails(2, "trace", "-o", "/nowhere/at/all", "--duration", "1s", says=("/nowhere/at/all",))
        self.fails(6, "trace", "-o", "/dev/full", "--duration", "1s", says=("/dev/full",))

    def test_a_trace_is_complete_when_the_daemon_dies(self):
        pid = self.client("--busy")
        process = self.record()
        self.daemon.kill()
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 3)
        with open(os.path.join(self.folder, "trace.json"), encoding="utf-8") as file:
            self.assertIn(pid, [event["pid"] for event in json.load(file)["traceEvents"] if event["ph"] == "X"])


if __name__ == "__main__":
    unittest.main(argv=ctl_world.take(sys.argv))
