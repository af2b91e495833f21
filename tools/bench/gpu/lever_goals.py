"""The goals for the levers, and whether a call's figures meet them: each scenario is compared with other ways, all measured
in alternation in one call. Latencies twice: as measured, and at one host speed (figures.at_one_host_speed).

Thread rule: plain values.
"""

import math
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from figures import DECIDED
from scenarios import HIGH, LOW, MIDDLE, PROGRAMS

OURS = DECIDED


@dataclass(frozen=True)
class Goal:
    """`beside`: p50 and p99 are multiples of the best of these ways, each of its own best. `others`: what the loops must keep
    on average, relative to `others_of`; `least`: what each must keep. `is_by_priority`: the average is taken for each
    priority."""

    beside: Tuple[str, ...]
    p50: float
    p99: float
    others: float
    least: Optional[float] = None
    is_by_priority: bool = False
    others_of: str = "native"


EITHER = ("native", "held")
CHAT = Goal(EITHER, 1.05, 1.15, 0.93)
# Programs that no policy was made with (stranger_requests.py). Nobody set goals for them: these are a chat's.
STRANGER = CHAT
AS_HELD = Goal(("held",), 1.05, 1.1, 0.97)

TIME_SLICED: Dict[str, Goal] = {
    "graph-five": Goal(("alone",), 1.35, 1.4, 1.05),
    "train": Goal(("alone",), 1.5, 1.8, 0.97),
    "decode": Goal(("alone",), 1.2, 1.3, 0.97),
    "chat-train": CHAT, "chat-compiled": CHAT, "chat-jax": CHAT, "chat-cupy": CHAT,
    "chat-four": Goal(("alone",), 1.2, 1.3, 0.8, least=0.5),
    "six": Goal(EITHER, 1.05, 1.15, 0.9, is_by_priority=True),
    "embed-long": STRANGER, "embed-three": STRANGER, "denoise-networks": STRANGER, "beams-tiny": STRANGER,
    "jax-copies": STRANGER, "jax-tiny": STRANGER, "workers": STRANGER, "shifting": STRANGER,
    "notebook": STRANGER, "kinds": STRANGER, "bert-kinds": STRANGER, "steps": STRANGER,
    "three": AS_HELD, "bert": AS_HELD, "one-five": AS_HELD, "poisson": AS_HELD, "one-one": AS_HELD, "graph-one": AS_HELD,
}
MPS = Goal(("mps priority",), 1.05, 1.05, 0.98, others_of="mps priority")  # in every scenario

# Never further than this behind the better of these, if they were measured.
BEHIND, PEERS = 0.05, ("native", "mps priority")


def goal_of(substrate: str, scenario: str) -> Optional[Goal]:
    return MPS if substrate == "mps" else TIME_SLICED.get(scenario)


