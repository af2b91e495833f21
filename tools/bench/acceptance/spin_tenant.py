#!/usr/bin/env python3
"""A tenant of acceptance that needs no PyTorch. usage: spin_tenant.py KIND MODEL, kinds and models of spin_work.py. Commands
and answers are those of tools/bench/gpu/tenant.py.

Thread rule: main thread.
"""

import json
import os
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "gpu"), os.path.dirname(HERE)]

import kernels  # noqa: E402
import spin_work  # noqa: E402
import tenant  # noqa: E402

# The functions of tenant.py for each kind.
AS = {"request": "request", "loop": "loop", "threads": "request", "launches": "loop", "priorities": "loop", "masks": "loop"}


def main() -> None:
    kind, model = sys.argv[1:3]
    began = time.monotonic()
    unit = spin_work.make_work(kernels.open_gpu(), kind, model)
    for _ in range(3):
        unit.step()
    tenant.say({"ready_s": time.monotonic() - began, "digest": unit.digest()})
    for line in sys.stdin:
        for recorded in ("launches_ns", "launch_ns", "change_ns"):
            if hasattr(unit, recorded):
                getattr(unit, recorded).clear()
        answer = tenant.obey(AS[kind], unit, json.loads(line))
        for listed in ("launches_ns", "change_ns"):
            if hasattr(unit, listed):
                answer[listed] = list(getattr(unit, listed))
        if hasattr(unit, "median_ns"):
            answer["launch_ns"] = unit.median_ns()
        tenant.say(answer)


if __name__ == "__main__":
    main()
