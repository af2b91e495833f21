"""The goals of the scenarios, each in the words of the report. All are ratios within one run, so absolute times do not
matter.

Thread rule: pure functions.
"""

from dataclasses import dataclass
from typing import Dict, List, Optional

import figures
from benchlib.figures import quantile
from frame import REPORT_IT, Finding
from turns import ALONE, NATIVE, OURS, Change, Measured

NOISE = 0.10  # the difference that two equal stretches may have
MIN_REQUESTS = 50  # for a sure verdict
MARGIN = 0.10  # the loss of others that is allowed beyond a promise
BESIDE = ("beside", "beside-wide", "free")  # modes in which others are never held


@dataclass
class Result:
    """A scenario's figures, of all rounds together. Milliseconds by way."""

    name: str
    p50: Dict[str, float]
    p99: Dict[str, float]
    kept: float  # the part of their native rate that the loops keep, as the median of the rounds
    busy: float  # part of the time in which those above the loops worked or waited, under xschedd
    mode: str
    requests: int  # under xschedd
    late: Dict[str, float]  # part of the requests that missed the deadline; empty: without a deadline
    others_p99: Dict[str, Dict[str, float]]  # of those between the important one and the loops, by name
    longest: Dict[str, List[float]]  # request of each round

    @property
    def is_sure(self) -> bool:
        """With fewer requests p99 is the longest one, which may be one that the host delayed."""
        return self.requests >= MIN_REQUESTS

    @property
    def is_delayed_by_rounds(self) -> bool:
        """Whether the longest request took longer than natively in most rounds. Otherwise p99 may be that of a few requests of one
        round, which the host may have delayed."""
        slower = sum(ours > native * (1 + NOISE) for native, ours in zip(self.longest[NATIVE], self.longest[OURS]))
        return 2 * slower > len(self.longest[OURS])


def latencies(measured: Measured, way: str, name: str) -> List[float]:
    return [ms for answers in measured.rounds for _, ms in answers[way][name]["requests"]]


def longest_of_rounds(measured: Measured, way: str, name: str) -> List[float]:
    """The longest request of each round that has one."""
    rounds = ([ms for _, ms in answers[way][name]["requests"]] for answers in measured.rounds)
    return [max(each) for each in rounds if each]


def result_of(measured: Measured) -> Optional[Result]:
    """None: a program did nothing in one of the ways."""
    scene = measured.scene
    high = scene.scenario.high.program
    middle = [asked.program for asked in scene.scenario.middle]
    each = {way: latencies(measured, way, high) for way in (ALONE, NATIVE, OURS)}
    between = {name: {way: latencies(measured, way, name) for way in (NATIVE, OURS)} for name in middle}
    has_worked = all("total_per_s" in one and one["total_per_s"] > 0
                     for one in (figures.summary(answers[NATIVE], high) for answers in measured.rounds))
    if not all(each.values()) or not all(all(ways.values()) for ways in between.values()) or not has_worked:
        return None
    kept = figures.by_turns(measured.rounds, high)[OURS]["of_native"]
    whole_ms = sum(answers[OURS][high]["seconds"] for answers in measured.rounds) * 1e3
    busy = sum(each[OURS]) + sum(sum(ways[OURS]) for ways in between.values())
    late = {way: sum(ms > scene.deadline_ms for ms in values) / len(values) for way, values in each.items()}
    return Result(scene.scenario.name, *({way: quantile(values, fraction) for way, values in each.items()}
                                         for fraction in (0.5, 0.99)),
                  quantile(kept, 0.5), min(1.0, busy / whole_ms), measured.mode, len(each[OURS]),
                  late if scene.deadline_ms else {},
                  {name: {way: quantile(values, 0.99) for way, values in ways.items()} for name, ways in between.items()},
                  {way: longest_of_rounds(measured, way, high) for way in each})


def promised(mode: str, busy: float) -> float:
    """The least that the others keep: all if no program is held, else the time in which no program above them works. Without a
    mode they may be held."""
    return max(0.0, (1.0 if mode in BESIDE else 1.0 - busy) - MARGIN)


def nearer(what: str, alone: float, native: float, ours: float) -> Finding:
    """The goal of a latency."""
    figures_text = f"{what}: p99 {native / alone:.2f} times alone natively, {ours / alone:.2f} under xschedd"
    if native <= alone * (1 + NOISE):
        if ours <= native * (1 + NOISE):
            return Finding("ok", f"{figures_text}; goal: no loss where there is none natively: met")
        return Finding("warning", f"{figures_text}; goal: no loss where there is none natively: missed",
                       "look at xschedctl explain while it runs")
    if ours < native:
        return Finding("ok", f"{figures_text}; goal: nearer to alone than natively: met")
    level = "warning" if ours <= native * (1 + NOISE) else "error"
    return Finding(level, f"{figures_text}; goal: nearer to alone than natively: missed",
                   "look at xschedctl explain while it runs")


