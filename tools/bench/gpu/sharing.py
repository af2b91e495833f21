"""Two tenants that saturate the GPU, with weights 75 and 25. Thread rule: main thread."""

from bench import Bench
from scenarios import HIGH, Program

NAMES = ("large", "small")


def share(bench: Bench) -> None:
    """Once by themselves, and once beside an important tenant that is attached and idle."""
    seconds = bench.options.seconds
    loops = [Program(name, "loop", "resnet50") for name in NAMES]
    native = bench.rig()
    pair = [native.start(loop) for loop in loops]
    native.wait_ready()
    bench.keep("share one alone", native.stretch(pair[:1], seconds / 2))
    bench.keep("share native", native.stretch(pair, seconds))
    bench.close(native)
    for important in (False, True):
        daemon = bench.daemon(bench.policy('name = "share"'))
        ours = bench.rig(daemon=daemon)
        pair = [ours.start(loop, {"XSCHEDD_WEIGHT": weight}) for loop, weight in zip(loops, ("75", "25"))]
        if important:
            ours.start(Program("important", "graph", "resnet18", HIGH))
        ours.wait_ready()
        way = "beside an idle higher one" if important else "by themselves"
        result = bench.keep(f"share xschedd {way} 75/25", ours.stretch(pair, seconds))
        result["clients"] = daemon.ask("ps")["clients"]
        # Live: the weights of the same processes are swapped.
        for tenant, weight in zip(pair, ("25", "75")):
            daemon.ask("set", "--weight", weight, "--pid", str(tenant.child.pid))
        bench.keep(f"share xschedd {way} 25/75, set live", ours.stretch(pair, seconds))
        bench.close(ours)
