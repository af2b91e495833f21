"""What jobs of the high partition wait for, beside jobs of the low one, on the software GPU: alone, without xschedd and with
it by turns; under live changes by scontrol; and when slurmd, the daemon and a slurmstepd are killed.

The job of the high partition answers requests that arrive at random times; three of the low one keep the GPU full. Without
xschedd, programs run without the shim. Each turn has the same arrivals. What is compared are latencies of the same run, and
nothing is asserted about a time of its own.

Thread rule: main thread.
"""

import itertools
import json
import time

from benchlib import figures, records
from machine import ROOT, Program, expect, run, wait_for

GPU = "/opt/test/gpu"
OUT = "/opt/test/out"
ROUNDS = 3
TURN_S = 10.0
# A request takes about 18 ms alone, 10 times a second. A neighbour has 19 ms of kernels queued, if nothing limits it.
REQUESTS = ("request_tenant", "--seconds", "0", "--rate", "10", "--kernels", "8", "--kernel-us", "2200", "--pattern", str(TURN_S),
            "--seed", "8")
SATURATING = ("saturating_tenant", "--seconds", "0", "--kernel-us", "1200", "--depth", "16")
NEIGHBOURS = 3
SETTLE_S = 20.0
BELOW_S = 3.0


class Tenant:
    """A job with one program on the software GPU, which has done its first work."""

    def __init__(self, program, job, path):
        self.program, self.job, self.path = program, job, path
        self.wrong = None
        self.start_ns = json.loads(program.hear()).get("start_ns", 0)

    def requests(self):
        return records.read_requests(self.path)

    def end(self):
        """By its job's end: the program says how many of its results were wrong."""
        run("scancel", "--signal=TERM", self.job)
        said = [json.loads(line) for line in self.program.process.stdout if line.startswith("{")]
        self.program.end()
        expect(said, f"job {self.job} has not said how it ended")
        expect(said[-1]["wrong_results"] == 0, f"job {self.job} has wrong results: {said[-1]}")


class Window:
    """A stretch of time of a turn: what both partitions had in it."""

    def __init__(self, begin_ns, end_ns, high, low):
        self.requests = figures.in_window(high.requests(), begin_ns, end_ns)
        self.kernels_s = records.rate([records.Progress.reported(tenant.path) for tenant in low], begin_ns, end_ns)
        expect(all(request.ok for request in self.requests), "a request has a wrong result")
        expect(self.requests, "no request came")


class Row:
    """What all windows of one kind had together."""

    def __init__(self, name, windows):
        self.name = name
        self.latencies = [request.latency_ms for window in windows for request in window.requests]
        self.kernels_s = sum(window.kernels_s for window in windows) / len(windows)
        self.p50, self.p99 = (figures.quantile(self.latencies, fraction) for fraction in (0.5, 0.99))

    def cells(self, alone, native):
        kept = f"{self.kernels_s / native.kernels_s:.0%}" if self.kernels_s else "-"
        return (self.name, f"{self.p50:.1f} / {self.p99:.1f} ms", f"{self.p50 / alone.p50:.2f} / {self.p99 / alone.p99:.2f}", kept,
                len(self.latencies))


