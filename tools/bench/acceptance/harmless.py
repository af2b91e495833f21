"""Section *harmless*: seeded programs of many kinds of calls (calls_program.py) compute the same with xschedd as without it,
bit by bit, whatever xschedd does to them. A run counts only if the daemon reports that it scheduled the program, and xschedd is
blamed only for failures that do not happen without it beside the same neighbour.

Thread rule: `run` and `repeat` start programs from the main thread; the rest is pure.
"""

import os
import shlex
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Tuple, Union

import libraries
import library_runs
import sequence
from benchlib.processes import ToolError
from calls_runs import NEVER_HELD, WAYS, Outcome, Programs
from frame import NO_TIME, REPORT_IT, Finding, Section, Skipped, Table, judge
from place import NoDaemon, Place
from turns import NoAnswer, NotHere

MAX_S, PART = 110.0, 0.2  # of the time that is left
REPEATS_S = 60.0  # in addition, for repeating failures
MAX_SEEDS = 8
NATIVE_REPEATS, REPEATS, TRIES = 3, 2, 10
REMEDIES = {NEVER_HELD: "`xschedctl config show` has the rules: one may give programs here other priorities than they ask for"}
REMEDY = "`xschedctl doctor` says what keeps programs from the daemon"
# Variables that decide which GPU a program gets.
CHOOSING = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "XSCHEDD_ACCEPTANCE_BREAK")
SOFTWARE_GPU = "libhsa-runtime64.so.1"
CHOOSING_PREFIX = "SOFTGPU_"


Seed = Union[int, str]  # a seed of calls_program.py, or the name of a library


@dataclass
class Repeated:
    """Repetitions of a way and seed that failed under xschedd."""

    ours: List[Outcome] = field(default_factory=list)
    natively: List[Outcome] = field(default_factory=list)  # beside the same neighbour


def whole_s(left_s: float) -> float:
    return min(MAX_S, PART * left_s)


def seeds_of(seconds: float, run_s: float) -> List[int]:
    """As many seeds as the time allows if a run takes twice as long under xschedd, plus a second native run."""
    return list(range(1, 1 + max(1, min(MAX_SEEDS, int(seconds / (2 * run_s * len(WAYS) + 2 * run_s))))))


def token(way: str, seed: Seed) -> str:
    return f"{way.replace(' ', '-')}:{seed}"


def parsed(words: str) -> Tuple[str, Seed]:
    """Parses the words of `token`; raises a ValueError that says what is wrong."""
    name, _, seed = words.partition(":")
    way = next((one for one in WAYS if token(one, 0) == f"{name}:0"), None)
    if way is None or not (seed.isdecimal() or seed in libraries.NAMES):
        raise ValueError(f"--repeat {words}: not a run of harmless; give {', '.join(token(one, 1) for one in WAYS)}, another number, or "
                         f"the name of a library: {', '.join(libraries.NAMES)}")
    return way, int(seed) if seed.isdecimal() else seed


def again(way: str, seed: Seed, xschedctl: List[str], environment: Mapping[str, str]) -> str:
    """The command that repeats it, for a shell."""
    chosen = [f"{name}={shlex.quote(value)}" for name, value in sorted(environment.items())
              if value and (name in CHOOSING or name.startswith(CHOOSING_PREFIX))]
    if any(name.startswith(CHOOSING_PREFIX) for name in environment):
        chosen += library_path(environment.get("LD_LIBRARY_PATH", ""))
    words = shlex.join([*xschedctl, "acceptance", "--sections", "harmless", "--repeat", token(way, seed)])
    return f"to repeat it: {' '.join(['env', *chosen, words] if chosen else [words])} ; {REPORT_IT}"


def library_path(path: str) -> List[str]:
    """The assignment of the variable for a shell: the software GPU's folder; the user's own are the shell's, and in no report."""
    folders = [folder for folder in path.split(":") if folder]
    ours = [folder for folder in folders if os.path.exists(os.path.join(folder, SOFTWARE_GPU))]
    if not ours:
        return []
    return [f"LD_LIBRARY_PATH={shlex.quote(':'.join(ours))}" + (":$LD_LIBRARY_PATH" if len(ours) < len(folders) else "")]


def typed(xschedctl: List[str]) -> List[str]:
    """The command's shortest form that a shell finds."""
    found = shutil.which("xschedctl")
    return ["xschedctl" if found and os.path.realpath(found) == os.path.realpath(xschedctl[0]) else xschedctl[0], *xschedctl[1:]]


def natively(programs: Programs, seed: int) -> List[Outcome]:
    """Two runs without xschedd; if they differ, a third one, which shows the wrong one."""
    made = [programs.native(seed) for _ in range(2)]
    return made if expected_of(made) or any(one.failure for one in made) else [*made, programs.native(seed)]


