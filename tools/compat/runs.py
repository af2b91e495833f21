"""Runs one program in one root without the shim, with the shim but no daemon, and with both under a hostile scheduler.

Contract: a run leaves nothing behind. Thread rule: one thread, plus the scheduler's and one that reads the program's
output.
"""

import collections
import contextlib
import dataclasses
import json
import pathlib
import random
import re
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
sys.path.insert(0, str(REPOSITORY / "tests/e2e"))
import harness  # noqa: E402

DEADLINE_S = 600
CLOCK_SCALE = 100  # stretches the work of very short programs, so that there is something to hold
NEIGHBOUR_PRIORITY = 0
# Host versions of the differential programs' kernels.
KERNELS = ":".join(str(harness.BUILD / name) for name in ("tests/e2e/libe2e_kernels.so",
                                                          "tests/differential/libdifferential_kernels.so"))
PRIORITIES = (-50, -20, 50)  # never the neighbour's, because then no client would be tracked

# The neighbour must be in the same process namespace: processes that share a software GPU see each other's pids.
TOGETHER = """
mkfifo "$1/input" "$1/ready"
SOFTGPU_TRACE=$1/neighbour XSCHEDD_PRIORITY=$2 ./neighbour <>"$1/input" >"$1/ready" &
read -r _ <"$1/ready"
shift 2
"$@"
"""


@dataclasses.dataclass
class Outcome:
    """What runs are compared by, and the daemon's record of the run."""
    status: int
    lines: list
    dispatches: collections.Counter  # (kind, name) → how many, of all processes of the program
    errors: str
    compiled: bool  # whether a library left a compiled kernel in its cache
    submitted: int = 0
    passthrough: int = 0
    held_ns: int = 0
    actions: int = 0
    sessions: dict = dataclasses.field(default_factory=dict)  # pid → executable


def is_neighbour(client):
    return client["exe"].endswith("/neighbour")


class Scheduler(threading.Thread):
    """Holds, releases and re-prioritises the program's processes at random moments until it is stopped; leaves them released."""

    def __init__(self, node, seed):
        super().__init__(daemon=True)
        self.node, self.random = node, random.Random(seed)
        self.actions = 0
        self.seen = {}  # pid → the daemon's last report of it
        self.ended = threading.Event()

    def observe(self):
        self.seen.update({pid: one for pid, one in self.node.clients().items() if not is_neighbour(one)})
        return list(self.seen)

    def run(self):
        while not self.ended.wait(self.random.uniform(0.001, 0.03)):
            pids = self.observe()
            if not pids:
                continue
            pid = self.random.choice(pids)
            # The first action is a hold, so that even a short program is held once.
            action = self.random.choice(("hold", "set", "set", "window")) if self.actions else "hold"
            if action == "window":
                self.node.ctl("policy", "set", "--window", self.random.choice(("50us", "200us", "2ms")), check=False)
            elif action == "set":
                self.node.ctl("set", "--pid", pid, "--priority", self.random.choice(PRIORITIES), check=False)
            else:
                self.node.ctl("hold", "--pid", pid, check=False)
                self.ended.wait(self.random.uniform(0.001, 0.05))
                self.node.ctl("release", "--pid", pid, check=False)
            self.actions += 1

    def stop(self):
        self.ended.set()
        self.join()


