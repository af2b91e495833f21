"""Section *sound*: doctor's findings, the node, and whether the daemon names each GPU as its runtime does.

Thread rule: `examine` is pure; `run` starts programs from the main thread.
"""

import json
import subprocess
from typing import Dict, List, Optional

import node
from benchlib.processes import ToolError
from frame import Finding, Section, Skipped, judge
from place import Place
from probe import SEES_NONE

# Findings about the system's daemon, which a private daemon replaces: its absence is reported once, as skipped.
OF_THE_SYSTEM = ("client socket", "admin socket", "group", "service")
# The first driver with CUDA 11.3: docs/reference/support-matrix.md.
OLDEST_NVIDIA = 465


def of_doctor(answer: Dict[str, object], has_system_daemon: bool) -> List[Finding]:
    return [Finding(one["level"], f"{one['check']}: {one['what']}", one["fix"]) for one in answer["findings"]
            if (has_system_daemon or one["check"] not in OF_THE_SYSTEM) and one["check"] != "device"]


def of_node(facts: Dict[str, object]) -> List[Finding]:
    found = [Finding("ok", f"kernel {facts['kernel']}")]
    for key, title in (("amdgpu", "driver amdgpu"), ("rocm", "ROCm"), ("scheduler", "amdgpu's scheduler")):
        if facts[key]:
            found.append(Finding("ok", f"{title} {facts[key]}"))
    if facts["has_kfd"] and not facts["may_use_kfd"]:
        found.append(Finding("error", "no permission on /dev/kfd", "join the groups render and video, and log in again"))
    for gpu in facts["amd"]:
        found.append(Finding("ok", f"{gpu['pci']}: {gpu['isa']}, compute partition {gpu['compute_partition']}, memory "
                             f"partition {gpu['memory_partition']}, {gpu['compute_queues']} compute queues"))
    for gpu in facts["nvidia"]:
        found.append(Finding("ok", f"{gpu['pci']}: {gpu['name']}, driver {gpu['driver_version']}, MIG "
                             f"{gpu['mig.mode.current']}"))
        major = gpu["driver_version"].split(".")[0]
        if major.isdigit() and int(major) < OLDEST_NVIDIA:
            found.append(Finding("warning", f"{gpu['pci']}: driver {gpu['driver_version']} is older than {OLDEST_NVIDIA} (CUDA "
                                 "11.3), the oldest that xschedd is expected to work with", "update the driver"))
        if gpu["compute_mode"] != "Default":
            found.append(Finding("warning", f"{gpu['pci']}: compute mode {gpu['compute_mode']}, one process at a time",
                                 f"nvidia-smi -i {gpu['index']} -c DEFAULT"))
    return found


def of_gpus(native: Dict[str, object], scheduled: Optional[Dict[str, object]], named: List[str]) -> List[Finding]:
    """`scheduled`: what the same program found with the shim; None: it was not started. `named`: the daemon's names."""
    if not native["found"]:
        return [Finding("error", "no GPU can be opened: " + "; ".join(native["reasons"]),
                        "load the driver, or give the container its devices")]
    found = []
    for answer in native["found"]:
        for gpu in answer["gpus"]:
            found.append(Finding("ok" if gpu["memory"] == "ok" else "error",
                                 f"{gpu['pci']}: {gpu['name']} by {answer['runtime']}, memory {gpu['memory']}"))
    found += [Finding("warning", reason, "repair that driver, or remove it") for reason in native["reasons"]
              if " says " in reason and not reason.endswith(SEES_NONE)]
    if scheduled is None:
        return found
    if scheduled["found"] != native["found"]:
        found.append(Finding("error", "a program sees other GPUs, or other memory, with the shim than without",
                             "please report it, with bundle.tar"))
    pcis = [gpu["pci"] for answer in native["found"] for gpu in answer["gpus"]]
    missing = sorted(set(pcis) - set(named))
    if missing:
        found.append(Finding("error", "the daemon does not name " + ", ".join(missing) + " as its runtime does",
                             "please report it, with bundle.tar"))
    else:
        found.append(Finding("ok", "the daemon names each GPU by that address"))
    return found


def probe(place: Place) -> Dict[str, object]:
    try:
        done = place.run(place.probe, 60)
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"found": [], "reasons": ["the runtime gave no answer in time"]}
    except ValueError:
        lines = done.stderr.strip().splitlines() or ["it printed nothing"]
        return {"found": [], "reasons": [f"the runtime ended the program (status {done.returncode}): {lines[-1]}"]}


def run(place: Place) -> Section:
    facts = node.read(place.root)
    doctor = place.run([*place.xschedctl(), "--json", "doctor"], 60)
    findings, skipped = [], []
    try:
        findings += of_doctor(json.loads(doctor.stdout), place.has_system_daemon)
    except ValueError:
        skipped.append(Skipped("doctor", (doctor.stderr.strip().splitlines() or ["it printed nothing"])[-1]))
    native = probe(place)
    scheduled, named = None, []
    if not place.has_system_daemon:
        skipped.append(Skipped("the system's daemon", place.why_not_the_systems +
                               ("" if place.why_no_daemon else "; a private one was used instead")))
    if place.why_no_daemon:
        findings.append(Finding("warning", f"no program could be scheduled: {place.why_no_daemon}", "apt install xschedd"))
        skipped.append(Skipped("the GPUs as the daemon names them", "there was no daemon"))
    elif native["found"]:
        try:
            scheduled, named = place.named_by_daemon()
        except (ToolError, ValueError, subprocess.TimeoutExpired) as error:
            findings.append(Finding("error", f"a program is not scheduled by the daemon: {error}",
                                    "xschedctl doctor says more"))
    findings = of_gpus(native, scheduled, named) + of_node(facts) + findings
    count = sum(len(answer["gpus"]) for answer in native["found"])
    return judge("sound", findings, skipped, f"{count} GPU{'s' if count != 1 else ''}, driver, runtime and shim fit together")
