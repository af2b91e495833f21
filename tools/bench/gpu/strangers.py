"""Programs of other libraries (stranger_work.py): each natively, and by turns tracked beside a more important tenant that is
idle or answers requests; outputs are compared. Then all at once, where none may starve.

Thread rule: main thread.
"""

from bench import Bench
from scenarios import PROGRAMS, Program
from tracked import BESIDE, DISABLED, NO_WINDOW, RECENT, by_turns

STRANGERS = tuple(Program(name, "stranger", name) for name in ("jax", "cupy", "triton", "compiled", "captures", "long", "copies", "tiny",
                                                               "networks"))
ROUNDS, SECONDS = 8, 1.2


def strangers(bench: Bench) -> None:
    native = bench.rig()
    tenants = [native.start(program) for program in STRANGERS]
    native.wait_ready()
    for tenant in tenants:
        bench.keep(f"strangers {tenant.name}, native", native.stretch([tenant], SECONDS))
    bench.close(native)
    ours = bench.rig(daemon=bench.daemon(bench.policy()))
    tenants = [ours.start(program) for program in STRANGERS]
    graph = ours.start(PROGRAMS["graph"])
    ours.wait_ready()
    for tenant in tenants:
        by_turns(bench, ours, [tenant], graph, (DISABLED, NO_WINDOW, RECENT, BESIDE), ROUNDS, SECONDS, f"strangers {tenant.name}")
    by_turns(bench, ours, tenants, graph, (DISABLED, RECENT, BESIDE), 2, 4.0, "strangers all at once")
    bench.close(ours)