class Run:
    """A program of `row` in `root`, with a software GPU and, if `daemon`, a daemon and a neighbour."""

    def __init__(self, row, root, isa, programs, shim, daemon, seed):
        self.row, self.root, self.isa, self.programs = row, root, isa, programs
        self.shim, self.daemon, self.seed = shim, daemon, seed
        self.node = harness.Node()

    def environment(self, trace, priority):
        row, node = self.row, self.node
        variables = {
            "HOME": node.dir / "home",
            "LD_LIBRARY_PATH": harness.BUILD / "tools/softgpu",
            "SOFTGPU_NAME": node.name,
            "SOFTGPU_ISA": self.isa,
            "SOFTGPU_DEVICES": row.devices,
            "SOFTGPU_TRACE": trace,
            "SOFTGPU_CLOCK_SCALE": CLOCK_SCALE,
            "COMPAT_ROUNDS": row.rounds,
            **({"SOFTGPU_KERNELS": KERNELS} if row.differential else {}),
            **row.environment,
        }
        if self.shim:
            variables["LD_PRELOAD"] = harness.BUILD / "client-shim/libxschedd-shim.so"
            variables["XSCHEDD_RUNTIME_DIR"] = node.runtime_dir
            variables["XSCHEDD_PRIORITY"] = priority
        return variables

    def start(self, command, trace, priority=NEIGHBOUR_PRIORITY):
        node = self.node
        options = ["--private-pids"] if self.row.private_pids else []
        for name, value in self.environment(trace, priority).items():
            options += ["--env", f"{name}={value}"]
        for folder in (REPOSITORY, harness.BUILD, self.programs, node.dir):
            options += ["--bind", folder]
        if self.row.devices > 1:
            options += ["--class", node.dir / "kfd"]
        with open(node.dir / "errors", "ab") as errors:
            process = subprocess.Popen(
                list(map(str, [HERE / "root", "run", *options, "--chdir", self.programs, self.root, *command])),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                preexec_fn=harness.end_with_parent)
        node.processes.append(process)
        return process

    def start_program(self):
        row, node = self.row, self.node
        command = [word.format(programs=HERE / "programs") for word in row.command]
        command = command or [f"./{row.name}", *row.arguments]
        if row.private_pids and self.daemon:
            command = ["sh", "-c", TOGETHER, "sh", node.dir, NEIGHBOUR_PRIORITY, *command]
        return self.start(command, node.trace_prefix, PRIORITIES[1])

    def errors(self):
        return (self.node.dir / "errors").read_text(errors="replace")

    def go(self):
        with contextlib.closing(self.node) as node:
            (node.dir / "home").mkdir()
            if self.row.devices > 1:
                subprocess.run([REPOSITORY / "tools/softgpu/kfd-topology", node.dir / "kfd"], check=True)
            return self.scheduled() if self.daemon else self.alone()

    def alone(self):
        process = self.start_program()
        output, _ = process.communicate(timeout=DEADLINE_S)
        return self.outcome(process, output)

    def scheduled(self):
        node = self.node
        node.start_daemon()
        node.ctl("policy", "set", "--window", "200us", "--guard", "50ms")
        neighbour = None
        if not self.row.private_pids:
            neighbour = self.start(["./neighbour"], node.dir / "neighbour")
            if neighbour.stdout.readline().strip() != "ready":
                raise AssertionError("the neighbour did not start:\n" + self.errors())
        process = self.start_program()
        output, finished = [], threading.Event()

        def read():
            for line in process.stdout:
                output.append(line)
                if line.startswith("?"):  # a differential program's question; the scheduler decides when it is held
                    process.stdin.write("n\n")
                    process.stdin.flush()
                if re.fullmatch(r"\d+ calls, \d+ failed\n|main: end\n", line):
                    finished.set()
            finished.set()
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        scheduler = Scheduler(node, self.seed)
        scheduler.start()
        if not finished.wait(DEADLINE_S):
            raise AssertionError(f"not done within {DEADLINE_S} s; the last lines: {output[-3:]}\n{self.errors()}")
        scheduler.stop()
        for pid in scheduler.observe():
            node.ctl("release", "--pid", pid, check=False)
        process.stdin.close()
        process.wait(DEADLINE_S)
        reader.join()
        if neighbour is not None:
            neighbour.stdin.close()
            if neighbour.wait(DEADLINE_S) != 0:
                raise AssertionError("the neighbour failed:\n" + self.errors())
        outcome = self.outcome(process, "".join(output))
        for client in scheduler.seen.values():
            for device in client.get("devices", []):
                outcome.submitted += int(device.get("submitted", 0))
                outcome.passthrough += int(device.get("passthrough", 0))
                outcome.held_ns += int(device.get("held_ns", 0))
        outcome.actions = scheduler.actions
        connected = re.findall(r'client connected id=\d+ pid=(\d+) uid=\d+(?: place="[^"]*")? exe="([^"]*)"', node.daemon_log())
        outcome.sessions = {pid: exe for pid, exe in connected if not exe.endswith("/neighbour")}
        return outcome

    def outcome(self, process, output):
        node = self.node
        counted = collections.Counter()
        for trace in node.dir.glob(node.trace_prefix.name + ".*.jsonl"):
            for line in trace.read_text().splitlines():
                record = json.loads(line)
                counted[(record["kind"], record["name"])] += 1
        compiled = any(path.is_file() for path in (node.dir / "home").rglob("*"))
        lines = [line for line in output.splitlines() if not line.startswith("?")]
        return Outcome(process.returncode, lines, counted, self.errors(), compiled)
