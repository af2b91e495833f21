"""Gangs: processes that wait for each other inside their kernels, and share devices with other gangs."""

import json
import os
import shutil
import subprocess
import unittest

import harness
from harness import wait_for

ROUNDS = 100_000  # more than there is time for: the test ends the gangs
ASKED_AT = 12  # in programs/meeting.h
INSTANT_NS = 50_000_000  # long, because the daemon may have to wait for a core
TWO_DEVICES = {"SOFTGPU_DEVICES": "2"}


MPIRUN = shutil.which("mpirun") or shutil.which("mpirun.openmpi")


def end(meeting):
    """Tells ranks to end, after the same round."""
    with open(meeting, "r+b") as file:
        os.pwrite(file.fileno(), b"\1", ASKED_AT)


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[1])


class Gang:
    def __init__(self, node, name, priority, group=True):
        self.meeting = node.dir / f"meeting-{name}"
        environment = {**TWO_DEVICES, "E2E_MEETING": str(self.meeting), **({"XSCHEDD_GROUP": name} if group else {})}
        self.ranks = [node.start("gang_rank", ROUNDS, 2000, rank, rank, priority=priority, environment=environment)
                      for rank in (0, 1)]
        self.pids = [rank.pid for rank in self.ranks]

    def finish(self, node):
        """Both ranks end after the same round."""
        end(self.meeting)
        for rank in self.ranks:
            node.finish(rank)


class Gangs(harness.NodeTest):
    def follow_events(self):
        path = self.node.dir / "events"
        with open(path, "wb") as out:
            process = subprocess.Popen([harness.ctl_path, "--runtime-dir", self.node.runtime_dir, "--json", "events",
                                        "--follow", "--replay"], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                                       text=True, preexec_fn=harness.dies_with_this_process())
        self.node.processes.append(process)
        return process, path

    def read_events(self, follower, pids):
        """Everything up to the end of these clients: the follower may be late."""
        process, path = follower

        def read():
            return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]

        wait_for(lambda: set(pids) <= {event["pid"] for event in read() if event["kind"] == "gone"},
                 "the events tell that the gangs are gone")
        process.terminate()
        process.communicate(timeout=harness.DEADLINE_S)
        events = read()
        self.assertFalse([event for event in events if event["kind"] == "lost"], "no event was lost")
        return events

    def held_as_one(self, events, gangs):
        """Checks that the ranks of a gang that have work are all held or all open, except between a transition and
        the decision that follows it; returns how often each gang was held."""
        busy, held, torn_since = set(), set(), {}
        held_count = [0 for _ in gangs]
        for index, event in enumerate(events):
            pid, kind, now = event["pid"], event["kind"], event["time_ns"]
            if kind in ("busy", "held"):
                busy.add(pid)
            if kind == "held":
                held.add(pid)
            if kind in ("opened", "idle", "untracked", "gone"):
                held.discard(pid)
            if kind in ("idle", "untracked", "gone"):
                busy.discard(pid)
            if index + 1 < len(events) and events[index + 1]["time_ns"] == now:
                continue  # of one decision
            for gang, pids in enumerate(gangs):
                held_count[gang] += kind == "held" and pid in pids
                since = torn_since.get(gang, now)
                self.assertLess(now - since, INSTANT_NS, f"gang {pids} was partly held until event {index}: {event}")
                working = [pid for pid in pids if pid in busy]
                if 0 < sum(pid in held for pid in working) < len(working):
                    torn_since[gang] = since
                else:
                    torn_since.pop(gang, None)
        return held_count

    def test_ranks_meet_while_another_gang_uses_their_devices(self):
        node = self.node
        node.start_daemon()
        follower = self.follow_events()
        first, second = Gang(node, "first", 50), Gang(node, "second", 0)
        wait_for(lambda: all(len(node.dispatches(rank.pid, "meet")) > 0 for rank in first.ranks), "the first gang runs")
        wait_for(lambda: set(second.pids) <= set(node.clients()), "the second gang is connected")
        for priority in (80, 20, 90, 10, 70, 30):
            node.ctl("set", "--group", "second", "--priority", priority)
            lower = first if priority > 50 else second
            wait_for(lambda: any(node.device_state(pid).get("state") == "held" for pid in lower.pids),
                     "the gang of lower priority is held")
        first.finish(node)
        second.finish(node)
        held = self.held_as_one(self.read_events(follower, first.pids + second.pids), [first.pids, second.pids])
        self.assertTrue(all(held), f"each gang was held at times: {held}")

    def test_a_rule_makes_a_gang(self):
        node = self.node
        node.start_daemon(config='[[rule]]\nexe = "gang_rank"\njoin = "ranks"\n[[rule]]\nexe = "anchor"\npriority = 60\n')
        other = node.start("anchor", environment=TWO_DEVICES, interactive=True)  # on the first device alone
        self.assertEqual(other.stdout.readline().strip(), "ready")
        follower = self.follow_events()
        gang = Gang(node, "named-by-the-rule", None, group=False)
        wait_for(lambda: all(len(node.dispatches(rank.pid, "meet")) > 0 for rank in gang.ranks), "the gang runs")
        wait_for(lambda: set(gang.pids) <= set(node.clients()), "the gang is connected")
        self.assertEqual({node.clients()[pid]["group"] for pid in gang.pids}, {"ranks"})
        node.tell(other, "start 1000")
        wait_for(lambda: all(node.device_state(pid).get("state") == "held" for pid in gang.pids),
                 "the whole gang is held for one that is on one of its devices")
        node.tell(other, "stop")
        gang.finish(node)
        held = self.held_as_one(self.read_events(follower, gang.pids), [gang.pids])
        self.assertTrue(all(held), f"the gang was held: {held}")

    @unittest.skipUnless(MPIRUN, "no mpirun here")
    def test_ranks_of_mpirun_are_a_gang(self):
        """No group is given explicitly; Open MPI's environment names it."""
        node = self.node
        node.start_daemon()
        jobs = [self.mpirun(name) for name in ("first", "second")]
        wait_for(lambda: all(len(self.ranks(job)) == 2 for job in jobs), "two ranks of each job have a device")
        wait_for(lambda: all(len(node.dispatches(rank["pid"], "meet")) > 0 for job in jobs for rank in self.ranks(job)),
                 "both jobs run")
        groups = [{rank["group"] for rank in self.ranks(job)} for job in jobs]
        self.assertEqual([len(of_job) for of_job in groups], [1, 1], groups)
        self.assertNotEqual(*groups)
        self.assertTrue(all(group.startswith("mpi") for of_job in groups for group in of_job), groups)
        for meeting, job in jobs:
            end(meeting)
        for meeting, job in jobs:
            out, err = job.communicate(timeout=harness.DEADLINE_S)
            self.assertEqual((job.returncode, out.count("right:")), (0, 2), out + err)

    def mpirun(self, name):
        meeting = self.node.dir / f"meeting-{name}"
        rank = f'exec "$0" {ROUNDS} 2000 "$OMPI_COMM_WORLD_RANK" "$OMPI_COMM_WORLD_RANK"'
        return meeting, self.node.start(
            "gang_rank", before=(MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", 2, "sh", "-c", rank),
            environment={**TWO_DEVICES, "E2E_MEETING": str(meeting)})

    def ranks(self, job):
        """The clients whose parent is this mpirun."""
        return [client for pid, client in self.node.clients().items()
                if client["devices"] and parent_of(pid) == job[1].pid]


if __name__ == "__main__":
    unittest.main()
