#!/usr/bin/env python3
"""A program of *harmless*. usage: library_program.py NAME [--stay]. Eight threads use a library of the folder libraries on the
first GPU. It prints `begun`, and at its end the digest of all data, as JSON; with --stay it waits for a line after `begun`, and
at its end until its standard input ends. Status 3: the library is not installed or not for this GPU; standard error says which.

Thread rule: main thread; a Work belongs to its thread.
"""

import hashlib
import importlib
import json
import os
import sys
import threading
from typing import Dict, List

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE]

import kernels  # noqa: E402
from breaks import BROKEN, leave_xschedd  # noqa: E402
from libraries.common import Absent  # noqa: E402
from probe import NoGpu  # noqa: E402

THREADS, ROUNDS, ABSENT = 8, 3, 3


def work(module, library, gpu: kernels.Gpu, number: int, made: Dict[int, bytes], failures: List[Exception]) -> None:
    try:
        gpu.use()
        mine = module.Work(library, gpu, gpu.stream(), number + (BROKEN == "wrong"))
        made[number] = b"".join(mine.once() for _ in range(ROUNDS))
    except Exception as error:  # pylint: disable=broad-except # any error of a library is this program's result
        failures.append(error)


def main() -> int:
    leave_xschedd()
    module = importlib.import_module("libraries." + sys.argv[1])
    try:
        library = module.load()
        gpu = kernels.open_gpu()
        if module.VENDOR not in ("", gpu.vendor):
            raise Absent("it is for another GPU than this one")
        gpu.allocate(1)  # makes it a client
    except (Absent, NoGpu, ImportError, OSError) as error:
        print(error, file=sys.stderr)
        return ABSENT
    print("begun", flush=True)
    if "--stay" in sys.argv:
        sys.stdin.readline()
    made: Dict[int, bytes] = {}
    failures: List[Exception] = []
    threads = [threading.Thread(target=work, args=(module, library, gpu, number, made, failures)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        print(f"{failures[0] or type(failures[0]).__name__}", file=sys.stderr)
        return ABSENT if isinstance(failures[0], Absent) else 1
    print(json.dumps({"digest": hashlib.sha256(b"".join(made[number] for number in range(THREADS))).hexdigest()}), flush=True)
    if "--stay" in sys.argv:
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
