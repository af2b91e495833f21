"""The output of tools/bench/gpu/run: the table, which goals are met, the pictures.

Thread rule: plain values.
"""

import os
from typing import Dict, List, Optional

import distribution
import figures
import tradeoff
from benchlib.figures import quantile
from lever_goals import verdict
from scenarios import COMPILED, PROGRAMS, SCENARIOS

SUBSTRATES = ("time-sliced", "mps")
WAYS = ("native", "mps priority", "xschedd")
LATENCIES = ("p50_ms", "p99_ms")
ONE_HOST_SPEED = ("Wait: for the GPU, or for the requests before. At one host speed: as if the host's own part were the same in all "
                  "ways of a scenario, that of all together; what a way costs in launch calls is not in it, and shows in the "
                  "host's own p50.")


def cells(high: Optional[dict], result: dict, native: Optional[dict]) -> List[str]:
    total = result.get("total_per_s")
    kept = result.get("kept", total / native["total_per_s"] if total and native else None)
    return [*(f"{high[key]:.2f}" if high else "–" for key in ("p50_ms", "p99_ms", "max_ms")),
            f"{total:.2f}" if total else "–",
            f"{100 * kept:.1f} %" if kept is not None else "–",
            f"{result['cores_each']:.2f}" if total else "–"]


def row(first: str, second: str, values: List[str]) -> str:
    return "| " + " | ".join([first, second, *values]) + " |"


def table(results: Dict[str, dict]) -> List[str]:
    lines = ["| | | high p50 ms | p99 | max | background batches/s | of native | cores each |",
             "|---|---|---|---|---|---|---|---|"]
    for name, result in results.items():
        first, _, rest = name.partition(" ")
        if first not in (*SUBSTRATES, "gpus", "strangers") and not (first in ("share", "fault") and "total_per_s" in result):
            continue
        lines.append(row(first, rest, cells(result.get("high"), result, reference(first, rest, results))))
        if "token" in result.get("high", {}):
            lines.append(row(first, f"{rest}, each token", cells(result["high"]["token"], {}, None)))
        for other, own in result.get("others", {}).items():
            lines.append(row(first, f"{rest}, {other}", cells(own, {}, None)))
    return lines if len(lines) > 2 else []


def reference(first: str, rest: str, results: Dict[str, dict]) -> Optional[dict]:
    """The reference of a stretch: the same one natively."""
    if first == "share":
        return results["share native"] if "xschedd" in rest else None
    if first == "gpus":
        return results.get("gpus native training alone")
    if first == "fault":
        what = rest.rpartition(" ")[0]
        return results.get(f"fault {what} native") or results.get(f"fault {what} fifo")
    return results.get(f"{first} native " + ("five loops" if rest.endswith("five loops") else rest.split(" ")[-1]))


def longest_kernel_ms(results: Dict[str, dict], scenario: str) -> float:
    """Of the tenants below the important one, as far as known."""
    below = [*SCENARIOS[scenario].background, *(asked.program for asked in SCENARIOS[scenario].middle)]
    kernels = [results["kernels"].get(PROGRAMS[name].work) for name in below]
    return max(each["longest_us"] for each in kernels if each) / 1e3


def goals(results: Dict[str, dict]) -> List[str]:
    lines = []
    for words, kernels in results.get("kernels", {}).items():
        lines.append(f"kernels of {words}: {kernels['kernels']} in {kernels['total_ms']:.2f} ms, launched in "
                     f"{kernels['launch_ms']:.2f} ms, longest {kernels['longest_us']:.0f} µs, next {kernels['next_us']:.0f}; "
                     "left of one that runs at a random moment: " + ", ".join(
                         f"p{100 * part:.0f} {figures.left_of_running(kernels['durations_us'], part):.2f} ms"
                         for part in (0.5, 0.9, 0.99)))
    for substrate in SUBSTRATES:
        for name, scenario in SCENARIOS.items():
            parts = [results.get(f"{substrate} {rest}") for rest in (scenario.high.alone, f"native {name}", f"xschedd {name}")]
            loop = results.get("kernels", {}).get(PROGRAMS[scenario.background[0]].work)
            if None in parts or loop is None:
                continue
            for what, goal in figures.goals(*parts, longest_kernel_ms(results, name), loop["launch_ms"]).items():
                lines.append(f"{substrate} {name}: {what} {goal['value']:.3f}, goal {goal['limit']:.3f}: {verdict(goal['ok'])}")
            peer = results.get(f"{substrate} mps priority {name}")
            if peer is not None:
                lines.append(f"{substrate} {name}: {figures.beside_peer(peer, parts[2])}")
    for name, result in results.items():
        if name.startswith("pairs ") and "xschedd" in result and "kernels" in results:
            longest_ms = longest_kernel_ms(results, name.split(" ")[-1])
            for what, goal in figures.goals_by_turns(result, longest_ms).items():
                lines.append(f"by turns, {name[len('pairs '):]}: {what} {goal['value']:.3f}, goal {goal['limit']:.3f}: {verdict(goal['ok'])}")
        if name.startswith("share xschedd"):
            part = 0.75 if "75/25" in name else 0.25
            got, kept = (result["rates"]["large"] / result["total_per_s"],
                         result["total_per_s"] / results["share native"]["total_per_s"])
            lines.append(f"{name}: {100 * got:.1f} % for the first, goal {100 * part:.0f} ± 2: {verdict(abs(got - part) <= 0.02)}; "
                         f"total {100 * kept:.1f} % of native, goal 97: {verdict(kept >= 0.97)}")
        if name.startswith(("overhead", "start ")):
            native, ours = sorted(result["native_ms"]), sorted(result["xschedd_ms"])
            lines.append(f"{name}: median of pairs {100 * (result['ratio'] - 1):+.2f} %, goal 1 %: {verdict(result['ratio'] <= 1.01)}; "
                         f"native {native[0]:.3f} to {native[-1]:.3f} ms, xschedd {ours[0]:.3f} to {ours[-1]:.3f} ms")
    return lines


