"""The effect of the window: graph-five with each size, set live in the same processes. Thread rule: main thread."""

from bench import Bench
from scenarios import LOOPS, PROGRAMS

WINDOWS_US = (50, 100, 200, 300, 500, 1000, 2000)


def windows(bench: Bench) -> None:
    daemon = bench.daemon(bench.policy())
    rig = bench.rig(daemon=daemon)
    high = rig.start(PROGRAMS["graph"])
    loops = [rig.start(PROGRAMS[name]) for name in LOOPS]
    rig.wait_ready()
    for window_us in WINDOWS_US:
        daemon.ask("policy", "set", "--window", f"{window_us}us")
        bench.keep(f"time-sliced window {window_us} µs graph-five", rig.stretch([high, *loops], min(10.0, bench.options.seconds)))
    bench.close(rig)
