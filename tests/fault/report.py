"""Figures of a run, for people and as JSON. Thread rule: values."""

import os


def percentile(values, part):
    """The smallest value that at least this part of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * part // 100) - 1))] if ordered else None


def percentiles(values):
    rounded = [round(value, 2) for value in values]
    return {"count": len(rounded), "p50": percentile(rounded, 50), "p99": percentile(rounded, 99),
            "max": max(rounded, default=None)}


def histogram(values, unit="ms"):
    """Lines of a histogram in steps of 1, 2, 5."""
    bounds = [1, 2, 5, 10, 20, 50, 100, 200, 300, 400, 500, 1000, 2000, 5000, 10000]
    lines, low = [], 0
    for high in bounds:
        count = sum(low <= value < high for value in values)
        if count:
            lines.append(f"  {low:6} to {high:6} {unit} {count:6} {'#' * max(1, count * 50 // len(values))}")
        low = high
    return lines


TITLES = {"kill": "killed: from kill -9", "restart": "restarted or upgraded: from SIGTERM",
          "kill_again": "killed two or three times: from the first kill -9",
          "stop": "stopped: from SIGCONT", "no_socket": "its socket removed, then restarted or killed: from that"}


def print_blackouts(blackouts):
    for kind, values in sorted(blackouts.items()):
        p = percentiles(values)
        print(f"blackouts, {TITLES[kind]} until the sentinel's gate binds again: {p['count']}, p50 {p['p50']:.1f} ms, "
              f"p99 {p['p99']:.1f} ms, max {p['max']:.1f} ms")
        print("\n".join(histogram(values)))


def summary(world, options, counts, took, before, after, wall_s):
    return {
        "points": sum(counts.values()), "seed": options.seed, "faults": dict(sorted(counts.items())),
        "failures": world.failures,
        "blackout_ms": {kind: percentiles(values) for kind, values in sorted(world.blackouts.items())},
        "longest_call_ms": {name: round(value, 1) for name, value in world.longest.items()},
        "calls_lawfully_held": world.held_calls,
        "boards_kept": world.kept_boards, "boards_new": world.new_boards,
        "daemon_ended_for_want_of_memory": world.deaths_of_memory,
        "daemon_before": before, "daemon_after": after, "daemon_most_rss_kib": world.most_rss_kib,
        "service_manager_refused": len(world.manager.refused),
        "seconds": round(wall_s, 1), "seconds_a_point": percentiles(took), "load": [round(load, 1) for load in os.getloadavg()],
    }
