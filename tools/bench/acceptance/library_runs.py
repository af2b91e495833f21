"""The libraries of *harmless*: small computations with each installed library, checked against the CPU, have the same results with
xschedd as without it, bit by bit.

Thread rule: `row_of` is pure; `run` starts programs from the main thread.
"""

import subprocess
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Tuple

import libraries
from calls_runs import TRACKED, Outcome, Programs
from frame import NO_TIME, Row, Skipped
from place import NoDaemon
from turns import NotHere

COLUMNS = ["runs natively", "runs under xschedd", "of these the same"]
MAX_S, PART = 90.0, 0.25  # of the time that is left
NATIVE_RUNS = 2
ABSENT = "ended with status 3: "  # of library_program.py


@dataclass
class Libraries:
    natives: Dict[str, List[Outcome]] = field(default_factory=dict)
    ours: Dict[Tuple[str, str], Outcome] = field(default_factory=dict)  # by way and name
    skipped: List[Skipped] = field(default_factory=list)


def part_s(left_s: float) -> float:
    return min(MAX_S, PART * left_s)


def row_of(name: str, natives: List[Outcome], ours: List[Outcome]) -> Row:
    same = sum(one.digest == natives[0].digest and not one.absent for one in ours)
    return Row(libraries.NAMES[name], [len(natives), len(ours), same])


def run(programs: Programs, names: List[str], tried: Callable[[Programs, str, str], Outcome]) -> Libraries:
    """`tried`: one run under xschedd. A library that is absent or fails without xschedd is skipped with its reason."""
    made = Libraries()
    for name in names:
        said = libraries.NAMES[name]
        if programs.left_s() < 1:
            made.skipped.append(Skipped(said, NO_TIME))
            continue
        programs.run_s = 0.0  # an import may take a minute, so the library before gives no estimate
        try:
            natives = [programs.native(name)]
            while not natives[-1].failure and len(natives) < NATIVE_RUNS:
                natives.append(programs.native(name))
            bad = natives[-1].failure
            if bad:
                why = bad[len(ABSENT):] if bad.startswith(ABSENT) else f"it does not run without xschedd either: {bad}"
                made.skipped.append(Skipped(said, why))
            elif len({one.digest for one in natives}) > 1:
                made.skipped.append(Skipped(said, "its results differ without xschedd, too"))
            else:
                made.natives[name] = natives
                made.ours[TRACKED, name] = tried(programs, TRACKED, name)
        except (NotHere, NoDaemon, subprocess.TimeoutExpired) as error:
            made.skipped.append(Skipped(said, str(error)))
    return made
