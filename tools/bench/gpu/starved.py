"""What the guard gives a program below one that always has work and is set to hold others, with and without time slices. The
guard determines how long a gate is open; how much work the device does in that time is up to the driver.

Thread rule: main thread.
"""

import figures
from bench import Bench
from scenarios import HIGH, Program

STRETCH_S = 15.0
HIGH_PROGRAM = Program("busy", "train", "resnet50", HIGH)
LOW_PROGRAM = Program("starved", "loop", "bert")


def starved(bench: Bench) -> None:
    rigs = {"native": bench.rig(),
            **{f"slices {word}": bench.rig(daemon=bench.daemon(bench.policy("tolerance_percent = 0") + f'\n[device]\ntime_slices = "{word}"\n'))
               for word in ("off", "auto")}}
    tenants = {way: [rig.start(program) for program in (HIGH_PROGRAM, LOW_PROGRAM)] for way, rig in rigs.items()}
    for rig in rigs.values():
        rig.wait_ready()
    result = {}
    for way, rig in rigs.items():
        rig.stretch(tenants[way], 2.0)  # warms up
        answers = rig.stretch(tenants[way], STRETCH_S)
        result[way] = {name: figures.progress(answer) for name, answer in answers.items()}
    bench.note("starved", result)
    for rig in rigs.values():
        bench.close(rig)
