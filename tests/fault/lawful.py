"""How long was a call held, and how much of that did the policy require?

The evidence is independent of the daemon: every tenant records when it was busy, and the harness records its own actions
(stops, holds, when the daemon was down). A part of a long call is lawful if in it
  - a more important client on the same device was busy (until 5 ms later: noticing it, and the linger), and the daemon
    lived or had been away for less than the lease,
  - an administrator's hold was on the caller, under the same condition, or
  - the caller itself was stopped.
The rest, less the call's noise (diary.h), is the excess. Thread rule: values.
"""

MS = 1_000_000
LINGER_NS = 5 * MS


def union(spans):
    """Spans (start, end) as disjoint ones in order."""
    merged = []
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return [tuple(span) for span in merged]


def clip(spans, start, end):
    return union((max(s, start), min(e, end)) for s, e in spans)


def length(spans):
    return sum(end - start for start, end in union(spans))


def without(spans, taken):
    """`spans` less `taken`."""
    rest = []
    for start, end in union(spans):
        for t_start, t_end in union(taken):
            if t_end <= start or t_start >= end:
                continue
            if t_start > start:
                rest.append((start, t_start))
            start = t_end
        if start < end:
            rest.append((start, end))
    return rest


class Held:
    """The parts of one call, in ns."""

    def __init__(self, call, claims, holds, stops, downs, lease_ns):
        start, end, noise, self.kind = call
        self.start, self.end, self.noise = start, end, noise
        own = clip(stops, start, end)
        by_policy = clip([(s, e + LINGER_NS) for s, e in [*claims, *holds]], start, end)
        # A daemon that is away for longer than the lease lawfully holds no client.
        by_policy = without(by_policy, [(s + lease_ns, e) for s, e in downs if e > s + lease_ns])
        self.took = end - start
        self.lawful = length([*by_policy, *own])
        self.excess = max(0, self.took - self.lawful - noise)
        down = without(clip(downs, start, end), own)
        self.while_down = max(0, max((e - s for s, e in down), default=0) - noise)