def expected_of(outcomes: List[Outcome]) -> str:
    """The data that two runs without xschedd have in common; empty: there is none."""
    (digest, count), *_ = Counter(one.digest for one in outcomes if not one.failure).most_common(1) or [("", 0)]
    return digest if count > 1 else ""


def why_not_compared(outcomes: List[Outcome]) -> str:
    """Why a seed is not compared, from its runs without xschedd; empty: there is a result to expect."""
    failures = [one.failure for one in outcomes if one.failure]
    if failures:
        return f"it does not run without xschedd either: {failures[0]}"
    return "" if expected_of(outcomes) else "its results differ without xschedd, too"


def wrong(outcome: Outcome, expected: str) -> str:
    """What is wrong; empty: nothing."""
    if outcome.absent and not outcome.digest:
        return ""
    return outcome.failure or ("" if outcome.digest == expected else "other data than without xschedd")


def absences(way: str, mine: Dict[int, Outcome]) -> Tuple[List[Finding], List[Skipped]]:
    """One finding for each cause. A program that ended before its neighbour's next request is skipped if others were held."""
    findings, skipped = [], []
    for cause in sorted({one.absent for one in mine.values() if one.absent}):
        seeds = [seed for seed, one in mine.items() if one.absent == cause]
        what = f"{way}: {len(seeds)} of {len(mine)} runs not counted, xschedd took no part: {cause}"
        if cause == NEVER_HELD and any(not one.absent for one in mine.values()):
            skipped.append(Skipped(what, "it had finished before its neighbour had work"))
        else:
            findings.append(Finding("warning", what, REMEDIES.get(cause, REMEDY)))
    return findings, skipped


def blamed(what: str, expected: str, repeated: Repeated, how_again: str) -> Finding:
    """`what` failed under xschedd: an error only if it never fails without it."""
    ours = 1 + sum(wrong(one, expected) != "" for one in repeated.ours)
    natively = sum(wrong(one, expected) != "" for one in repeated.natively)
    if not repeated.natively:
        return Finding("warning", f"{what}; no time was left to see whether it happens without xschedd, too",
                       f"give more --minutes; {how_again}")
    counts = (f"{what}; wrong in {ours} of {1 + len(repeated.ours)} runs under xschedd, in {natively} of {len(repeated.natively)} "
              "without it beside the same neighbour")
    if natively:
        return Finding("warning", f"{counts}: not xschedd's fault", "look at what the GPU's driver says (dmesg), and update it")
    return Finding("error", counts, how_again)


def judged(natives: Dict[int, List[Outcome]], ours: Dict[Tuple[str, int], Outcome], repeated: Dict[Tuple[str, int], Repeated],
           xschedctl: List[str], environment: Mapping[str, str]) -> Tuple[List[Finding], List[Skipped]]:
    """`natives` is by seed, the others by way and seed."""
    findings, skipped, expected = [], [], {}
    for seed, outcomes in natives.items():
        if why := why_not_compared(outcomes):
            skipped.append(Skipped(f"seed {seed}", why))
        else:
            expected[seed] = expected_of(outcomes)
            skipped += [Skipped(f"seed {seed}: one of {len(outcomes)} runs without xschedd", "other data than the other two")
                        for one in outcomes if one.digest != expected[seed]]
    for way in WAYS:
        mine = {seed: outcome for (one, seed), outcome in ours.items() if one == way and seed in expected}
        bad = {seed: what for seed, outcome in mine.items() if (what := wrong(outcome, expected[seed]))}
        absent, quick = absences(way, {seed: outcome for seed, outcome in mine.items() if seed not in bad})
        findings, skipped = findings + absent, skipped + quick
        counted = sum(not outcome.absent for outcome in mine.values())
        findings += [blamed(f"{way}: seed {seed}: {what}", expected[seed], repeated.get((way, seed), Repeated()),
                            again(way, seed, xschedctl, environment)) for seed, what in bad.items()]
        if counted and not bad:
            findings.append(Finding("ok", f"{way}: the same data as without xschedd, bit by bit, {counted} program{'s' if counted > 1 else ''} of "
                                    f"{sequence.LANES * sequence.LENGTH} calls of {len(sequence.KINDS)} kinds"))
    return findings, skipped


