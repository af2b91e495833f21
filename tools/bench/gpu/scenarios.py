"""The scenarios of tools/bench/gpu/run: which programs run together, and their request rates.

Thread rule: plain values.
"""

from dataclasses import dataclass
from typing import Dict, List, Tuple

HIGH, MIDDLE, LOW = 20, 10, 0  # priorities


@dataclass(frozen=True)
class Load:
    """Requests per second, and how they arrive; rate 0: one after the other. Loops have none."""

    rate: float = 20.0
    arrivals: str = "spread"


@dataclass(frozen=True)
class Program:
    """A process of tenant.py."""

    name: str
    kind: str
    model: str
    priority: int = LOW

    @property
    def work(self) -> str:
        return f"{self.kind}:{self.model}"


@dataclass(frozen=True)
class Asked:
    """A program that answers requests."""

    program: str
    load: Load = Load()

    @property
    def alone(self) -> str:
        """The name of the stretch in which it is alone: one for all scenarios with the same load."""
        if self.load == Load():
            return f"{self.program} alone"
        return f"{self.program} alone, {self.load.rate:g}/s {self.load.arrivals}"


@dataclass(frozen=True)
class Scenario:
    name: str
    what: str
    high: Asked
    background: Tuple[str, ...]
    middle: Tuple[Asked, ...] = ()
    equals: Tuple[Asked, ...] = ()  # programs that answer requests, as important as the background
    shifts: bool = False  # the background programs come and go, at most two at a time

    @property
    def asked(self) -> Tuple[Asked, ...]:
        return (self.high, *self.middle, *self.equals)

    @property
    def spans(self) -> Dict[str, Tuple[float, float]]:
        """Of the background programs, the part of a stretch in which each works, from 0 to 1, if not all."""
        parts = len(self.background) + 1
        return {name: (place / parts, (place + 2) / parts) for place, name in enumerate(self.background)} if self.shifts else {}


LOOPS = tuple(f"loop{number}" for number in range(5))
TRAININGS = ("train0", "train1")
WORKERS = ("worker0", "worker1", "worker2", "worker3")

PROGRAMS: Dict[str, Program] = {program.name: program for program in (
    Program("eager", "request", "resnet18", HIGH),
    Program("graph", "graph", "resnet18", HIGH),
    Program("bert", "request", "bert", HIGH),
    Program("decode", "decode", "gpt", HIGH),
    Program("middle", "request", "bert", MIDDLE),
    Program("notebook", "request", "bert"),
    *(Program(name, "loop", "resnet50") for name in LOOPS),
    *(Program(name, "train", "resnet50") for name in TRAININGS),
    Program("bert64", "loop", "bert64"),
    Program("prefill", "loop", "prefill"),
    Program("chat", "chat", "llama1b", HIGH),
    Program("llama-train", "language", "llama400m"),
    Program("jax", "stranger", "jax"),
    Program("cupy", "stranger", "cupy"),
    Program("bertlarge", "stranger", "bertlarge"),
    *(Program(name, "request", "bert", HIGH) for name in ("bert2", *WORKERS)),
    *(Program(name, "loop", "bert", MIDDLE) for name in ("middle-loop0", "middle-loop1")),
    *(Program(name, "loop", "bert") for name in ("bert-loop0", "bert-loop1")),
    *(Program(name, "stranger", name) for name in ("long", "copies", "tiny", "networks", "steps")),
    *(Program(name, "stranger-request", name, HIGH) for name in ("embed", "denoise", "beams", "jax-request")),
)}

# Works with torch.compile, whose outputs differ between processes even natively (measured with bertlarge).
COMPILED = frozenset({"stranger:compiled", "stranger:bertlarge"})

CHAT, WORKER = Asked("chat", Load(2)), Load(12, "poisson")
EMBED, JAX_REQUEST = Asked("embed", Load(50, "poisson")), Asked("jax-request", Load(100, "poisson"))

