"""Client churn: `./dev fault --churn N`: connect / work / kill -9 cycles against one daemon (docs/contributing/fault.md).

Three parts: N cycles of clients without a GPU (helpers/churner.cc: the real preamble, session and shared memory); some real
HIP clients; and how long a transition of one client takes to reach another's gate, with four other clients stopped at
different moments and without them. Prints the daemon's memory after each tenth; last line a JSON summary.

Growth is measured by RssAnon (/proc/PID/status), the process's memory that no file backs. The daemon remembers a bounded
number of events and, for `xschedctl explain`, of times: these in a pool of 2.8 MB, whose pages count only once they are used.
About 17,000 clients use them all, so the warm-up of a long run is longer than that; a short run has a wider limit. Thread
rule: one thread.
"""

import json
import os
import re
import signal
import subprocess
import time

import harness
import report
from service_manager import ServiceManager
from world import MS

WARM_UP, LONG_WARM_UP, LONG = 1000, 25_000, 10_000
PARALLEL = 8
SPARE_THREADS = 6  # gRPC's pool comes and goes with the load
GROWTH_LIMIT_KIB, SHORT_GROWTH_LIMIT_KIB = 1024, 4096
PCI_ADDRESS = "0000:fa:ce.0"  # also that of gate_latency
CHURNER = harness.BUILD / "tests/fault/churner"


class Churn(harness.Node):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.failures = []
        self.kills = {}  # pid -> ns of the last kill
        self.notice_ms = []
        self.not_worked = 0
        self.manager = ServiceManager(self.runtime_dir, [options.daemon, "--software-gpu", "--runtime-dir", self.runtime_dir, "--log-level",
                                                         "warning"], self.dir / "daemon.log", before=options.before)
        self.manager.start()
        self.pid = self.manager.pid

    def fail(self, what):
        self.failures.append(what)
        print("FAILURE:", what, flush=True)

    def facts(self):
        """Memory, descriptors and threads of the daemon, once no client is left and they are stable."""
        last = None
        for _ in range(100):
            time.sleep(0.05)
            with open(f"/proc/{self.pid}/status") as file:
                status = file.read()
            with open(f"/proc/{self.pid}/smaps_rollup") as file:
                rollup = file.read()
            facts = {"descriptors": len(os.listdir(f"/proc/{self.pid}/fd"))}
            for name, text in (("Threads", status), ("VmRSS", status), ("RssAnon", status), ("Pss", rollup)):
                facts[name] = int(re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE).group(1))
            if facts == last:
                break
            last = facts
        return facts

    def cycle(self, count):
        """Runs `count` cycles, then notes the deaths that the daemon still remembers."""
        result = subprocess.run([CHURNER, self.runtime_dir, "cycle", str(count), str(PARALLEL), PCI_ADDRESS],
                                capture_output=True, text=True, check=False)
        if result.returncode != 0:
            self.fail(f"churner: exit code {result.returncode} {result.stderr}")
        print(result.stderr, end="", flush=True)
        lines = result.stdout.splitlines()
        self.not_worked += lines.count("failed")
        self.kills = {int(line.split()[0]): int(line.split()[1]) for line in lines if line != "failed"}
        self.note_deaths()

    def note_deaths(self):
        harness.wait_for(lambda: not self.clients(), "the daemon forgets its clients")
        for line in self.ctl("--json", "events").stdout.splitlines():
            event = json.loads(line)
            if "gone" not in str(event.get("kind", "")).lower():
                continue
            killed = self.kills.pop(int(event["pid"]), None)
            if killed is not None and int(event["time_ns"]) > killed:
                self.notice_ms.append((int(event["time_ns"]) - killed) / MS)

    def hip(self, count):
        """Real HIP clients: started, seen to work, killed; a few at a time."""
        began, waiting, started, worked = time.monotonic(), [], 0, 0
        while started < count or waiting:
            while started < count and len(waiting) < 3:
                started += 1
                path = self.dir / f"hip-{started % 8}.diary"
                with open(path, "w+b"):
                    pass
                with open(path.with_suffix(".err"), "w+b") as errors:
                    process = self.start(harness.BUILD / "tests/fault/tenant", "steady", path, priority=0, interactive=True,
                                         trace=False, stderr=errors)
                waiting.append((process, path.with_suffix(".err")))
            process, errors = waiting.pop(0)
            if process.stdout.readline().strip() == "ready" and process.poll() is None:
                worked += 1
            else:
                print(f"HIP client {process.pid}: exit code {process.poll()}: {errors.read_text()[-500:]}", flush=True)
            time.sleep(0.005)  # at any moment of its first launches
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
            self.processes.remove(process)
        if worked != count:
            self.fail(f"{count - worked} of {count} HIP clients did not work")
        harness.wait_for(lambda: not self.clients(), "the daemon forgets its clients")
        return time.monotonic() - began

    def latency(self):
        rounds = 1500 if self.options.churn >= LONG else 200
        result = subprocess.run([harness.BUILD / "tools/bench/gate_latency", "--runtime-dir", self.runtime_dir, "--rounds",
                                 str(rounds)], capture_output=True, text=True, timeout=300, check=False)
        if result.returncode != 0:
            self.fail("gate_latency: " + result.stderr)
            return {}
        return json.loads(result.stdout)

    def beside_stopped(self):
        """Latency from transition to gate, alternately without and with stopped clients."""
        self.ctl("policy", "set", "--linger", "0")
        found = {"without": [], "beside_4_stopped": []}
        for _ in range(2):
            found["without"].append(self.latency())
            stopped = [subprocess.Popen([CHURNER, self.runtime_dir, "stopped", PCI_ADDRESS, str(step)],
                                        stdout=subprocess.PIPE, text=True) for step in range(4)]
            if any(process.stdout.readline().strip() != "there" for process in stopped):
                self.fail("a client did not get to the step at which it should be stopped")
            for process in stopped:
                process.send_signal(signal.SIGSTOP)
            found["beside_4_stopped"].append(self.latency())
            for process in stopped:
                process.kill()
                process.wait()
        self.ctl("policy", "set", "--linger", "200us")
        return found

    def close(self):
        self.manager.close()
        super().close()


