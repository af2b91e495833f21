"""Section *worth*: the gain in latency, its cost in throughput, and how fast the levers act.

Thread rule: `verdict_of`, `tables_of` and `times_of` are pure; `run` starts programs from the main thread.
"""

import subprocess
from typing import Dict, List, Sequence, Tuple

import goals
import levers
import scenes
import turns
import waits
from benchlib.figures import quantile
from benchlib.processes import ToolError
from benchlib.records import moments
from frame import NO, PARTLY, UNKNOWN, YES, Finding, Row, Section, Skipped, Table
from place import Place
from turns import ALONE, NATIVE, OURS

WATCHED_S = 4.0
SCENARIO_S = 25.0  # if works has no results: in a continued report


def gain(result: goals.Result) -> float:
    """How many times shorter p99 is than natively."""
    return result.p99[NATIVE] / result.p99[OURS]


def lost(result: goals.Result) -> float:
    """The others' lost throughput in percent; never -0."""
    return round(100 * (1 - result.kept), 1) + 0.0


def is_worth(result: goals.Result) -> bool:
    """Whether p99 falls by more than noise, or fewer requests are late; and the others keep what was promised."""
    is_better = gain(result) > 1 + goals.NOISE or bool(result.late) and result.late[OURS] < result.late[NATIVE]
    return is_better and result.kept >= goals.promised(result.mode, result.busy)


def verdict_of(results: List[goals.Result]) -> Tuple[str, str]:
    if not results:
        return UNKNOWN, "no scenario was measured"
    results = [result for result in results if result.is_sure]
    if not results:
        return UNKNOWN, "too few requests were measured; give more --minutes"
    worth = [result for result in results if is_worth(result)]
    gains, losses = [gain(result) for result in results], [lost(result) for result in results]
    text = (f"p99 of the important program is {min(gains):.2f} to {max(gains):.2f} times shorter than natively, for "
            f"{min(losses):.1f} to {max(losses):.1f} % of the others' throughput; worth it in {len(worth)} of {len(results)} scenarios")
    return (YES if len(worth) == len(results) else PARTLY if worth else NO), text


def tables_of(results: List[goals.Result]) -> List[Table]:
    if not results:
        return []
    columns = ["p99 natively, times alone", "p99 under xschedd, times alone", "p99 gained, times", "throughput lost, %"]
    return [Table("What is gained and lost", columns, [
        Row(result.name, [*(result.p99[way] / result.p99[ALONE] for way in (NATIVE, OURS)), gain(result), lost(result)],
            f"late: {result.late[NATIVE]:.1%} natively, {result.late[OURS]:.1%} under xschedd" if result.late else "")
        for result in results], columns[:2])]


def woken_ms(opened_ns: Sequence[int], launches_ns: Sequence[Tuple[int, int]]) -> List[float]:
    """From each opening of a gate to the return of the launches that it had stopped."""
    result, index = [], 0
    for opened in sorted(opened_ns):
        while index < len(launches_ns) and launches_ns[index][1] < opened:
            index += 1
        if index < len(launches_ns) and launches_ns[index][0] < opened:
            result.append((launches_ns[index][1] - opened) / 1e6)
    return result


def times_of(values: Dict[str, List[float]]) -> List[Table]:
    """Milliseconds; a time without values has no row."""
    rows = [Row(name, [quantile(each, 0.5), quantile(each, 0.99), len(each)]) for name, each in values.items() if each]
    return [Table("How long a transition takes", ["p50, ms", "p99, ms", "seen"], rows)] if rows else []


def gates(place: Place) -> Dict[str, List[float]]:
    path, answers, high, low = turns.events_of(place, min(WATCHED_S, place.left_s() / 4))
    busy, shut, opened = moments(path, high, low)
    requests = [(started, started + round(ms * 1e6)) for started, ms in answers["service"]["requests"]]

    def since(times: List[int]) -> List[float]:
        found = [waits.since(times, started, ended) for started, ended in requests]
        return [value for value in found if value is not None]

    return {"from a request until the daemon knows of it": since(busy), "from a request until the others' gates are shut": since(shut),
            "from an opened gate to the return of the launch behind it": woken_ms(opened, answers["busy"]["launches_ns"])}


def decisions(place: Place) -> Table:
    """From a transition seen to gates written, since this daemon's start."""
    stats = turns.ask(place, "stats")
    values = [stats["decision_p50_ns"] / 1e6, stats["decision_p99_ns"] / 1e6, stats["decisions_total"]]
    return Table("The daemon's decisions", ["p50, ms", "p99, ms", "seen"], [Row("from a transition to the gates", values)])


def run(place: Place) -> Section:
    if place.why_no_daemon:
        return Section("worth", UNKNOWN, "nothing could be checked", [],
                       [Skipped("all scenarios", f"there was no daemon: {place.why_no_daemon}")])
    skipped: List[Skipped] = []
    results, times = place.measured.get("results"), {}
    if results == [] and place.levers_s == 0:
        return Section("worth", UNKNOWN, verdict_of(results)[1], [], [Skipped("all scenarios", "works measured none")])
    try:
        if results is None:
            result = goals.result_of(turns.measure(place, scenes.PERIODIC, min(SCENARIO_S, place.left_s() / 2)))
            results = [result] if result else []
            skipped.append(Skipped("other scenarios", "measured by an earlier run of this report: see works"))
        times = gates(place)
    except (ToolError, turns.NotHere, subprocess.TimeoutExpired) as error:
        skipped.append(Skipped("transitions", " ".join(str(error).split())))
    taken = place.measured.get("swaps", [])
    times["from the command to the gates"] = [change.command_ms for change in taken]
    times["from there to the first batch of the favoured one"] = [change.effect_ms for change in taken if change.effect_ms is not None]
    tables = tables_of(results or []) + times_of(times)
    try:
        tables.append(decisions(place))
    except (ToolError, turns.NotHere) as error:
        skipped.append(Skipped("the daemon's decisions", str(error)))
    if place.levers_s > 0:
        place.levers_s = 0.0
        more, why_not = levers.run(place)
        tables += more
        skipped += why_not
    verdict, text = verdict_of(results or [])
    findings = [Finding("ok" if gain(result) > 1 else "warning", f"{result.name}: p99 {gain(result):.2f} times shorter than natively, "
                        f"{lost(result):.1f} % of the others' throughput lost") for result in results or []]
    return Section("worth", verdict, text, findings, skipped, tables=tables)
