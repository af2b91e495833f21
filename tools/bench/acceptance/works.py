"""Section *works*: the scenarios, in alternation, compared with the goals beside each figure.

Thread rule: `tables_of` is pure; `run` starts programs from the main thread.
"""

import subprocess
from typing import List

import checks
import goals
import scenes
import turns
from benchlib.processes import ToolError
from frame import NO_TIME, REPORT_IT, Finding, Row, Section, Skipped, Table, judge
from place import Place
from turns import ALONE, NATIVE, OURS, NotHere



class Parts:
    """The parts of scenes.PARTS; each adds findings."""

    def __init__(self, place: Place):
        self.place = place
        self.findings: List[Finding] = []
        self.skipped: List[Skipped] = []
        self.results: List[goals.Result] = []
        self.swaps: List[goals.Taken] = []

    def scene(self, scene: scenes.Scene, seconds: float) -> None:
        measured = turns.measure(self.place, scene, seconds)
        result = goals.result_of(measured)
        if result is None:
            self.skipped.append(Skipped(scene.scenario.name, "a program had done nothing in one of the stretches; give more --minutes"))
            return
        self.results.append(result)
        self.findings += goals.judged(result)
        if scene.reference:
            self.findings.append(Finding("ok", f"{result.name}: for reference, {scene.reference}"))
        for name in goals.different(measured.digests):
            self.findings.append(Finding("error", f"{result.name}: {name} computes other results than without xschedd",
                                         REPORT_IT))

    def two_models(self, seconds: float) -> None:
        with_pytorch, findings, skipped = checks.pytorch(self.place)
        self.findings += findings
        self.skipped += skipped
        self.scene(scenes.MODELS if with_pytorch else scenes.LIKE_MODELS, seconds)

    def live_set(self, seconds: float) -> None:
        swaps = turns.live_set(self.place, seconds)
        self.swaps = goals.taken(swaps.changes, swaps.ends_ns, swaps.end_ns)
        self.findings += goals.live(self.swaps)

    def overhead(self, seconds: float) -> None:
        untracked, tracked, skipped = checks.launch_pairs(self.place, seconds)
        self.findings += goals.launches(untracked, tracked)
        self.skipped += skipped

    def run(self, name: str, seconds: float) -> bool:
        """False: it cannot run here."""
        own = {"checks": lambda _: self.findings.extend(checks.small_programs(self.place)), "overhead": self.overhead,
               "live set": self.live_set, scenes.TWO_MODELS: self.two_models}
        by_name = {scene.scenario.name: scene for scene in (scenes.PERIODIC, scenes.THREE, scenes.VIDEO)}
        try:
            if name in own:
                own[name](seconds)
            else:
                self.scene(by_name[name], seconds)
        except NotHere as error:
            self.skipped.append(Skipped(name, str(error)))
            return False
        except (ToolError, subprocess.TimeoutExpired) as error:
            if self.place.left_s() <= 1:
                self.skipped.append(Skipped(name, NO_TIME))
            else:
                self.findings.append(Finding("error", f"{name}: {' '.join(str(error).split())}", REPORT_IT))
        return True


def tables_of(results: List[goals.Result]) -> List[Table]:
    """p50 and p99 by way."""
    if not results:
        return []
    columns = [f"{what} {way}, ms" for what in ("p50", "p99") for way in (ALONE, NATIVE, OURS)]
    return [Table("Latency of the important program", [*columns, "requests"], [
        Row(result.name, [*(kind[way] for kind in (result.p50, result.p99) for way in (ALONE, NATIVE, OURS)), result.requests],
            f"mode: {result.mode or 'not settled'}") for result in results], columns[3:])]


def of_daemon(answer: dict) -> List[Finding]:
    """Settings of the daemon with which the goals cannot be met."""
    if answer["observes_only"]:
        return [Finding("warning", "the daemon holds nobody: it only observes", "[daemon] enforce = true")]
    if answer["policy"] == "fifo":
        return [Finding("warning", "the daemon's policy is fifo, which knows no priorities", "xschedctl policy set priority")]
    return []


def run(place: Place) -> Section:
    if place.why_no_daemon:
        return judge("works", [], [Skipped("all scenarios", f"there was no daemon: {place.why_no_daemon}")], "")
    parts = Parts(place)
    daemons = of_daemon(turns.ask(place, "ps"))
    whole = scenes.whole_s(place.left_s())
    stop_at = place.left_s() - whole
    for name in scenes.PARTS:
        seconds = scenes.share_s(name, place.left_s() - stop_at)
        if seconds == 0:
            parts.skipped.append(Skipped(name, NO_TIME))
        elif not parts.run(name, seconds) and name == "checks":
            break  # nor can the others
    place.measured.update(results=parts.results, swaps=parts.swaps)
    section = judge("works", parts.findings and daemons + parts.findings, parts.skipped, line(parts.results))
    section.tables = tables_of(parts.results)
    return section


def line(results: List[goals.Result]) -> str:
    names = ", ".join(result.name for result in results)
    return f"every goal is met{': ' + names if names else ', but no scenario was measured'}"