class Latency:
    """Steps of slurm.Fleet, which has `srun`, `of` and `priority`."""

    def __init__(self, report):
        self.report, self.numbers = report, itertools.count()
        self.windows = {}
        self.serving = self.batch = None

    def tenant(self, partition, words, native=False):
        name = f"{partition}-{next(self.numbers)}"
        own = ("env", "-u", "LD_PRELOAD") if native else ()
        program = Program(*self.srun(partition, "--gres=shard:1", f"--job-name={name}", *own, "env", f"LD_LIBRARY_PATH={GPU}/libraries",
                                     f"{GPU}/softgpu-run", "--name", "fleet", "--", f"{GPU}/{words[0]}", *words[1:], "--out",
                                     f"{OUT}/{name}"))
        wait_for(lambda: run("squeue", "--noheader", "--name", name, "--states=RUNNING", "--format=%A"), f"{name} runs")
        return Tenant(program, run("squeue", "--noheader", "--name", name, "--format=%A"), ROOT / OUT[1:] / name)

    def neighbours(self, native=False):
        return [self.tenant("low", SATURATING, native) for _ in range(NEIGHBOURS)]

    def window(self, kind, begin_ns, low, end_ns=None):
        """The turn that begins then, with the latencies of all its requests, also of those that wait beyond its end: they
        are served in the order in which they came."""
        end_ns = end_ns or begin_ns + round(TURN_S * 1e9)
        wait_for(lambda: any(request.arrival_ns >= end_ns for request in self.serving.requests()[-1:]), f"the requests of turn {kind}")
        self.windows.setdefault(kind, []).append(Window(begin_ns, end_ns, self.serving, low))
        return self.row(kind)

    def turn(self, kind, low):
        """Begins with the next pattern of arrivals."""
        pattern_ns = round(TURN_S * 1e9)
        passed = time.monotonic_ns() - self.serving.start_ns
        return self.window(kind, self.serving.start_ns + (passed // pattern_ns + 1) * pattern_ns, low)

    def row(self, kind):
        return Row(kind, self.windows[kind])

    def settle(self):
        """Until the daemon knows whether holding the others helps, which it finds out by trying both."""
        end = time.monotonic() + SETTLE_S
        wait_for(lambda: (self.of(self.serving.job)["benefit"] or {}).get("is_settled") or time.monotonic() > end, "it has settled")

    def end_tenants(self):
        for tenant in (self.serving, *self.batch):
            tenant.end()
        self.serving, self.batch = None, []
        self.no_claims("the claims end")

    # ---- steps, in this order
    def partitions_by_turns(self):
        run("sh", "-c", f"mkdir -p {OUT} && chown alice {OUT}")
        for number in range(ROUNDS):
            self.serving, self.batch = self.tenant("high", REQUESTS, native=True), []
            self.turn("alone", [])
            self.batch = self.neighbours(native=True)
            self.turn("without xschedd", self.batch)
            self.end_tenants()
            self.batch = self.neighbours()
            self.serving = self.tenant("high", REQUESTS)
            expect(self.priority(self.serving.job) == (20, "claim"), f"its priority: {self.of(self.serving.job)}")
            self.settle()
            self.turn("with xschedd", self.batch)
            if number + 1 < ROUNDS:
                self.end_tenants()
        alone, native, ours = map(self.row, ("alone", "without xschedd", "with xschedd"))
        expect(ours.p50 < native.p50, f"xschedd gives the high partition nothing: {ours.p50} ms, {native.p50} ms without")
        return f"p50 {ours.p50 / alone.p50:.2f} times that alone, without xschedd {native.p50 / alone.p50:.2f}"

    def scontrol_is_felt(self):
        """Both jobs run on; only their ranks change. For a short time, because the requests that wait pile up."""
        self.sync_after("Nice=6000")
        begin_ns = time.monotonic_ns()
        expect(self.priority(self.serving.job) == (-40, "claim"), f"its priority: {self.of(self.serving.job)}")
        time.sleep(BELOW_S)
        end_ns = time.monotonic_ns()
        self.sync_after("Nice=0")
        caught_up = time.monotonic_ns()
        below = self.window(f"scontrol: Nice=6000 for {BELOW_S:.0f} s", begin_ns, self.batch, end_ns)
        wait_for(lambda: figures.caught_up_ns(self.serving.requests(), caught_up), "the requests that waited are served")
        back = self.turn("scontrol: Nice=0", self.batch)
        expect(back.p50 < below.p50, f"the change is not felt: {below.p50} ms, then {back.p50} ms")
        return f"p50 {below.p50:.1f} ms, then {back.p50:.1f} ms"

    def sync_after(self, change):
        run("scontrol", "update", f"JobId={self.serving.job}", change)
        run("systemctl", "start", "xschedd-slurm-sync.service")

    def killing_slurmd_ends_nothing(self):
        run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", "slurmd")
        row = self.window("slurmd killed", time.monotonic_ns(), self.batch)
        run("sh", "-c", "systemctl reset-failed slurmd; systemctl start slurmd")
        wait_for(lambda: run("sinfo", "--noheader", "--format", "%T", status=None) in ("mixed", "allocated"), "slurmd is back")
        return self.runs_on(row)

    def killing_the_daemon_ends_nothing(self):
        run("systemctl", "kill", "--signal=KILL", "xschedd.service")
        row = self.window("xschedd killed", time.monotonic_ns(), self.batch)
        wait_for(lambda: all(self.of(tenant.job) for tenant in (self.serving, *self.batch)), "the clients are back")
        return self.runs_on(row)

    def killing_a_slurmstepd_ends_its_job_only(self):
        """Its program may survive it where Slurm makes no cgroups; the test ends that."""
        victim = self.batch.pop()
        cgroup = next(claim["cgroup"] for claim in self.claims().values() if claim["labels"]["job"] == victim.job)
        run("pkill", "--signal=KILL", "--full", f"slurmstepd: .{victim.job}.0.")
        row = self.window("slurmstepd of a neighbour killed", time.monotonic_ns(), self.batch)
        run("scancel", victim.job, status=None)
        victim.program.end()
        self.end_processes(cgroup)
        self.end_of_claim(victim.job)
        said = self.runs_on(row)
        self.end_tenants()
        return said

    def runs_on(self, row):
        """Both partitions' jobs, with their claims; every request of the turn has been answered rightly."""
        expect(self.priority(self.serving.job) == (20, "claim"), f"its priority: {self.of(self.serving.job)}")
        for tenant in self.batch:
            expect(self.priority(tenant.job) == (-20, "claim"), f"a neighbour's priority: {self.of(tenant.job)}")
        return f"p50 {row.p50 / self.row('alone').p50:.2f} times that alone"

    def figures_are_written(self):
        """Beside the columns' reference, which is the first two rows."""
        alone, native = map(self.row, ("alone", "without xschedd"))
        lines = ["| turn | high partition, p50 / p99 | times that alone | low partition keeps | requests |", "|---|---|---|---|---|"]
        lines += ["| " + " | ".join(map(str, self.row(kind).cells(alone, native))) + " |" for kind in self.windows]
        version = run("srun", "--version").replace("slurm-wlm", "Slurm").replace("slurm ", "Slurm ")
        text = f"`./dev fleet {self.report.stem}`, {version}, {time.strftime('%Y-%m-%d')}:\n\n" + "\n".join(lines) + "\n"
        self.report.write_text(text, encoding="utf-8")
        print(text, flush=True)

    LATENCY_STEPS = (partitions_by_turns, scontrol_is_felt, killing_slurmd_ends_nothing, killing_the_daemon_ends_nothing,
                     killing_a_slurmstepd_ends_its_job_only, figures_are_written)
