"""Two GPUs: a tenant that answers requests on the first, beside a training with one process on each GPU, which average their
gradients with NCCL. A process that is held on the first GPU keeps its peer on the other waiting, so the processes of the
training are also tried as one group. What the training loses beside it, and while it has no work, is measured by turns.

Thread rule: main thread.
"""

import socket
import time
from typing import Dict, Optional

from bench import Bench
from benchlib.processes import run_text
from rig import Rig
from scenarios import PROGRAMS, Program
from tracked import AWAY, AWAY_S, BESIDE, DISABLED, NO_WINDOW, RECENT, by_turns

RANKS = ("rank0", "rank1")
SECONDS = 10.0
ROUNDS, TURN_S = 5, 4.0
# 20 requests a second, 17 for each comparison, 32 of these.
LEARN_S = 40.0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def has_enough() -> bool:
    count = len(run_text(["nvidia-smi", "-L"]).strip().splitlines())
    if count < len(RANKS):
        print(f"gpus: needs {len(RANKS)} GPUs, found {count}: skipped", flush=True)
    return count >= len(RANKS)


def training(rig: Rig, extra: Optional[Dict[str, str]] = None) -> list:
    peers = {"WORLD_SIZE": str(len(RANKS)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), **(extra or {})}
    return [rig.start(Program(name, "distributed", "resnet50"), {**peers, "RANK": str(number)}) for number, name in enumerate(RANKS)]


def one_way(bench: Bench, way: str, rig: Rig, extra: Optional[Dict[str, str]] = None) -> None:
    ranks = training(rig, extra)
    high = rig.start(PROGRAMS["graph"])
    rig.wait_ready()
    if rig.daemon is None:
        bench.keep("gpus graph alone", rig.stretch([high], SECONDS))
    bench.keep(f"gpus {way} training alone", rig.stretch(ranks, SECONDS))
    result = bench.keep(f"gpus {way} beside the training", rig.stretch([high, *ranks], SECONDS), high.name)
    if rig.daemon is not None:
        result["clients"] = rig.daemon.ask("ps")["clients"]
    bench.close(rig)


def unused(bench: Bench) -> None:
    """The training while the important program, above it, has no work, and beside its requests."""
    if not has_enough():
        return
    rig = bench.rig(daemon=bench.daemon(bench.policy()))
    ranks = training(rig)
    high = rig.start(PROGRAMS["graph"])
    rig.wait_ready()
    by_turns(bench, rig, ranks, high, (DISABLED, NO_WINDOW, RECENT, BESIDE), ROUNDS, TURN_S, "gpus by turns", LEARN_S)
    time.sleep(AWAY_S)
    by_turns(bench, rig, ranks, high, (DISABLED, AWAY), ROUNDS, TURN_S, "gpus by turns")
    bench.close(rig)


def gpus(bench: Bench) -> None:
    if not has_enough():
        return
    one_way(bench, "native", bench.rig())
    one_way(bench, "xschedd", bench.rig(daemon=bench.daemon(bench.policy())))
    one_way(bench, "xschedd, one group", bench.rig(daemon=bench.daemon(bench.policy())), {"XSCHEDD_GROUP": "training"})