def waits(results: Dict[str, dict]) -> List[str]:
    """Where the time of requests went, as means in ms: the first six columns of figures add up to the latency."""
    columns = ("others_before_ms", "idle_before_ms", "own_ms", "others_between_ms", "idle_between_ms", "after_ms", "known_ms",
               "shut_ms", "first_left_ms", "later", "later_ms", "tenants")
    lines = ["| | requests | latency | before: others' kernels | nobody's | own kernels | between: others' | nobody's | after | "
             "daemon knew at | gates shut at | left of the running kernel | later kernels | their time | of tenants |",
             "|---" * 15 + "|"]
    for name, result in results.items():
        for group, part in result.items() if name.startswith("waits ") else ():
            if isinstance(part, dict):
                lines.append(row(f"{name[len('waits '):]}, {group}", str(part["count"]), [f"{part['latency_ms']:.3f}", *(
                    "–" if part[column] is None else f"{part[column]:.3f}" for column in columns)]))
    return lines if len(lines) > 2 else []


def pairs(results: Dict[str, dict]) -> List[str]:
    lines = ["| by turns | | high p50 ms | p99 | background batches/s, median (least to most) | of the native stretch beside it | cores each |",
             "|---" * 7 + "|"]
    for name, result in results.items():
        for way, part in result.items() if name.startswith("pairs ") else ():
            cells = ["–"] * 3
            if "rates" in part:
                cells = [spread(part["rates"], "{:.1f}"), spread([100 * ratio for ratio in part["of_native"]], "{:.1f}") + " %",
                         f"{part['cores_each']:.2f}"]
            lines.append(row(name[len("pairs "):], way, [f"{part['high']['p50_ms']:.2f}", f"{part['high']['p99_ms']:.2f}", *cells]))
    return lines if len(lines) > 2 else []


def pulled(decided: Dict[str, dict]) -> str:
    """For each program with a measured benefit: when those below are held for it."""
    return ", ".join(f"{name}: {each['benefit']['mode']}" for name, each in decided.items() if each["benefit"]) or "–"


def during(result: dict) -> str:
    """The important program's modes, by samples, and how long the daemon had learnt before."""
    modes = result.get("modes", {})
    whole = sum(modes.values())
    words = ", ".join(f"{mode} {100 * count / whole:.0f} %" for mode, count in modes.items()) if whole else ""
    learnt = f"learnt in {result['learnt_s']:.0f} s" if "learnt_s" in result else ""
    return "".join(f"; {each}" for each in (words, learnt) if each)


def percent_of(values: List[float]) -> str:
    return f"{100 * sum(values) / len(values):.1f} %" if values else "–"


def levers(results: Dict[str, dict]) -> List[str]:
    """Latencies in ms, and as multiples of those alone; the host's own work and its waits, and the multiples at one host
    speed; what the loops kept of their native rates, on average, at least and each; and which mode the daemon found best for those
    below the important program, where it decides."""
    lines = ["| | | high p50 ms | p99 | of alone p50 | p99 | host's own p50 ms | wait p50 | p99 | at one host speed, of alone p50 | p99 | "
             "others keep | the least | each | of the same processes' | others' p50 / p99 | they are |", "|---" * 17 + "|"]
    for name, result in results.items():
        if not name.startswith("levers "):
            continue
        alone = result["alone"]["high"]
        for way, part in result.items():
            if way in figures.NOT_WAYS:
                continue
            high, kept = part["high"], list(part["kept"].values())
            each_of = ", ".join(f"{other} {100 * one:.1f}" for other, one in part["kept"].items())
            apart = ["–"] * 5
            if "same_host" in high:
                apart = [f"{value:.2f}" for value in (
                    high["host_p50_ms"], *(high["wait"][key] for key in LATENCIES),
                    *(high["same_host"][key] / alone["same_host"][key] for key in LATENCIES))]
            lines.append(row(name[len("levers "):], way, [
                *(f"{high[key]:.2f}" for key in LATENCIES), *(f"{high[key] / alone[key]:.2f}" for key in LATENCIES), *apart,
                *((f"{100 * sum(kept) / len(kept):.1f} %", f"{100 * min(kept):.1f} %", each_of) if kept else "–––"),
                percent_of(list(part.get("kept_of_same", {}).values())),
                ", ".join(f"{other} {each['p50_ms']:.2f} / {each['p99_ms']:.2f}" for other, each in part["others"].items()) or "–",
                pulled(result["decided"]) + during(result) if way == figures.DECIDED else "–"]))
    return [*lines, "", ONE_HOST_SPEED] if len(lines) > 2 else []


