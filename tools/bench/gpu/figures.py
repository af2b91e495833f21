"""Figures of tools/bench/gpu/run, computed from the tenants' answers. Thread rule: pure functions."""

import math
from typing import Dict, List, Optional, Sequence

from benchlib.figures import quantile


def quantiles(values: List[float]) -> Dict[str, float]:
    return {"count": len(values), "p50_ms": quantile(values, 0.5), "p99_ms": quantile(values, 0.99),
            "max_ms": max(values, default=math.nan)}


def latency(answer: dict) -> Dict[str, float]:
    return quantiles([value for _, value in answer["requests"]])


def batches_per_s(answer: dict) -> float:
    """Whole batches over the time that they took, from the start of the stretch to the end of the last batch."""
    ends = answer["ends_ns"]
    return len(ends) / ((ends[-1] - answer["start_ns"]) / 1e9) if ends else 0.0


def progress(answer: dict) -> Dict[str, float]:
    """A loop's batches per second, and its longest time without one."""
    end_ns = answer["start_ns"] + int(answer["seconds"] * 1e9)
    ends = [answer["start_ns"], *(end for end in answer["ends_ns"] if end < end_ns), end_ns]
    return {"per_s": (len(ends) - 2) / answer["seconds"], "longest_pause_s": max(b - a for a, b in zip(ends, ends[1:])) / 1e9}


def within(answer: dict, begin_ns: int, end_ns: int) -> dict:
    """The same answer with only the requests that arrived in the interval."""
    return {**answer, "requests": [entry for entry in answer["requests"] if begin_ns <= entry[0] < end_ns]}


def rate_within(answers: Dict[str, dict], begin_ns: int, end_ns: int) -> float:
    """Batches per second of all loops, of those that ended in the interval."""
    count = sum(begin_ns <= end < end_ns for answer in answers.values() for end in answer.get("ends_ns", ()))
    return count / ((end_ns - begin_ns) / 1e9)


def summary(answers: Dict[str, dict], high: Optional[str] = None) -> dict:
    """Latencies of tenants that answer requests and rates of loops in one stretch. `high`: the important one, if several
    answer requests."""
    result: dict = {}
    loops = {name: answer for name, answer in answers.items() if "ends_ns" in answer}
    asked = {name: answer for name, answer in answers.items() if "requests" in answer}
    for name, answer in asked.items():
        own = {**latency(answer), "cores": answer["cores"]}
        for what in ("token", "first"):
            if f"{what}_ms" in answer:
                own[what] = quantiles(answer[f"{what}_ms"])
        if name == high or len(asked) == 1:
            result["high"] = own
        else:
            result.setdefault("others", {})[name] = own
    if loops:
        result["rates"] = {name: batches_per_s(answer) for name, answer in loops.items()}
        result["total_per_s"] = sum(result["rates"].values())
        result["cores_each"] = sum(answer["cores"] for answer in loops.values()) / len(loops)
    return result


def left_of_running(durations_us: List[float], fraction: float) -> float:
    """The remaining time of a kernel that runs at a random moment, in ms, at a quantile: no scheduler of whole kernels can
    avoid this wait. The probability that more than t is left is the part of the time spent in kernels before their last t."""
    total, low, high = sum(durations_us), 0.0, max(durations_us)
    for _ in range(50):
        middle = (low + high) / 2
        longer = sum(max(0.0, duration - middle) for duration in durations_us) / total
        low, high = (middle, high) if longer > 1 - fraction else (low, middle)
    return high / 1e3


def goals(alone: dict, native: dict, ours: dict, longest_kernel_ms: float, launch_ms: float) -> Dict[str, dict]:
    """The goals for a high tenant beside background loops: value, limit, and whether it is met. `launch_ms`: CPU time of
    launching a batch, which does not count as waiting."""
    waiting = ours["cores_each"] - launch_ms / 1e3 * ours["total_per_s"] / len(ours["rates"])
    return {**goals_of_both(alone, ours, longest_kernel_ms, ours["total_per_s"] / native["total_per_s"]),
            "cores of waiting a background tenant": {"value": waiting, "limit": 0.5, "ok": waiting < 0.5}}