def run(options):
    began = time.monotonic()
    churn = Churn(options)
    try:
        return work(churn, options, began)
    finally:
        churn.close()


def work(churn, options, began):
    warm_up = LONG_WARM_UP if options.churn >= LONG else WARM_UP
    churn.cycle(warm_up)
    before = churn.facts()
    print(f"after {warm_up} cycles of warm-up: {before}", flush=True)
    churn.notice_ms.clear()
    done, took = 0, 0.0
    while done < options.churn:
        some = min(options.churn - done, max(1000, options.churn // 10))
        start = time.monotonic()
        churn.cycle(some)
        took += time.monotonic() - start
        done += some
        after = churn.facts()
        print(f"{done} cycles: {after}, {done / took:.0f} a second", flush=True)
    hip_s = churn.hip(options.churn_hip) if options.churn_hip else 0
    after_hip = churn.facts()
    print(f"{options.churn_hip} HIP clients in {hip_s:.0f} s: {after_hip}", flush=True)
    latency = churn.beside_stopped()
    growth = after["RssAnon"] - before["RssAnon"]
    if growth > (GROWTH_LIMIT_KIB if options.churn >= LONG else SHORT_GROWTH_LIMIT_KIB):
        churn.fail(f"memory of the daemon grew by {growth} KiB")
    for when, facts in (("", after), (" and HIP clients", after_hip)):
        if facts["descriptors"] > before["descriptors"]:
            churn.fail(f"descriptors after cycles{when}: {before['descriptors']} before, {facts['descriptors']} after")
        if facts["Threads"] > before["Threads"] + SPARE_THREADS:
            churn.fail(f"threads after cycles{when}: {before['Threads']} before, {facts['Threads']} after")
    if churn.not_worked:
        churn.fail(f"{churn.not_worked} clients were not served")
    for _, status, ended_ns, _ in churn.manager.ends:
        churn.fail(f"the daemon ended {(time.monotonic_ns() - ended_ns) / 1e9:.3f} s ago, wait status {status}: "
                   + churn.manager.log_text()[-800:])
    notice = report.percentiles(churn.notice_ms)
    # A short run is a test on a machine that may be busy, so it does not check times.
    if not churn.notice_ms or (notice["p99"] > 100 and options.churn >= LONG):
        churn.fail(f"deaths noticed late: {notice}")
    print("\n".join(["death noticed after:", *report.histogram(churn.notice_ms)]), flush=True)
    print(json.dumps({
        "cycles": done, "warm_up": warm_up, "hip_clients": options.churn_hip, "failures": churn.failures,
        "rss_anon_growth_kib": growth, "rss_anon_growth_with_hip_kib": after_hip["RssAnon"] - before["RssAnon"],
        "before": before, "after": after, "after_hip": after_hip, "death_noticed_ms": notice, "transition_to_gate": latency,
        "cycles_a_second": round(done / took), "seconds": round(time.monotonic() - began, 1),
        "load": [round(load, 1) for load in os.getloadavg()]}), flush=True)
    return 1 if churn.failures else 0
