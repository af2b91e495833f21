"""A limit of device memory with unmodified PyTorch: under `XSCHEDD_MEMORY` a process sees a device of that size, gets its
usual error above it and works below; a neighbour without a limit, which has more than that all the while, notices nothing.

Without a daemon, because the limit is the process's own. On a machine with a GPU, PyTorch and a build or what `pack` made:
    tools/bench/gpu/run --build FOLDER --out results --parts memory
Each line of the result says what was expected and whether it is so; the part fails if one is not. Thread rule: main thread.
"""

import json
import os
import subprocess
import sys
from typing import Any, Dict, List, Optional

from bench import Bench
from benchlib.processes import ToolError

WORK = [sys.executable, os.path.join(os.path.dirname(os.path.realpath(__file__)), "memory_work.py")]
GIB = 1 << 30
LIMIT = 8 * GIB
NEIGHBOUR = 12 * GIB
OUT_OF_MEMORY = 2
TIMEOUT_S = 240
# cudart itself clears the program's handle of an array when the driver's call fails.
CLEARED_BY_CUDART = "cudaMalloc3DArray"
# PyTorch's ways to get memory: its own cache over cudaMalloc, over the virtual memory API, and the driver's pools.
ALLOCATORS = {"native": "", "expandable": "expandable_segments:True", "async": "backend:cudaMallocAsync"}


class Case:
    """Processes with or without the shim and the limit, and what was found out about them."""

    def __init__(self, bench: Bench):
        self.bench, self.wrong = bench, []  # type: Bench, List[str]
        self.shim = os.path.join(bench.options.build, "client-shim", "libxschedd-shim.so")

    def environment(self, limit: Optional[int], allocator: str = "", shim: bool = True) -> Dict[str, str]:
        environment = dict(os.environ, XSCHEDD_RUNTIME_DIR=self.bench.folder)
        if shim:
            environment["LD_PRELOAD"] = self.shim
        if limit is not None:
            environment["XSCHEDD_MEMORY"] = str(limit)
        if allocator:
            environment["PYTORCH_CUDA_ALLOC_CONF"] = allocator
        return environment

    def run(self, *arguments: str, **options: Any) -> Dict[str, Any]:
        done = subprocess.run([*WORK, *arguments], env=self.environment(**options), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise ToolError(f"{' '.join(arguments)}: exit code {done.returncode}: {done.stderr[-2000:]}")
        return {**json.loads(done.stdout.splitlines()[-1]),
                "said": [line for line in done.stderr.splitlines() if line.startswith("xschedd:")]}

    def expect(self, name: str, result: Dict[str, Any], **expected: bool) -> None:
        self.bench.note(f"memory {name}", {**result, "expected": expected})
        self.wrong += [f"{name}: not so: {what}" for what, holds in expected.items() if not holds]


def sizes(seen: Dict[str, Any]) -> set:
    return {seen["total"], seen["properties"], seen["nvml"].get("total")}


def fill(case: Case, name: str, allocator: str) -> None:
    limited = case.run("fill", limit=LIMIT, allocator=allocator)
    case.expect(f"fill {name}", limited, sees_the_limit=sizes(limited["seen"]) == {LIMIT},
                usual_error="out of memory" in limited["error"], near_the_limit=LIMIT * 3 // 4 <= limited["bytes"] <= LIMIT,
                nothing_is_free_when_full=limited["full"]["free"] < GIB, works_below=limited["again"] == limited["bytes"] // 2,
                is_right=limited["is_right"], said_once=len(limited["said"]) == 1)


def memory(bench: Bench) -> None:
    case = Case(bench)
    native = case.run("kinds", str(LIMIT), limit=None, shim=False)
    preloaded = case.run("kinds", str(LIMIT), limit=None)
    case.expect("no limit", {"native": native, "preloaded": preloaded}, same_results=native["kinds"] == preloaded["kinds"],
                same_size=sizes(native["after"]) == sizes(preloaded["after"]), says_nothing=not preloaded["said"])
    with subprocess.Popen([*WORK, "neighbour", str(NEIGHBOUR)], env=case.environment(None), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise ToolError("the neighbour did not start")
            for name, allocator in ALLOCATORS.items():
                fill(case, name, allocator)
            kinds = case.run("kinds", str(LIMIT), limit=LIMIT)
            case.expect("kinds", kinds,
                        refused_above=all(kind["above"] == OUT_OF_MEMORY == kind["last_error"]
                                          and (kind["untouched"] or name == CLEARED_BY_CUDART)
                                          for name, kind in kinds["kinds"].items()),
                        given_below=all(kind["below"] == 0 == kind["freed"] for kind in kinds["kinds"].values()),
                        all_is_free_again=kinds["after"]["free"] > LIMIT - GIB)
            out, _ = process.communicate("\n", timeout=TIMEOUT_S)
        finally:
            process.kill()
    unhurt = json.loads(out.splitlines()[-1])
    case.expect("neighbour", unhurt, computed_all_the_while=unhurt["products"] > 0, no_wrong_product=unhurt["wrong"] == 0,
                kept_its_memory=unhurt["is_right"], sees_the_whole_device=LIMIT not in sizes(unhurt["seen"]))
    if case.wrong:
        raise ToolError("; ".join(case.wrong))