def goals_of_both(alone: dict, ours: dict, longest_kernel_ms: float, kept: float) -> Dict[str, dict]:
    """The goals for the high tenant's latency, and for what the background keeps of its native rate."""
    high, floor = ours["high"], 1.1 * (alone["high"]["p99_ms"] + longest_kernel_ms)
    p50_limit = 1.2 * alone["high"]["p50_ms"]
    return {
        "p50": {"value": high["p50_ms"], "limit": p50_limit, "ok": high["p50_ms"] <= p50_limit},
        "p99": {"value": high["p99_ms"], "limit": floor, "ok": high["p99_ms"] <= floor},
        "background kept": {"value": kept, "limit": 0.97, "ok": kept >= 0.97},
    }


def beside_peer(peer: dict, ours: dict) -> str:
    """xschedd compared with MPS's own priority, on each axis."""
    pairs = [("p50", -peer["high"]["p50_ms"], -ours["high"]["p50_ms"]), ("p99", -peer["high"]["p99_ms"], -ours["high"]["p99_ms"]),
             ("background", peer["total_per_s"], ours["total_per_s"])]
    return "beside MPS's priority " + ", ".join(
        f"{what} {abs(mine):.2f} against {abs(its):.2f} {'ahead' if mine > its else 'behind'}" for what, its, mine in pairs)


def median_ratio(pairs: List[tuple]) -> Optional[float]:
    return quantile([ours / native for native, ours in pairs], 0.5) if pairs else None


def by_turns(rounds: List[Dict[str, dict]], high: str) -> Dict[str, dict]:
    """Short stretches in rounds, one of each way: the latencies of all rounds together, and each round's rate relative to the
    native one of the same round."""
    result = {}
    for way in rounds[0]:
        requests = [ms for answers in rounds for _, ms in answers[way][high]["requests"]]
        result[way] = {"high": quantiles(requests)}
        if way == "alone":
            continue
        each = [summary(answers[way], high) for answers in rounds]
        native = [summary(answers["native"], high)["total_per_s"] for answers in rounds]
        result[way]["rates"] = [one["total_per_s"] for one in each]
        result[way]["of_native"] = [one["total_per_s"] / its for its, one in zip(native, each)]
        result[way]["cores_each"] = quantile([one["cores_each"] for one in each], 0.5)
    return result


def goals_by_turns(result: Dict[str, dict], longest_kernel_ms: float) -> Dict[str, dict]:
    """As `goals`, from the result of by_turns, without the goal for cores."""
    ours = result["xschedd"]
    return goals_of_both(result["alone"], ours, longest_kernel_ms, quantile(ours["of_native"], 0.5))


def latencies(answer: dict) -> List[float]:
    """Latencies of its tokens if it reports tokens, else of its requests."""
    return answer.get("token_ms") or [value for _, value in answer["requests"]]


def waited(answer: dict) -> List[float]:
    """The part of each of these latencies in which the host waited: for the GPU, or for the requests before. Empty if not
    measured."""
    waits = answer.get("wait_ms", [])
    return waits if answer.get("token_ms") else [own + queued for own, queued in zip(waits, answer.get("queued_ms", []))]


def quantile_of_sum(first: Sequence[float], second: Sequence[float], fraction: float) -> float:
    """Nearest rank among all sums of one of the first and one of the second, as independent draws would give. NaN if either
    is empty. By bisection, because there are many millions of sums."""
    if not first or not second:
        return math.nan
    first, second = sorted(first), sorted(second)
    rank = max(1, math.ceil(fraction * len(first) * len(second)))

    def reaches_rank(limit: float) -> bool:
        count, those = 0, len(second)
        for value in first:
            while those and value + second[those - 1] > limit:
                those -= 1
            count += those
        return count >= rank

    low, high = first[0] + second[0], first[-1] + second[-1]
    if reaches_rank(low):
        return low
    while low < (middle := (low + high) / 2) < high:  # until no number lies between: then high is one of the sums
        low, high = (low, middle) if reaches_rank(middle) else (middle, high)
    return high


