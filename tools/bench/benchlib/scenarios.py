"""The scenarios of `bench policies`: which tenants run together, with which hints. They keep their hints under every policy;
a policy uses those that it knows.

Thread rule: plain values.
"""

from dataclasses import dataclass
from typing import List, Optional, Tuple

HIGH, MIDDLE, LOW = "high", "middle", "low"


@dataclass(frozen=True)
class Tenant:
    name: str
    role: str  # a column of the table
    words: Tuple[str, ...]  # program and options, without those for its output file
    is_saturating: bool = False
    priority: int = 0
    weight: int = 100
    deadline_us: int = 0
    group: str = ""
    ranks: int = 1  # of the group: they synchronise after each request
    device: int = 0


@dataclass(frozen=True)
class Scenario:
    name: str
    what: str
    tenants: Tuple[Tenant, ...]
    share: Optional[Tuple[float, float]] = None  # what the first two tenants are due, if the scenario is about that
    learning_s: float = 0  # under `priority`, before the first phase: for learning whether holding helps

    @property
    def has_requests(self) -> bool:
        return any(tenant.role == HIGH and not tenant.is_saturating for tenant in self.tenants)


def requests(*options: str) -> Tuple[str, ...]:
    return ("request_tenant", *options)


def saturating(kernel_us: int, streams: int = 1, device_part: float = 1) -> Tuple[str, ...]:
    # A check drains the pipeline, so it is rare.
    return ("saturating_tenant", "--kernel-us", str(kernel_us), "--streams", str(streams), "--depth", "16",
            "--batch", "2", "--check-every", "4096", "--device-part", str(device_part))


def batch(count: int, kernel_us: int, device_part: float = 1, **asks: int) -> Tuple[Tenant, ...]:
    return tuple(Tenant(f"batch-{i}", LOW, saturating(kernel_us, device_part=device_part), True, **asks)
                 for i in range(1, count + 1))


def gang(name: str, role: str, priority: int, options: Tuple[str, ...]) -> Tuple[Tenant, ...]:
    return tuple(Tenant(f"{name}-{rank}", role, requests(*options), priority=priority, group=name, ranks=2, device=rank)
                 for rank in range(2))


# Kernels are long, so that the host's overhead on a small machine is small beside them. Every load leaves the request
# tenants room even without scheduling: a request that is never served has no latency to compare.
SCENARIOS: List[Scenario] = [
    Scenario("one-against-five", "20 requests a second, 4 kernels of 2 ms each, beside 5 that saturate with 1.2 ms",
             (Tenant("web", HIGH, requests("--rate", "20", "--kernels", "4", "--kernel-us", "2000", "--seed", "8"),
                     priority=50, weight=400), *batch(5, 1200, priority=-20))),
    Scenario("three-tenants", "requests at 50, longer ones at 0, a saturating job at -50",
             (Tenant("web", HIGH, requests("--rate", "12", "--kernels", "4", "--kernel-us", "2000", "--seed", "8"),
                     priority=50, weight=400),
              Tenant("report", MIDDLE, requests("--rate", "6", "--kernels", "12", "--kernel-us", "1500", "--seed", "9"),
                     priority=0, weight=200),
              Tenant("batch", LOW, saturating(1200, 2), True, priority=-50))),
    Scenario("video-conference", "30 frames a second wanted within 33 ms, late ones dropped, beside 3 batch jobs",
             (Tenant("video", HIGH, requests("--rate", "30", "--periodic", "--drop", "--kernels", "4", "--kernel-us",
                                             "2000"), deadline_us=33_000), *batch(3, 3000))),
    Scenario("75-25", "two that saturate, weights 75 and 25, kernels of 1.5 and 1.0 ms",
             (Tenant("three-quarters", HIGH, saturating(1500, 2), True, weight=75),
              Tenant("one-quarter", LOW, saturating(1000, 2), True, weight=25)), share=(0.75, 0.25)),
    Scenario("two-gangs", "two jobs of two ranks on two devices, which meet after each iteration",
             gang("urgent", HIGH, 20, ("--think-ms", "10", "--kernels", "6", "--kernel-us", "1500")) +
             gang("patient", LOW, 0, ("--think-ms", "0", "--kernels", "12", "--kernel-us", "1500"))),
    Scenario("bursty", "0.4 s of 40 requests a second, then 0.8 s of none, beside 3 that saturate",
             (Tenant("web", HIGH, requests("--rate", "40", "--on-ms", "400", "--off-ms", "800", "--kernels", "4",
                                           "--kernel-us", "2000", "--seed", "8"), priority=50, weight=400),
              *batch(3, 1200, priority=-20))),
    Scenario("host-bound", "10 requests a second, 20 kernels of 1 ms that the host launches 1.2 ms apart, beside 3 that "
             "saturate; there is room for the kernels of all",
             (Tenant("chat", HIGH, requests("--rate", "10", "--kernels", "20", "--kernel-us", "1000", "--launch-us", "1200",
                                            "--device-part", "0.2", "--seed", "8"), priority=50),
              *batch(3, 5000, device_part=0.2, priority=-20)), learning_s=20),
]