def starved(results: Dict[str, dict]) -> List[str]:
    lines = ["| a loop below one that always has work | batches/s of that one | of the loop | its longest pause, s |", "|---" * 4 + "|"]
    for way, each in results.get("starved", {}).items():
        above, below = each.values()
        lines.append(row(way, f"{above['per_s']:.1f}", [f"{below['per_s']:.2f}", f"{below['longest_pause_s']:.2f}"]))
    return [*lines, ""] if len(lines) > 2 else []


def asleep(results: Dict[str, dict]) -> List[str]:
    lines = ["| below an important program that does nothing | batches/s natively | below it, of native | below a strict one, of native |", "|---" * 4 + "|"]
    for name, rates in results.get("asleep", {}).items():
        native = sum(rates["native"])
        lines.append(row(name, f"{native / len(rates['native']):.1f}",
                         [f"{100 * sum(rates[way]) / native:.1f} %" for way in ("asleep", "strict")]))
    return [*lines, ""] if len(lines) > 2 else []


def equals(results: Dict[str, dict]) -> List[str]:
    """Of an equal part of its rate alone, what each has."""
    lines = ["| equals that take turns | | of an equal part |", "|---" * 3 + "|"]
    for name, parts in results.items():
        if name.startswith("equals "):
            names, way = name[len("equals "):].split(": ")
            lines.append(row(names, way, [", ".join(f"{program} {100 * part * len(parts):.0f} %" for program, part in parts.items())]))
    return [*lines, ""] if len(lines) > 2 else []


def tracked_high(results: Dict[str, dict]) -> List[str]:
    """Of each way the medians of its stretches; and of their ratios to the untracked stretch of the same round, the quartiles."""
    lines = ["| the important program, by turns | | p50 ms | its host's part, p10 | of untracked: p50 | the quartiles | "
             "its host's part, p10 | the quartiles | the agent wakes, a second |",
             "|---" * 9 + "|"]
    for name, ways in results.items():
        if not name.startswith("tracked-high "):
            continue
        for way, stretches in ways.items():
            values = [f"{quantile([one[key] for one in stretches], 0.5):.2f}" for key in ("p50_ms", "host_p10_ms")]
            for key in ("p50_ms", "host_p10_ms"):
                ratios = [one[key] / its[key] for one, its in zip(stretches, ways["untracked"])]
                values += [f"{quantile(ratios, 0.5):.3f}", f"{quantile(ratios, 0.25):.3f} to {quantile(ratios, 0.75):.3f}"]
            values.append(f"{quantile([one['wakes_per_s'] for one in stretches], 0.5):.0f}")
            lines.append(row(name.partition(" ")[2], way, values))
    return [*lines, ""] if len(lines) > 2 else []


def spread(values: List[float], form: str) -> str:
    median, least, most = (form.format(value) for value in (quantile(values, 0.5), min(values), max(values)))
    return f"{median} ({least} to {most})"


def outputs(digests: Dict[str, List[List[str]]]) -> List[str]:
    """Whether each process always gave the same output, and all processes of a work the same: those of a compiled work differ
    even natively."""
    lines = []
    for work, processes in digests.items():
        differ = sum(len(set(each)) > 1 for each in processes)
        if differ:
            words = f"NOT EQUAL within {differ} of them"
        elif work in COMPILED:
            words = "all equal within each, which are not compared with each other: torch.compile"
        else:
            words = "all equal" if len({digest for each in processes for digest in each}) <= 1 else "each equal in itself, NOT EQUAL to each other"
        lines.append(f"outputs of {work}: {sum(map(len, processes))} digests of {len(processes)} processes, {words}")
    return lines


def pictures(folder: str, subtitle: str, raw: Dict[str, Dict[str, dict]], results: Dict[str, dict]) -> None:
    panels = [(name[len("levers "):], points) for name, result in results.items()
              if name.startswith("levers ") and (points := tradeoff.points_of(result))]
    if panels:
        tradeoff.draw(os.path.join(folder, "levers.svg"), "The levers: full at one host speed, ring as measured",
                      subtitle, panels)
    for substrate in SUBSTRATES:
        for name, scenario in SCENARIOS.items():
            who = scenario.high.program
            stretches = [("alone", f"{substrate} {scenario.high.alone}"), *((way, f"{substrate} {way} {name}") for way in WAYS)]
            curves = [(way, [ms for _, ms in raw[stretch][who]["requests"]]) for way, stretch in stretches if stretch in raw]
            if len(curves) > 1:
                distribution.draw(os.path.join(folder, f"{substrate}-{name}.svg"), f"{name}, {substrate}",
                                  (scenario.what, subtitle), curves)