def at_one_host_speed(answers: Dict[str, List[dict]]) -> Dict[str, dict]:
    """For one program, by way: its waits, the median of the host's own part, and the latency that the way would have if the
    host were equally fast in all ways. A host's speed varies by a factor of two from one second to the next, by itself;
    scheduling changes only the waits. So each latency is split into the host's own part (latency less wait) and the wait. The
    host's parts of all ways form one pool, to which each way adds its own waits: the sum of both medians for the median, and
    for p99 the 99th percentile of all sums of one value of the pool and one of the way's waits.

    Assumptions: the host's own part does not depend on the way, nor the wait on how long the host has just worked. Both hold
    only roughly: a way's cost in launch calls (tracking, a gate, the driver's full queue, cores that others take) goes into
    the pool and so drops out of the comparison, though host_p50_ms shows it; and a slow host has less to wait for. So these
    figures are given beside the measured ones, never instead. Empty if one of the ways has no waits."""
    waits = {way: [value for one in stretches for value in waited(one)] for way, stretches in answers.items()}
    whole = {way: [value for one in stretches for value in latencies(one)] for way, stretches in answers.items()}
    if any(not waits[way] or len(waited(one)) != len(latencies(one)) for way, stretches in answers.items() for one in stretches):
        return {}
    hosts = {way: [value - wait for value, wait in zip(whole[way], waits[way])] for way in answers}
    pool = [value for each in hosts.values() for value in each]
    return {way: {"wait": quantiles(own), "host_p50_ms": quantile(hosts[way], 0.5), "same_host": {
        "p50_ms": quantile(pool, 0.5) + quantile(own, 0.5), "p99_ms": quantile_of_sum(pool, own, 0.99)}}
            for way, own in waits.items()}


# Ways of levers.py: the daemon decides; and the same processes with open gates: relative to this rate, a loop does not show
# the difference of two processes' cores.
DECIDED, EQUALS = "xschedd", "equal priorities"
NOT_WAYS = ("decided", "modes", "learnt_s")  # keys beside the ways in a scenario's result


def of_levers(rounds: List[Dict[str, dict]], high: str) -> Dict[str, dict]:
    """Short stretches in rounds, one of each way: the important tenant's latencies of all rounds together (of tokens if it
    reports tokens), as measured and at one host speed; those of the others that answer requests; of each loop its rate, and
    what it kept of its rate in the native stretch of the same round, as the medians of the rounds; of DECIDED, also what
    each kept of its rate in EQUALS."""
    def kept(name: str, answers: Dict[str, Dict[str, dict]], way: str, of: str = "native") -> float:
        whole = batches_per_s(answers[of][name])
        return batches_per_s(answers[way][name]) / whole if whole else math.nan

    at_one_speed = at_one_host_speed({way: [answers[way][high] for answers in rounds] for way in rounds[0]})
    result: Dict[str, dict] = {}
    for way in rounds[0]:
        stretches = [answers[way] for answers in rounds]
        asked = {name: quantiles([value for one in stretches for value in latencies(one[name])])
                 for name, answer in stretches[0].items() if "requests" in answer}
        loops = [name for name, answer in stretches[0].items() if "ends_ns" in answer]
        result[way] = {"high": {**asked.pop(high), **at_one_speed.get(way, {})}, "others": asked,
                       "batches_per_s": {name: quantile([batches_per_s(one[name]) for one in stretches], 0.5)
                                         for name in loops},
                       "kept": {name: quantile([kept(name, answers, way) for answers in rounds], 0.5) for name in loops}}
    if DECIDED in rounds[0] and EQUALS in rounds[0]:
        result[DECIDED]["kept_of_same"] = {name: quantile([kept(name, answers, DECIDED, EQUALS) for answers in rounds], 0.5)
                                           for name in result[DECIDED]["kept"]}
    return result
