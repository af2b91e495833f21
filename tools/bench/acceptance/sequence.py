"""The calls of a program of *harmless*: always the same ones for a seed and lane, of every kind.

Thread rule: pure.
"""

import random
from dataclasses import dataclass
from typing import List

LANES = 8  # threads
BUFFERS = STREAMS = 3  # of a lane; stream 0 is the legacy default one
LENGTH = 120  # of a lane
KINDS = ("kernel", "to device", "to device at once", "to host", "to host at once", "copy", "memset", "allocate", "callback",
         "graph", "module")
WEIGHTS = (30, 6, 2, 4, 2, 12, 6, 3, 4, 2, 1)


@dataclass(frozen=True)
class Step:
    kind: str
    stream: int
    buffer: int
    other: int  # another buffer
    number: int  # a number that the data depends on


def last_visible_kernel(made: List[Step]) -> int:
    """The number of the last launch whose data is not wholly replaced afterwards: the result changes if it alone is lost."""
    return next(at for at in reversed(range(len(made))) if made[at].kind == "kernel" and not any(
        step.buffer == made[at].buffer and step.kind.startswith("to device") for step in made[at + 1:]))


def steps(seed: int, lane: int) -> List[Step]:
    """Each kind at least once."""
    chance = random.Random(seed * LANES + lane)
    kinds = list(KINDS) + chance.choices(KINDS, WEIGHTS, k=LENGTH - len(KINDS))
    chance.shuffle(kinds)
    made = []
    for kind in kinds:
        buffer = chance.randrange(BUFFERS)
        stream = chance.randrange(1, STREAMS) if kind == "graph" else chance.randrange(STREAMS)  # the default stream cannot be captured
        made.append(Step(kind, stream, buffer, (buffer + chance.randrange(1, BUFFERS)) % BUFFERS, chance.randrange(1, 1 << 31)))
    return made
