#!/usr/bin/env python3
"""xschedctl against the real daemon with clients that need no GPU: every exit status, JSON that parses, and changes that
show. Usage: xschedctl_test.py XSCHEDCTL XSCHEDD FAKE_CLIENT
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from typing import List, Optional

XSCHEDCTL, XSCHEDD, FAKE_CLIENT = "", "", ""


class Result:
    def __init__(self, done: subprocess.CompletedProcess):
        self.status, self.out, self.error = done.returncode, done.stdout, done.stderr


def ctl(folder: str, *words: str, prefix: Optional[List[str]] = None, **environment: str) -> Result:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("XSCHEDD_", "LD_PRELOAD"))}
    return Result(subprocess.run((prefix or []) + [XSCHEDCTL, "--runtime-dir", folder, *words], capture_output=True,
                                 text=True, timeout=30, check=False, env={**clean, **environment}))


def wait_until(condition, what: str) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come within 10 s")
        time.sleep(0.02)


class WithFolder(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="xschedctl-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.processes: List[subprocess.Popen] = []
        self.addCleanup(self.end_all)

    def end_all(self) -> None:
        for process in reversed(self.processes):
            # A stopped process takes no SIGTERM.
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.args[0] == XSCHEDD:  # a leak, a race and the counts of coverage are told at the end
                self.assertIn(process.returncode, (0, -signal.SIGKILL))

    def start(self, *words: str) -> subprocess.Popen:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def one_line(self, result: Result, status: int, *parts: str) -> None:
        self.assertEqual(result.status, status, result.error)
        lines = result.error.strip().splitlines()
        self.assertEqual(len(lines), 1, result.error)
        self.assertTrue(lines[0].startswith("xschedctl: "), lines[0])
        for part in parts:
            self.assertIn(part, lines[0])


class WithoutDaemon(WithFolder):
    def test_no_socket_is_no_daemon_and_comes_at_once(self) -> None:
        begun = time.monotonic()
        for words in (["ps"], ["set", "--priority", "5", "--pid", "1"], ["hold", "--all"], ["policy", "get"], ["stats"],
                      ["events"], ["trace", "-o", "/dev/null"], ["explain", "1"], ["reload"], ["disable"], ["enable"], ["ps", "--json"]):
            self.one_line(ctl(self.folder, *words), 3, "admin.sock", "start xschedd")
        self.assertLess(time.monotonic() - begun, 10)

    def test_version_is_told_without_a_daemon(self) -> None:
        result = ctl(self.folder, "version")
        self.assertIn("xschedctl ", result.out)
        self.assertEqual(result.status, 3)
        self.assertEqual(ctl(self.folder, "--version").status, 0)

    def test_usage(self) -> None:
        self.one_line(ctl(self.folder), 2, "no command")
        self.one_line(ctl(self.folder, "bogus"), 2, "bogus")
        self.one_line(ctl(self.folder, "set", "--pid", "1"), 2, "--reset")
        self.one_line(ctl(self.folder, "set", "--priority", "5"), 2, "--all")
        self.one_line(ctl(self.folder, "set", "--weight", "0", "--pid", "1"), 2, "1 to 10000")
        self.one_line(ctl(self.folder, "set", "--reset", "colour", "--pid", "1"), 2, "--reset weight")
        self.one_line(ctl(self.folder, "set", "--reset", "weight", "--weight", "5", "--pid", "1"), 2, "contradicts")
        self.one_line(ctl(self.folder, "policy", "set", "--max-concurrent", "many"), 2, "auto")
        self.one_line(ctl(self.folder, "trace"), 2, "--output")
        self.one_line(ctl(self.folder, "policy", "set", "--window", "25"), 2, "25ms")
        for priority in ("101", "-101", "high", "1.5"):
            self.one_line(ctl(self.folder, "set", "--priority", priority, "--pid", "1"), 2, "-100 to 100")

    def test_run_fails_open(self) -> None:
        shim = os.path.join(self.folder, "shim.so")
        # Something that the dynamic linker can preload and that does nothing.
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, "-x", "c", "/dev/null"], check=True)
        result = ctl(self.folder, "run", "--shim", shim, "--priority", "-7", "--group", "g", "--weight", "300",
                     "--deadline", "33ms", "--latency", "strict", "--", "sh", "-c",
                     'echo "$XSCHEDD_LATENCY|$LD_PRELOAD|$XSCHEDD_PRIORITY|$XSCHEDD_GROUP|$XSCHEDD_WEIGHT|$XSCHEDD_DEADLINE_US|'
                     '$XSCHEDD_RUNTIME_DIR"; exit 42')
        self.assertEqual(result.status, 42)
        self.assertEqual(result.out.strip(), f"strict|{shim}|-7|g|300|33000|{self.folder}")
        self.assertIn("unscheduled", result.error)
        kept = ctl(self.folder, "run", "--shim", shim, "--", "sh", "-c", 'echo "$LD_PRELOAD"', LD_PRELOAD=shim + "2")
        self.assertEqual(kept.out.strip(), f"{shim}:{shim}2")

    def test_run_takes_what_is_passed_through(self) -> None:
        def told(*options: str) -> str:
            return ctl(self.folder, "run", "--shim", "/dev/null", *options, "--", "sh", "-c",
                       'echo "$XSCHEDD_PASSTHROUGH"').out.strip()
        self.assertEqual(told("--passthrough", "librccl.so, hipMemcpyAsync", "--passthrough", "kernel:*nccl*"),
                         "librccl.so,hipMemcpyAsync,kernel:*nccl*")
        self.assertEqual(told(), "")
        for wrong, advice in (("hipMemcpyAsnc", "did you mean hipMemcpyAsync?"), ("librccl", "write librccl.so"),
                              ("hipStreamSynchronize", "never gated"), ("librccl.so,kernel:", "has no pattern")):
            self.one_line(ctl(self.folder, "run", "--shim", "/dev/null", "--passthrough", wrong, "--", "true"), 2, advice)

    def findings(self, result: Result) -> dict:
        answer = json.loads(result.out)
        self.assertEqual(answer["ok"], result.status == 0, result.error)
        found: dict = {}
        for one in answer["findings"]:
            found.setdefault(one["check"], []).append(one["level"] + ": " + one["what"] + "; " + one["fix"])
        return {check: "\n".join(lines) for check, lines in found.items()}

    def test_doctor_without_a_daemon(self) -> None:
        result = ctl(self.folder, "doctor")
        self.assertEqual(result.status, 1, result.error)
        self.assertIn("error    client socket    no daemon: ", result.out)
        found = self.findings(ctl(self.folder, "doctor", "--json", XSCHEDD_PRIORITY="high"))
        self.assertIn("start it: systemctl start xschedd", found["admin socket"])
        self.assertIn("ok: loads as the shim loads it: ", found["private library"])
        self.assertIn("-100 to 100", found["environment"])
        self.assertTrue(found["kernel"].startswith("ok: Linux "), found["kernel"])

    def test_doctor_says_why_the_private_library_cannot_load(self) -> None:
        def library(path: str) -> str:
            return self.findings(ctl(self.folder, "doctor", "--json", XSCHEDD_CLIENT_LIB=path))["private library"]
        self.assertIn("No such file or directory; install libxschedd-client.so beside", library("/nowhere/lib.so"))
        lacking = os.path.join(self.folder, "lacking.so")
        self.compile("-shared", "-o", lacking, "-Wl,-z,now", code="void absent(void); void f(void) { absent(); }")
        self.assertIn("undefined symbol: absent", library(lacking))
        crashing = os.path.join(self.folder, "crashing.so")
        self.compile("-shared", "-o", crashing, code="__attribute__((constructor)) void f(void) { __builtin_trap(); }")
        self.assertIn("ends the process by signal", library(crashing))
        other = os.path.join(self.folder, "other.so")
        self.compile("-shared", "-o", other, code="void f(void) {}")
        self.assertIn("does not export xschedd_client_start", library(other))

    def compile(self, *options: str, code: str) -> None:
        subprocess.run(["cc", "-fPIC", *options, "-x", "c", "-"], input=code, text=True, check=True)

    def test_doctor_says_why_a_process_is_not_scheduled(self) -> None:
        program = "#include <unistd.h>\nint main(void) { pause(); return 0; }"
        plain, static = (os.path.join(self.folder, name) for name in ("plain", "static"))
        self.compile("-o", plain, code=program)
        self.compile("-static", "-o", static, code=program)
        set_uid = os.path.join(self.folder, "set-uid")
        shutil.copy(plain, set_uid)
        os.chmod(set_uid, 0o4755)

        def process(command: str, *options: str) -> str:
            pid = self.start(*(["env", *options] if options else []), command).pid
            wait_until(lambda: os.readlink(f"/proc/{pid}/exe") == command, "the program")
            return self.findings(ctl(self.folder, "doctor", "--json", "--pid", str(pid)))["process"]
        self.assertIn("LD_PRELOAD does not name it; start it by xschedctl run", process(plain))
        self.assertIn("statically linked", process(static))
        self.assertIn("set-uid", process(set_uid))
        self.assertIn("is not there in its container", process(plain, "LD_PRELOAD=/nowhere/libxschedd-shim.so"))
        self.assertIn("there is no pid 4194999", self.findings(
            ctl(self.folder, "doctor", "--json", "--pid", "4194999"))["process"])

    def test_doctor_looks_at_a_container(self) -> None:
        root = os.path.join(self.folder, "root")
        os.mkdir(root)
        found = self.findings(ctl(self.folder, "doctor", "--json", "--root", root))["root"]
        for part in ("libxschedd-shim.so; bind-mount", "client.sock: its programs find no daemon", "client.sock itself into it", "not musl"):
            self.assertIn(part, found)

    def test_run_says_what_is_missing(self) -> None:
        self.one_line(ctl(self.folder, "run", "--shim", "/nowhere.so", "--", "true"), 8, "/nowhere.so")
        self.one_line(ctl(self.folder, "run", "--"), 2, "no command")
        self.one_line(ctl(self.folder, "run", "--priority", "300", "--", "true"), 2, "-100 to 100")
        self.one_line(ctl(self.folder, "run", "--weight", "10001", "--", "true"), 2, "1 to 10000")
        self.one_line(ctl(self.folder, "run", "--deadline", "33", "--", "true"), 2, "25ms")
        self.one_line(ctl(self.folder, "run", "--deadline", "0", "--", "true"), 2, "1us")
        missing = ctl(self.folder, "run", "--shim", "/dev/null", "--", "/nowhere/at/all")
        self.assertEqual(missing.status, 127, missing.error)
        plain = os.path.join(self.folder, "plain")
        with open(plain, "w", encoding="utf-8") as file:
            file.write("text")
        self.assertEqual(ctl(self.folder, "run", "--shim", "/dev/null", "--", plain).status, 126)


class WithDaemon(WithFolder):
    def setUp(self) -> None:
        super().setUp()
        self.daemon = self.start(XSCHEDD, "--software-gpu", "--runtime-dir", self.folder)
        wait_until(lambda: ctl(self.folder, "stats").status == 0, "the daemon")

    def test_doctor_with_a_daemon(self) -> None:
        answer = json.loads(ctl(self.folder, "doctor", "--json", "--pid", str(self.client())).out)
        found = {one["check"]: one["level"] + ": " + one["what"] for one in answer["findings"]}
        self.assertIn("ok: the daemon listens", found["client socket"])
        self.assertIn("ok: the daemon answers", found["admin socket"])
        self.assertIn("ok: xschedctl, the daemon, the shim: ", found["versions"])
        self.assertIn("has a session with the daemon", found["session"])
        self.daemon.send_signal(signal.SIGSTOP)
        stopped = ctl(self.folder, "doctor")
        self.assertEqual(stopped.status, 1)
        self.assertIn("error    admin socket     the daemon does not answer", stopped.out)

    def client(self, *words: str) -> int:
        process = self.start(FAKE_CLIENT, "--runtime-dir", self.folder, *words)
        wait_until(lambda: process.pid in self.clients(), "the client")
        return process.pid

    def json(self, *words: str) -> dict:
        result = ctl(self.folder, "--json", *words)
        self.assertEqual(result.status, 0, result.error)
        self.assertEqual(result.error, "")
        return json.loads(result.out)

    def clients(self) -> dict:
        return {client["pid"]: client for client in self.json("ps")["clients"] if client["devices"]}

    def test_ps_shows_hint_and_state(self) -> None:
        high = self.client("--priority", "5", "--busy", "--group", "ranks")
        low = self.client("--priority", "-5", "--busy")
        wait_until(lambda: self.clients()[low]["devices"][0]["state"] == "held", "the hold of the lower one")
        clients = self.clients()
        self.assertEqual(clients[high]["priority_hint"], 5)
        self.assertEqual(clients[high]["priority_source"], "hint")
        self.assertEqual(clients[high]["group"], "ranks")
        self.assertEqual(clients[low]["devices"][0]["held_for"], f"pid {high}")
        plain = ctl(self.folder, "ps")
        self.assertIn("HINT", plain.out.splitlines()[0])
        self.assertEqual(len(ctl(self.folder, "ps", "--no-header").out.splitlines()), 2)
        self.assertEqual(len(ctl(self.folder, "ps", "--no-header", "--pid", str(low)).out.splitlines()), 1)

    def test_set_reset_and_dry_run(self) -> None:
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

    def test_weights_are_set_and_reset_apart_from_priorities(self) -> None:
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
        header, line = ctl(self.folder, "set", "--weight", "9", "--all").out.splitlines()
        self.assertEqual(header.split(), ["PID", "PRIO", "NOW", "WEIGHT", "NOW", "HOLD", "NOTE"])
        self.assertEqual(line.split(), [str(pid), "5", "5", "100", "9", "no", "-"])
        weights = [event["weight"] for event in self.events() if event["kind"] == "weight"]
        self.assertEqual(weights, [300, 100, 7, 100, 9])

    def test_latency_is_set_and_reset(self) -> None:
        pid = self.client("--priority", "5")
        self.assertEqual(self.clients()[pid]["latency"], "auto")
        header, line = ctl(self.folder, "set", "--latency", "strict", "--all").out.splitlines()
        self.assertEqual(header.split(), ["PID", "PRIO", "NOW", "WEIGHT", "NOW", "LATENCY", "NOW", "HOLD", "NOTE"])
        self.assertEqual(line.split(), [str(pid), "5", "5", "100", "100", "auto", "strict", "no", "-"])
        self.assertEqual(self.clients()[pid]["latency"], "strict")
        self.assertIn("OTHERS", ctl(self.folder, "ps").out)
        self.assertIn("latency=strict", ctl(self.folder, "explain", str(pid)).out)
        self.json("set", "--reset", "latency", "--pid", str(pid))
        self.assertEqual(self.clients()[pid]["latency"], "auto")
        self.assertEqual([event["reason"].split(":")[0] for event in self.events() if event["kind"] == "lever"],
                         ["latency strict", "latency auto"])
        self.one_line(ctl(self.folder, "set", "--latency", "low", "--pid", "1"), 2, "--latency auto")

    def events(self) -> list:
        result = ctl(self.folder, "--json", "events")
        self.assertEqual(result.status, 0, result.error)
        return [json.loads(line) for line in result.out.splitlines()]

    def test_explain_says_who_and_what_to_type(self) -> None:
        high = self.client("--priority", "5", "--busy")
        low = self.client("--priority", "-5", "--busy")
        wait_until(lambda: self.clients()[low]["devices"][0]["state"] == "held", "the hold of the lower one")
        time.sleep(0.2)
        told = self.json("explain", str(low))
        self.assertEqual(told["causes"][0]["for_pid"], high)
        self.assertEqual(told["causes"][0]["rule"], "priority")
        self.assertIn(f"priority: pid {high} (", told["causes"][0]["reason"])
        self.assertIn(os.path.basename(FAKE_CLIENT), told["causes"][0]["reason"])
        device = told["devices"][0]
        self.assertEqual(device["running_ns"] + device["held_ns"] + device["idle_ns"] + device["untracked_ns"],
                         device["observed_ns"])
        self.assertGreater(device["held_ns"], device["observed_ns"] // 4)
        command = told["remedies"][0]["command"]
        self.assertEqual(command, f"xschedctl set --priority 5 --pid {low}")
        text = ctl(self.folder, "explain", str(low)).out
        self.assertIn("what to do:", text)
        self.assertIn(command, text)
        # What it says to type works.
        self.assertEqual(ctl(self.folder, *command.split()[1:]).status, 0)
        self.assertEqual(self.clients()[low]["devices"][0]["state"], "untracked")
        self.assertIn("did not make it wait", self.json("explain", str(high))["summary"])

    def test_explain_remembers_who_has_ended(self) -> None:
        self.client("--priority", "5", "--busy")
        low = self.client("--priority", "-5", "--busy")
        wait_until(lambda: self.clients()[low]["devices"][0]["state"] == "held", "the hold of the lower one")
        time.sleep(0.1)
        self.processes[-1].kill()
        self.processes[-1].wait()
        wait_until(lambda: low not in self.clients(), "its end")
        told = self.json("explain", str(low))
        self.assertTrue(told["is_gone"])
        self.assertIn(f"pid {low} (priority -5, weight 100) ended ", told["summary"])
        self.assertGreater(told["held_ns"], 0)
        self.assertNotIn(f"--pid {low}", json.dumps(told["remedies"]))

    def record(self, *words: str) -> subprocess.Popen:
        """A trace that records."""
        path = os.path.join(self.folder, "trace.json")
        process = subprocess.Popen([XSCHEDCTL, "--runtime-dir", self.folder, "--json", "trace", "-o", path, *words],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 0 or process.poll() is not None, "the trace")
        return process

    def recorded(self, process: subprocess.Popen) -> tuple:
        """What it says about the recording, and its events."""
        out, error = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 0, error)
        with open(os.path.join(self.folder, "trace.json"), encoding="utf-8") as file:
            return json.loads(out), json.load(file)["traceEvents"]

    def test_trace_has_every_client_without_gaps_or_overlaps(self) -> None:
        high = self.client("--priority", "5", "--busy")
        low = self.client("--priority", "-5", "--busy")
        still = self.client("--priority", "-7")
        wait_until(lambda: self.clients()[low]["devices"][0]["state"] == "held", "the hold of the lower one")
        process = self.record()
        time.sleep(0.2)
        self.json("hold", "--pid", str(high))
        time.sleep(0.2)
        self.json("release", "--pid", str(high))
        late = self.client("--priority", "9", "--busy")
        self.json("policy", "set", "--turn", "30ms")
        time.sleep(0.2)
        self.processes[-1].kill()
        self.processes[-1].wait()
        wait_until(lambda: late not in self.clients(), "its end")
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

    def test_trace_for_so_long(self) -> None:
        self.client("--busy")
        said, events = self.recorded(self.record("--duration", "1s"))
        self.assertEqual(said["duration_ns"], 10**9)
        self.assertEqual([event["dur"] for event in events if event["ph"] == "X"], [10**6])

    def test_trace_says_what_it_cannot_write(self) -> None:
        self.one_line(ctl(self.folder, "trace", "-o", "/nowhere/at/all", "--duration", "1s"), 2, "/nowhere/at/all")
        self.one_line(ctl(self.folder, "trace", "-o", "/dev/full", "--duration", "1s"), 6, "/dev/full")

    def test_a_trace_is_whole_when_the_daemon_dies(self) -> None:
        pid = self.client("--busy")
        process = self.record()
        self.daemon.kill()
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 3)
        with open(os.path.join(self.folder, "trace.json"), encoding="utf-8") as file:
            self.assertIn(pid, [event["pid"] for event in json.load(file)["traceEvents"] if event["ph"] == "X"])

    def test_hold_and_release(self) -> None:
        pid = self.client("--busy")
        self.json("hold", "--pid", str(pid))
        self.assertTrue(self.clients()[pid]["hold"])
        self.json("release", "--all")
        self.assertFalse(self.clients()[pid]["hold"])

    def test_nobody_fits(self) -> None:
        self.one_line(ctl(self.folder, "set", "--priority", "5", "--pid", "1"), 5, "pid 1")
        self.one_line(ctl(self.folder, "explain", "1"), 5, "pid 1")
        self.one_line(ctl(self.folder, "hold", "--exe", "no-such-program"), 5, "no-such-program")

    def test_policy(self) -> None:
        changed = self.json("policy", "set", "--window", "2ms", "--turn", "50ms", "--guard", "0")
        self.assertEqual((changed["window_us"], changed["turn_ms"], changed["guard_ms_per_s"]), (2000, 50, 0))
        self.assertEqual(self.json("policy", "get"), changed)
        changed = self.json("policy", "set", "--share-slack", "8ms", "--laxity-margin", "1ms", "--fair-quantum", "40ms",
                            "--max-concurrent", "3")
        self.assertEqual((changed["share_slack_us"], changed["laxity_margin_us"], changed["fair_quantum_ms"]),
                         (8000, 1000, 40))
        self.assertEqual((changed["max_concurrent"], changed["max_concurrent_by_vendor"]), (3, False))
        dry = ctl(self.folder, "policy", "set", "--max-concurrent", "auto", "--dry-run")
        self.assertIn("nothing was changed", dry.out)
        self.assertFalse(self.json("policy", "get")["max_concurrent_by_vendor"])
        self.assertTrue(self.json("policy", "set", "--max-concurrent", "vendor")["max_concurrent_by_vendor"])
        for time_slices in ("auto", "off"):
            self.assertEqual(self.json("policy", "set", "--time-slices", time_slices)["time_slices"], time_slices)
        self.one_line(ctl(self.folder, "policy", "set", "--time-slices", "on"), 2, "auto")
        self.one_line(ctl(self.folder, "policy", "set", "--share-slack", "100us"), 2, "range")
        for name in changed["available"]:
            self.assertEqual(self.json("policy", "set", name)["name"], name)
        self.one_line(ctl(self.folder, "policy", "set", "no-such-policy"), 2)
        self.one_line(ctl(self.folder, "policy", "set", "--window", "900s"), 2, "range")

    def test_events_remembered_and_followed(self) -> None:
        pid = self.client()
        self.json("set", "--priority", "9", "--pid", str(pid))
        events = self.events()
        self.assertIn(("priority", pid, 9), [(event["kind"], event["pid"], event["priority"]) for event in events])
        self.assertEqual([event["time_ns"] for event in events], sorted(event["time_ns"] for event in events))

        follower = subprocess.Popen([XSCHEDCTL, "--runtime-dir", self.folder, "--json", "events", "--follow"],
                                    stdout=subprocess.PIPE, text=True)
        self.processes.append(follower)
        self.addCleanup(follower.stdout.close)
        time.sleep(0.3)
        self.json("set", "--priority", "11", "--pid", str(pid))
        self.assertEqual(json.loads(follower.stdout.readline())["priority"], 11)

    def test_everything_answers_in_json(self) -> None:
        pid = self.client("--busy")
        for words in (["ps"], ["ps", "--devices"], ["policy", "get"], ["stats"], ["version"], ["reload"],
                      ["explain", str(pid)], ["disable"], ["enable"]):
            self.assertIsInstance(self.json(*words), dict)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv to become somebody else")
    def test_other_users_see_only_their_own(self) -> None:
        # Others reach the folder, and must fail at the socket itself.
        os.chmod(self.folder, os.stat(self.folder).st_mode | stat.S_IXGRP | stat.S_IXOTH)
        stranger = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        self.client()
        shown = ctl(self.folder, "ps", prefix=stranger)
        self.assertEqual((shown.status, shown.out.splitlines()[-1]), (0, "(1 client of other users not shown)"), shown.error)
        self.one_line(ctl(self.folder, "stats", prefix=stranger), 4, "group xschedd", "admin.sock cannot be opened")

    def test_a_stopped_daemon_times_out(self) -> None:
        self.daemon.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        self.one_line(ctl(self.folder, "stats"), 7, "did not answer")
        self.assertLess(time.monotonic() - begun, 8)

    def test_a_killed_daemon_is_no_daemon(self) -> None:
        self.daemon.kill()
        self.daemon.wait()
        self.one_line(ctl(self.folder, "ps"), 3, "start xschedd")


if __name__ == "__main__":
    XSCHEDCTL, XSCHEDD, FAKE_CLIENT = sys.argv[1:4]
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:])
