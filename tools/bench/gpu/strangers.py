"""Programs of other libraries (stranger_work.py): each natively, tracked beside a more important tenant that is idle, and
held repeatedly by its requests; outputs are compared. Then all at once, where none may starve.

Thread rule: main thread.
"""

from typing import List

from bench import Bench
from rig import Rig, Tenant
from scenarios import PROGRAMS, Program

STRANGERS = tuple(Program(name, "stranger", name) for name in ("jax", "cupy", "triton", "compiled", "captures"))
SECONDS = 4.0


def each(bench: Bench, way: str, rig: Rig, tenants: List[Tenant], important: List[Tenant]) -> None:
    for tenant in tenants:
        name = "held" if important else way
        result = bench.keep(f"strangers {name} {tenant.name}", rig.stretch([tenant, *important], SECONDS))
        if rig.daemon is not None:
            client = next(one for one in rig.daemon.ask("ps")["clients"] if one["pid"] == tenant.child.pid)
            result["device"] = client["devices"][0] if client["devices"] else {}


def strangers(bench: Bench) -> None:
    native = bench.rig()
    tenants = [native.start(program) for program in STRANGERS]
    native.wait_ready()
    each(bench, "native", native, tenants, [])
    bench.keep("strangers native all at once", native.stretch(tenants, 2 * SECONDS))
    bench.close(native)
    ours = bench.rig(daemon=bench.daemon(bench.policy()))
    tenants = [ours.start(program) for program in STRANGERS]
    graph = ours.start(PROGRAMS["graph"])
    ours.wait_ready()
    each(bench, "tracked", ours, tenants, [])
    each(bench, "held", ours, tenants, [graph])
    bench.keep("strangers tracked all at once", ours.stretch(tenants, 2 * SECONDS))
    result = bench.keep("strangers held all at once", ours.stretch([graph, *tenants], 2 * SECONDS), "graph")
    result["clients"] = ours.daemon.ask("ps")["clients"]
    bench.close(ours)