def judged_libraries(made: library_runs.Libraries, repeated: Dict[Tuple[str, Seed], Repeated], xschedctl: List[str],
                     environment: Mapping[str, str]) -> Tuple[List[Finding], List[Table]]:
    findings, rows = [], []
    for (way, name), outcome in made.ours.items():
        said, expected = libraries.NAMES[name], made.natives[name][0].digest
        its = repeated.get((way, name), Repeated())
        rows.append(library_runs.row_of(name, made.natives[name], [outcome, *its.ours]))
        if what := wrong(outcome, expected):
            findings.append(blamed(f"{said}: {what}", expected, its, again(way, name, xschedctl, environment)))
        elif outcome.absent:
            findings.append(Finding("warning", f"{said}: not counted, xschedd took no part: {outcome.absent}", REMEDY))
        else:
            findings.append(Finding("ok", f"{said}: the same results as without xschedd, bit by bit"))
    return findings, [Table("Libraries", library_runs.COLUMNS, rows)] if rows else []


def tried(programs: Programs, way: str, seed: Seed) -> Outcome:
    try:
        return programs.ours(way, seed)
    except NoAnswer as error:  # of a daemon on a busy host, perhaps: no fault of the program's run
        return Outcome(absent=" ".join(str(error).split()))
    except (ToolError, subprocess.TimeoutExpired) as error:
        if isinstance(error, NoDaemon):
            raise
        return Outcome(failure=" ".join(str(error).split()))


def repeat(programs: Programs, way: str, seed: Seed) -> Repeated:
    """Repeats while there is time; first without xschedd, because only the comparison can blame xschedd."""
    made = Repeated()
    for _ in range(NATIVE_REPEATS):
        if programs.left_s() > 2 * programs.run_s:
            made.natively.append(programs.beside(way, seed))
    for _ in range(REPEATS):
        if programs.left_s() > 2 * programs.run_s:
            made.ours.append(tried(programs, way, seed))
    return made


def run(place: Place) -> Section:
    if place.why_no_daemon:
        return judge("harmless", [], [Skipped("all programs", f"there was no daemon: {place.why_no_daemon}")], "")
    left = place.left_s()
    chosen = parsed(place.repeat) if place.repeat else None
    if chosen and isinstance(chosen[1], str):
        return with_libraries(place, Programs(place, 0.0), [chosen[1]], judge("harmless", [], [], ""), 0)
    programs = Programs(place, left - (left if chosen else whole_s(left)))
    first = chosen[1] if chosen else 1
    natives, ours, skipped = {first: natively(programs, first)}, {}, []
    expected: Dict[int, str] = {}
    seeds = [first] if chosen else seeds_of(programs.left_s(), programs.run_s)
    for seed in seeds:
        if seed not in natives:
            natives[seed] = natively(programs, seed)
        if why_not_compared(natives[seed]):
            continue
        expected[seed] = expected_of(natives[seed])
        for way in [chosen[0]] * TRIES if chosen else WAYS:
            if (way, seed) in ours and wrong(ours[way, seed], expected[seed]):
                break
            if programs.left_s() < programs.run_s:
                skipped.append(Skipped(f"{way}: seed {seed}", NO_TIME))
                continue
            try:
                ours[way, seed] = tried(programs, way, seed)
            except (NotHere, NoDaemon) as error:
                skipped.append(Skipped(f"{way}: seed {seed}", str(error)))
    bad = [key for key, outcome in ours.items() if wrong(outcome, expected[key[1]])]
    programs.allow(REPEATS_S if bad else 0)
    # The first run of each way comes before any second one, because one each is enough for a verdict.
    bad_first = sorted(bad, key=lambda key: [one for one in bad if one[0] == key[0]].index(key))
    repeated = {key: repeat(programs, *key) for key in bad_first}
    found, not_compared = judged(natives, ours, repeated, typed(place.xschedctl_given()), os.environ)
    counted = sum(not outcome.absent for outcome in ours.values())
    section = judge("harmless", found, not_compared + skipped, "")
    return section if chosen else with_libraries(place, programs, list(libraries.NAMES), section, counted)


def with_libraries(place: Place, programs: Programs, names: List[str], section: Section, counted: int) -> Section:
    """`counted`: runs before these."""
    left = place.left_s()
    programs.stop_at_s = left - library_runs.part_s(left)
    made = library_runs.run(programs, names, tried)
    bad = [key for key, outcome in made.ours.items() if wrong(outcome, made.natives[key[1]][0].digest)]
    programs.allow(REPEATS_S if bad else 0)
    repeated = {key: repeat(programs, *key) for key in bad}
    found, tables = judged_libraries(made, repeated, typed(place.xschedctl_given()), os.environ)
    counted += sum(not outcome.absent for outcome in made.ours.values())
    done = judge("harmless", section.findings + found, section.skipped + made.skipped,
                 f"{counted} run{'s' * (counted != 1)} under xschedd computed the same, bit by bit, as without it")
    done.tables = tables
    return done