def in_time(what: str, late: Dict[str, float]) -> Finding:
    text = f"{what}: {late[NATIVE]:.1%} late natively, {late[OURS]:.1%} under xschedd; goal: no more than natively"
    if late[OURS] <= late[NATIVE]:
        return Finding("ok", text + ": met")
    return Finding("warning" if late[OURS] <= late[NATIVE] + NOISE else "error", text + ": missed",
                   "look at xschedctl explain while it runs")


def keeps(result: Result) -> Finding:
    least, mode = promised(result.mode, result.busy), result.mode or "not settled, as if held"
    text = (f"{result.name}: the others keep {result.kept:.1%} of their native rate; goal: {least:.1%}, which the measured mode "
            f"promises ({mode}; those above are busy {result.busy:.1%} of the time)")
    if result.kept >= least:
        return Finding("ok", text + ": met")
    return Finding("error" if result.kept < least / 2 else "warning", text + ": missed", "look at xschedctl explain")


def judged(result: Result) -> List[Finding]:
    """Findings about the important program: about late requests if it has a deadline, else about p99."""
    name = result.name
    found = [in_time(name, result.late) if result.late else
             nearer(name, result.p99[ALONE], result.p99[NATIVE], result.p99[OURS])]
    for other, p99 in result.others_p99.items():
        text = f"{name}: p99 of {other}, in the middle, is {p99[OURS] / p99[NATIVE]:.2f} times its native one"
        found.append(Finding("ok" if p99[OURS] <= p99[NATIVE] * (1 + NOISE) else "warning",
                             f"{text}; goal: no more than {1 + NOISE:g}"))
    if found[0].level != "ok" and not result.late:
        found[0] = in_rounds(found[0], result)
    found.append(keeps(result))
    return found if result.is_sure else [unsure(one, result.requests) for one in found]


def in_rounds(finding: Finding, result: Result) -> Finding:
    """A missed latency, with the figures of its rounds."""
    each = ", ".join(f"{ms:.3g}" for ms in result.longest[OURS])
    return Finding(finding.level if result.is_delayed_by_rounds else "warning",
                   f"{finding.what} (ms of the longest in each round: {each})", finding.fix)


def unsure(finding: Finding, requests: int) -> Finding:
    return Finding("warning" if finding.level == "error" else finding.level, f"{finding.what} (of only {requests} requests)",
                   "give more --minutes" if finding.level != "ok" else "")


def different(digests: Dict[str, Dict[str, List[str]]]) -> List[str]:
    """Programs with other results than natively. A program whose results differ natively, too, is not compared."""
    return [name for name, native in digests[NATIVE].items()
            if len(set(native)) == 1 and set(digests[OURS][name]) != set(native)]


# ---- live changes of priority

@dataclass
class Taken:
    """The times of one change: from the command to the daemon's last gate, and to the first batch of the favoured program."""

    command_ms: float
    effect_ms: Optional[float]  # None: none came before the next change
    is_turned: bool  # afterwards the favoured program did most of the work


def taken(changes: List[Change], ends_ns: Dict[str, List[int]], end_ns: int) -> List[Taken]:
    result = []
    for change, until in zip(changes, [later.issued_ns for later in changes[1:]] + [end_ns]):
        done = {name: [end for end in ends if change.applied_ns <= end < until] for name, ends in ends_ns.items()}
        mine = done.pop(change.favoured)
        result.append(Taken((change.applied_ns - change.issued_ns) / 1e6, (mine[0] - change.applied_ns) / 1e6 if mine else None,
                            bool(mine) and all(len(mine) > 2 * len(other) for other in done.values())))
    return result


def live(changes: List[Taken]) -> List[Finding]:
    turned = sum(change.is_turned for change in changes)
    effects = [change.effect_ms for change in changes if change.effect_ms is not None]
    text = f"live set: {turned} of {len(changes)} changes reversed the order"
    if effects:
        text += (f", the first batch ended {quantile(effects, 0.5):.1f} ms after the daemon had applied it (median); the "
                 f"command itself took {quantile([change.command_ms for change in changes], 0.5):.1f} ms")
    return [Finding("ok" if turned == len(changes) else "error", text + "; goal: all",
                    "" if turned == len(changes) else REPORT_IT)]


# ---- launches

UNTRACKED_LIMIT, TRACKED_LIMIT = 1.10, 2.0


def launches(untracked: List[tuple], tracked: List[tuple]) -> List[Finding]:
    """Pairs of ns, natively and under xschedd."""
    found = []
    for what, pairs, limit in (("untracked, alone on the GPU", untracked, UNTRACKED_LIMIT),
                               ("tracked, beside an idle one below it", tracked, TRACKED_LIMIT)):
        if pairs:
            ratio = figures.median_ratio(pairs)
            more, native = quantile([ours - native for native, ours in pairs], 0.5), quantile([one for one, _ in pairs], 0.5)
            found.append(Finding("ok" if ratio <= limit else "warning",
                                 f"a launch {what}: {more:+.0f} ns on {native:.0f} ns (of which Python takes a part), {ratio:.2f} "
                                 f"times; goal: no more than {limit:g} times"))
    return found
