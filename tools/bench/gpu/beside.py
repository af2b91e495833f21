"""The scenarios: each tenant that answers requests, alone and then beside tenants that saturate the GPU, natively and under
xschedd.

Thread rule: main thread.
"""

import contextlib
import os
import subprocess
import time
from typing import Dict, Iterator, List, Optional, Tuple

from bench import Bench
from rig import Tenant
from scenarios import LOOPS, LOW, SCENARIOS, Scenario, alone_of, programs_of


def one_way(bench: Bench, substrate: str, way: str, environment: Optional[Dict[str, str]] = None,
            background: Optional[Dict[str, str]] = None, configuration: Optional[str] = None) -> None:
    """All stretches of one way of running the tenants, with one set of processes. `background`: the environment of those
    below."""
    seconds = bench.options.seconds
    scenarios: List[Scenario] = [SCENARIOS[name] for name in bench.options.scenarios]
    rig = bench.rig(environment, bench.daemon(configuration) if configuration is not None else None)
    tenants: Dict[str, Tenant] = {
        program.name: rig.start(program, background if program.priority == LOW else None)
        for program in programs_of(scenarios)}
    rig.wait_ready()
    loops = [tenants[name] for name in LOOPS if name in tenants]
    if way == "native":
        for name, asked in alone_of(scenarios).items():
            bench.keep(f"{substrate} {name}", rig.stretch([tenants[asked.program]], seconds, {asked.program: asked.load}))
        if len(loops) == len(LOOPS):
            bench.keep(f"{substrate} one loop alone", rig.stretch(loops[:1], seconds / 2))
    if len(loops) == len(LOOPS):
        bench.keep(f"{substrate} {way} five loops", rig.stretch(loops, seconds / 2))
    for scenario in scenarios:
        chosen = [tenants[asked.program] for asked in scenario.asked] + [tenants[name] for name in scenario.background]
        result = bench.keep(f"{substrate} {way} {scenario.name}",
                            rig.stretch(chosen, seconds, {asked.program: asked.load for asked in scenario.asked}),
                            scenario.high.program)
        if rig.daemon is not None:
            result["clients"] = rig.daemon.ask("ps")["clients"]
    if rig.daemon is not None:
        bench.note(f"daemon {substrate}", rig.daemon.ask("stats"))
    bench.close(rig)


def time_sliced(bench: Bench) -> None:
    one_way(bench, "time-sliced", "native")
    one_way(bench, "time-sliced", "xschedd", configuration=bench.policy())


@contextlib.contextmanager
def mps_server(bench: Bench) -> Iterator[Tuple[Dict[str, str], Dict[str, str]]]:
    """A private MPS server; under MPS tenants run side by side. Yields the environment of all clients, and what to add for
    those of low MPS priority."""
    folder = os.path.join(bench.folder, "mps")
    os.makedirs(folder, 0o700, exist_ok=True)
    environment = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    control = bench.children.start("mps", ["nvidia-cuda-mps-control", "-f"], {**os.environ, **environment})
    time.sleep(1)
    control.check_alive()
    clients = dict(environment)
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        # Clients number the GPUs that the server has from 0.
        clients["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in range(len(visible.split(","))))
    try:
        yield clients, {"CUDA_MPS_CLIENT_PRIORITY": "1"}
    finally:
        # The server waits for its clients: after a failed part they still run, and are stopped later.
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env={**os.environ, **environment},
                           timeout=10, check=False, stdout=subprocess.DEVNULL)
        bench.children.stop([control])


def mps(bench: Bench) -> None:
    with mps_server(bench) as (environment, low):
        one_way(bench, "mps", "native", environment)
        one_way(bench, "mps", "mps priority", environment, low)
        one_way(bench, "mps", "xschedd", environment, low, bench.policy())