def mean(values: List[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def kept(part: dict, key: str = "kept") -> float:
    """What the loops of a way keep of their native rates, on average; `key`: kept_of_same for of those at equal priorities."""
    return mean(list(part[key].values()))


def kept_of(result: Dict[str, dict], beside: Tuple[str, ...]) -> float:
    """The same, relative to the best of these ways."""
    best = max(kept(result[way]) for way in beside)
    return kept(result[OURS]) / best if best else math.nan


def kept_of_same(result: Dict[str, dict], goal: Goal) -> Optional[float]:
    """What the others keep of what the same processes do at equal priorities, where the goal is one of native; None: not measured."""
    values = list(result[OURS].get("kept_of_same", {}).values())
    return mean(values) if values and goal.others_of == "native" else None


def multiple(result: Dict[str, dict], beside: Tuple[str, ...], key: str) -> Tuple[float, Optional[float]]:
    """The multiple of the best of these ways: as measured, and at one host speed if known."""
    def of(pick) -> float:
        return pick(result[OURS]["high"]) / min(pick(result[way]["high"]) for way in beside)

    known = all("same_host" in result[way]["high"] for way in (OURS, *beside))
    return of(lambda high: high[key]), of(lambda high: high["same_host"][key]) if known else None


def verdict(holds: bool) -> str:
    return "met" if holds else "MISSED"


def latency_line(what: str, raw: float, same_host: Optional[float], limit: float) -> str:
    as_measured = verdict(raw <= limit)
    if same_host is None:
        return f"{what} {raw:.3f} as measured, at one host speed not known, limit {limit:g}: {as_measured}"
    at_one_speed = verdict(same_host <= limit)
    words = as_measured if as_measured == at_one_speed else f"{as_measured} as measured, {at_one_speed} at one host speed"
    return f"{what} {raw:.3f} as measured, {same_host:.3f} at one host speed, limit {limit:g}: {words}"


def others_line(what: str, value: float, limit: float) -> str:
    return f"{what} {100 * value:.1f} %, limit {100 * limit:g} %: {verdict(value >= limit)}"


def of_scenario(result: Dict[str, dict], goal: Goal) -> List[str]:
    missing = [way for way in dict.fromkeys((OURS, *goal.beside, goal.others_of)) if way not in result]
    if missing:
        return [f"not computed: {', '.join(missing)} not measured"]
    beside = f"of {'the better of ' if len(goal.beside) > 1 else ''}{' and '.join(goal.beside)}"
    lines = [latency_line(f"{key[:3]} {beside}", *multiple(result, goal.beside, key), limit)
             for key, limit in (("p50_ms", goal.p50), ("p99_ms", goal.p99))]
    ours, of_same = result[OURS]["kept"], kept_of_same(result, goal)
    if goal.is_by_priority:
        for level, word in ((HIGH, "high"), (MIDDLE, "middle"), (LOW, "low")):
            those = [value for name, value in ours.items() if PROGRAMS[name].priority == level]
            if those:
                lines.append(others_line(f"{word} others of {goal.others_of}", mean(those), goal.others))
    else:
        lines.append(others_line(f"others of {goal.others_of}", kept_of(result, (goal.others_of,)), goal.others))
    if of_same is not None:
        lines.append(others_line("others of the same processes at equal priorities", of_same, goal.others))
    if goal.least is not None:
        lines.append(others_line("the least of the others of native", min(ours.values()), goal.least))
    return lines


def behind(result: Dict[str, dict]) -> List[str]:
    """On which axes xschedd is behind and how far, by either figure of a latency. What could not be measured counts as behind."""
    peers = tuple(way for way in PEERS if way in result)
    axes = []
    for key in ("p50_ms", "p99_ms"):
        raw, same_host = multiple(result, peers, key)
        if not all(value <= 1 + BEHIND for value in (raw, same_host) if value is not None):
            axes.append(f"{key[:3]} {raw:.3f} of theirs as measured"
                        + (f", {same_host:.3f} at one host speed" if same_host is not None else ""))
    part = kept_of(result, peers)
    if not part >= 1 - BEHIND:
        axes.append(f"others {100 * part:.1f} % of theirs")
    return [f"behind the better of {' and '.join(peers)}: {'; '.join(axes)}"] if axes else []


def lines(results: Dict[str, dict]) -> List[str]:
    found, count, late = [], 0, []
    for name, result in results.items():
        if not name.startswith("levers "):
            continue
        substrate, _, scenario = name[len("levers "):].rpartition(" ")
        goal = goal_of(substrate, scenario)
        if goal is not None:
            found += [f"goal, {substrate} {scenario}: {line}" for line in of_scenario(result, goal)]
        if OURS in result and "native" in result:
            count += 1
            late += [f"{substrate} {scenario}: {line}" for line in behind(result)]
    if count:
        found += [*late, f"never more than {100 * BEHIND:g} % behind: {verdict(not late)}, behind in {len(late)} of {count} scenarios"]
    return found
