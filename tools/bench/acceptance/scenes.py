"""The scenarios of *works*: which programs run together, and how much of the section's time each part may take.

Thread rule: plain values and pure functions.
"""

from dataclasses import dataclass
from typing import Dict, List, Tuple

from scenarios import Asked, Load, Program, Scenario

# A user may lower, not raise (docs/explanation/policies.md), so these need no privilege.
HIGH, MIDDLE, LOW = 0, -10, -20

# Built-in: kernels and microseconds of each, for a batch or a request (spin_work.py). Every load leaves room for the important
# one natively, because a request that is never served has no latency to compare.
BUSY = "4x1200"
PROGRAMS: Dict[str, Program] = {program.name: program for program in (
    Program("service", "request", "4x2000", HIGH),
    Program("report", "request", "8x1500", MIDDLE),
    Program("busy", "loop", BUSY, LOW),
    Program("call", "request", "4x2000", HIGH),
    *(Program(f"blur{number}", "loop", BUSY, LOW) for number in range(3)),
    Program("resnet18", "request", "resnet18", HIGH),
    Program("resnet50", "loop", "resnet50", LOW),
    Program("small model", "request", "20x100", HIGH),
    Program("large model", "loop", "50x400", LOW),
)}


@dataclass(frozen=True)
class Scene:
    scenario: Scenario
    deadline_ms: float = 0  # of a request; 0: without a deadline, p99 counts
    reference: str = ""  # published measurements by others


PERIODIC = Scene(Scenario("periodic", "20 requests a second beside one that always works", Asked("service", Load(20, "periodic")),
                          ("busy",)))
THREE = Scene(Scenario("three tenants", "15 requests a second, above 6 longer ones, above one that always works",
                       Asked("service", Load(15)), ("busy",), (Asked("report", Load(6)),)))
VIDEO = Scene(Scenario("video conference", "25 frames a second, each due within 40 ms, beside the blur of three backgrounds",
                       Asked("call", Load(25, "periodic")), ("blur0", "blur1", "blur2")), deadline_ms=40)
TWO_MODELS = "two models"
MODELS = Scene(Scenario(TWO_MODELS, "ResNet-18, 10 requests a second, beside ResNet-50, batch 256, in PyTorch",
                        Asked("resnet18", Load(10)), ("resnet50",)),
               reference="users of XSched on an MI308X: p99 3.47 ms natively, 2.75 ms with XSched, the other 1.1 % slower")
LIKE_MODELS = Scene(Scenario(TWO_MODELS, "built-in kernels of the shape of two networks: 10 requests a second beside a loop",
                             Asked("small model", Load(10)), ("large model",)))


def is_built_in(program: Program) -> bool:
    return program.model[0].isdigit()


# ---- how long

MAX_S = 300.0  # of all parts together
LEFT_FOR_OTHERS_S = 20.0
# By part: its share of the time, and the least with which it is begun. The last one needs the time of PyTorch's start.
PARTS: Dict[str, Tuple[float, float]] = {"checks": (1, 1.5), "overhead": (1.5, 2.5), PERIODIC.scenario.name: (3, 4),
                                         "live set": (1.5, 3), THREE.scenario.name: (3, 4), VIDEO.scenario.name: (3, 5),
                                         TWO_MODELS: (6, 5)}


def whole_s(left_s: float) -> float:
    return max(0.0, min(MAX_S, left_s - min(LEFT_FOR_OTHERS_S, left_s / 4)))


def share_s(name: str, left_s: float) -> float:
    """The seconds for this part, of those left for it and later ones. 0: too few to begin."""
    names = list(PARTS)
    behind = sum(PARTS[one][0] for one in names[names.index(name):])
    mine = left_s * PARTS[name][0] / behind
    return mine if mine >= PARTS[name][1] else 0.0


@dataclass(frozen=True)
class Plan:
    rounds: int
    stretch_s: float
    learn_s: float


WAYS = 3
PAUSE_S = 0.3  # a stretch's lead, and its last batch


def plan(seconds: float) -> Plan:
    """Three rounds if they can have stretches of a third of a second; up to six of three seconds."""
    learn_s = min(12.0, 0.25 * seconds)
    each = (seconds - learn_s) / WAYS
    rounds = next((number for number in (6, 5, 4, 3) if each / number - PAUSE_S >= 3.0),
                  next((number for number in (3, 2) if each / number - PAUSE_S >= 0.35), 1))
    return Plan(rounds, round(min(3.0, max(0.35, each / rounds - PAUSE_S)), 2), round(max(0.5, learn_s), 2))


def order_of(ways: List[str], number: int) -> List[str]:
    """Each way is first, in the middle and last equally often, and each pair comes in both orders."""
    turned = ways[number % len(ways):] + ways[:number % len(ways)]
    return turned if number // len(ways) % 2 == 0 else turned[::-1]