SCENARIOS: Dict[str, Scenario] = {scenario.name: scenario for scenario in (
    Scenario("one-five", "ResNet-18 eager beside five loops of ResNet-50, batch 256", Asked("eager"), LOOPS),
    Scenario("graph-five", "ResNet-18 as a CUDA graph beside five loops of ResNet-50, batch 256", Asked("graph"), LOOPS),
    Scenario("one-one", "ResNet-18 eager beside one loop of ResNet-50", Asked("eager"), LOOPS[:1]),
    Scenario("graph-one", "ResNet-18 as a CUDA graph beside one loop of ResNet-50", Asked("graph"), LOOPS[:1]),
    Scenario("poisson", "the graph of ResNet-18 beside the five loops, Poisson arrivals at 50 a second",
             Asked("graph", Load(50, "poisson")), LOOPS),
    Scenario("train", "the graph of ResNet-18 beside two loops that train ResNet-50, batch 128", Asked("graph"), TRAININGS),
    Scenario("bert", "BERT-base, batch 1, beside BERT-base, batch 64", Asked("bert"), ("bert64",)),
    Scenario("decode", "16 tokens of a GPT, each read by the host, beside prefill of 16 prompts of 1024",
             Asked("decode", Load(10)), ("prefill",)),
    Scenario("three", "the graph of ResNet-18 above BERT-base, batch 1, above a loop of ResNet-50", Asked("graph"), LOOPS[:1],
             (Asked("middle", Load(10)),)),
    Scenario("chat-train", "a Llama of about 1B, generate() eager, 2 answers a second, beside the training of a smaller one",
             CHAT, ("llama-train",)),
    Scenario("chat-compiled", "the same beside a torch.compile'd BERT-large", CHAT, ("bertlarge",)),
    Scenario("chat-jax", "the same beside a JAX loop of matrix products", CHAT, ("jax",)),
    Scenario("chat-cupy", "the same beside a CuPy loop", CHAT, ("cupy",)),
    Scenario("chat-four", "the same beside all four at once", CHAT, ("llama-train", "bertlarge", "jax", "cupy")),
    Scenario("six", "two BERT-base at 50 requests a second, above two loops of it, above two more", Asked("bert", Load(50)),
             ("middle-loop0", "middle-loop1", "bert-loop0", "bert-loop1"), (Asked("bert2", Load(50)),)),
    Scenario("workers", "four processes of one service, each with a BERT-base at 12 requests a second, beside a training and CuPy",
             Asked("worker0", WORKER), ("train0", "cupy"), tuple(Asked(name, WORKER) for name in WORKERS[1:])),
    Scenario("shifting", "BERT-base, batch 1, beside five kinds of programs that come and go, two at a time", Asked("bert"),
             ("networks", "cupy", "bert64", "long", "jax"), shifts=True),
    Scenario("notebook", "the graph of ResNet-18 beside a training and CuPy, and a BERT that seldom answers, as a notebook does",
             Asked("graph"), ("train0", "cupy"), equals=(Asked("notebook", Load(5, "poisson")),)),
    Scenario("kinds", "the graph of ResNet-18 beside long kernels, tiny ones, copies, graph networks and CuPy at once", Asked("graph"),
             ("long", "tiny", "copies", "networks", "cupy")),
    Scenario("bert-kinds", "BERT-base, batch 1, beside the same five at once", Asked("bert"),
             ("long", "tiny", "copies", "networks", "cupy")),
    Scenario("steps", "the graph of ResNet-18 beside graphs of kernels that take longer than a turn, and CuPy", Asked("graph"),
             ("steps", "cupy")),
    Scenario("embed-long", "a BERT that embeds sentences, each request of another shape, beside long kernels", EMBED, ("long",)),
    Scenario("embed-three", "the same beside these, copies, and the training of graph networks", EMBED, ("long", "copies", "networks")),
    Scenario("denoise-networks", "twenty steps of a U-Net, one wait, beside the training of graph networks",
             Asked("denoise", Load(4)), ("networks",)),
    Scenario("beams-tiny", "a T5 with four beams beside tiny kernels", Asked("beams", Load(2)), ("tiny",)),
    Scenario("jax-copies", "JAX that answers requests beside copies", JAX_REQUEST, ("copies",)),
    Scenario("jax-tiny", "the same beside tiny kernels", JAX_REQUEST, ("tiny",)),
)}


def programs_of(scenarios: List[Scenario]) -> List[Program]:
    """The programs that any of the scenarios needs, in the order of the table."""
    names = {name for scenario in scenarios for name in
             (*scenario.background, *(asked.program for asked in scenario.asked))}
    return [program for program in PROGRAMS.values() if program.name in names]


def alone_of(scenarios: List[Scenario]) -> Dict[str, Asked]:
    """By the stretch's name: what is measured alone for these scenarios."""
    return {asked.alone: asked for scenario in scenarios for asked in scenario.asked}
