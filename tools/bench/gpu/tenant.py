#!/usr/bin/env python3
"""One GPU tenant of tools/bench/gpu/run: an unmodified PyTorch program that knows nothing of xschedd.

usage: tenant.py KIND MODEL
  request   one request at a time, from the copy of the input to the result on the host
  graph     the same, the model captured as a CUDA graph
  decode    requests of 16 tokens, a synchronisation after each token
  chat      answers of 32 tokens by Hugging Face's generate(), each token read by the host
  loop      batches one after the other, a synchronisation after each
  train     steps of training, the loss read after each
  language  steps of training a Llama, the loss read after each
  distributed  the same by several processes on as many GPUs
  stranger  batches in another way (stranger_work.py)
  stranger-request  requests likewise (stranger_requests.py)
  endless   batches one after the other, no synchronisation before the end
   or: tenant.py profile KIND:MODEL...     measures the kernels of one unit of each, and ends
   or: tenant.py start                     prints how long PyTorch and a first kernel take, and ends

Commands come on standard input, answers go to standard output, one line of JSON each. The first answer means that
the tenant is warm, and has the SHA-256 of the model's output on a fixed input. Then each command is a stretch of time:
  {"start_ns": T, "end_ns": T, "rate": requests a second, "arrivals": "spread", "poisson" or "periodic", "seed": N, "trace": bool,
   "core": N or null, where its threads begin}
(times of CLOCK_MONOTONIC), and the answer what was done in it. With TENANT_STREAM_PRIORITY in the environment the work is on
a stream of that priority. Outside its stretches a tenant does nothing. It ends at the end of input.
"""

import contextlib
import json
import os
import sys
import threading
import time

import arrivals

BEGUN = time.monotonic()


def requests(work, command):
    """With rate 0 one after the other. Otherwise a request waits for the one before it; its latency counts from its arrival.
    queued_ms: how long each waited for that."""
    done, queued, end_ns = [], [], command["end_ns"]
    while command["rate"] == 0 and (started := time.monotonic_ns()) < end_ns:
        work.step()
        done.append([started, (time.monotonic_ns() - started) / 1e6])
        queued.append(0.0)
    for arrival in arrivals.times(command) if command["rate"] else ():
        wait = arrival - time.monotonic_ns()
        if wait > 0:
            time.sleep(wait / 1e9)
        started = time.monotonic_ns()
        work.step()
        ended = time.monotonic_ns()
        # A late wake-up of this program does not count; a wait for the previous request does.
        since = started if wait > 0 else arrival
        done.append([int(since), (ended - since) / 1e6])
        queued.append((started - since) / 1e6)
    return {"requests": done, "queued_ms": queued}


def batches(work, command):
    ends = []
    while work.goes_on(command["end_ns"]):
        work.step()
        ends.append(time.monotonic_ns())
    return {"ends_ns": ends}


def endless(work, command):
    """The ends of batches are not known; they are reported as evenly spread."""
    import torch

    count = 0
    while time.monotonic_ns() < command["end_ns"]:
        work.launch()
        count += 1
    torch.cuda.synchronize()
    ended = time.monotonic_ns()
    return {"ends_ns": [command["start_ns"] + (ended - command["start_ns"]) * (number + 1) // count for number in range(count)]}


WORKS = {"loop": batches, "stranger": batches, "train": batches, "language": batches, "distributed": batches, "endless": endless}
STEP_S = 0.1  # of a loop, in which each of its threads runs


def put_threads_on(cores):
    for thread in map(int, os.listdir("/proc/self/task")):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread, cores)


def begin_on(core, free_at_ns):
    """A thread then stays there while the core has nothing else to do. One that sleeps moves when it next runs."""
    usual = os.sched_getaffinity(0)
    put_threads_on({core})
    left_s = (free_at_ns - time.monotonic_ns()) / 1e9
    if left_s <= 0:
        put_threads_on(usual)
    else:
        threading.Timer(left_s, put_threads_on, [usual]).start()


def recording():
    import recorder

    return recorder.Recorder()


def obey(kind, work, command):
    if command.get("core") is not None:
        # Autograd's thread runs in the first step. Where latencies count, no thread waits for another's core.
        begin_on(command["core"], command["start_ns"] + int(STEP_S * 1e9) if kind in WORKS else 0)
    with recording() if command.get("trace") else contextlib.nullcontext() as record:
        time.sleep(max(0.0, (command["start_ns"] - time.monotonic_ns()) / 1e9))
        tokens = {name: getattr(work, name) for name in ("token_ms", "first_ms", "wait_ms") if hasattr(work, name)}
        for times in tokens.values():
            times.clear()
        cpu, began = time.process_time(), time.monotonic()
        answer = WORKS.get(kind, requests)(work, command)
        answer["cores"] = (time.process_time() - cpu) / (time.monotonic() - began)
    if record is not None:
        answer["kernels"] = record.kernels
    answer.update({name: list(times) for name, times in tokens.items()})
    answer["digest"] = work.digest()
    return answer


def say(answer):
    """The whole line: with PYTHONUNBUFFERED, which containers often set, print() drops what is left when a signal cuts a write."""
    line = json.dumps(answer).encode() + b"\n"
    while line:
        line = line[os.write(1, line):]


def start():
    import torch
    imported = time.monotonic()
    torch.ones(1, device="cuda").add_(1).item()
    print(json.dumps({"import_s": imported - BEGUN, "kernel_s": time.monotonic() - imported}), flush=True)


def profile(words):
    import recorder
    import work

    kind, model = words.split(":")
    with work.mode(kind):
        unit = work.make_work(kind, model)
        for _ in range(3):
            unit.step()
        return recorder.profile(unit)


def serve(kind, model):
    import torch
    import work

    torch.set_num_threads(1)
    priority = os.environ.get("TENANT_STREAM_PRIORITY")
    on = torch.cuda.stream(torch.cuda.Stream(priority=int(priority))) if priority else contextlib.nullcontext()
    with on, work.mode(kind):
        began = time.monotonic()
        unit = work.make_work(kind, model)
        for _ in range(20):
            unit.step()
        torch.cuda.synchronize()
        say({"ready_s": time.monotonic() - began, "digest": unit.digest()})
        for line in sys.stdin:
            say(obey(kind, unit, json.loads(line)))


def main():
    if sys.argv[1] == "start":
        start()
    elif sys.argv[1] == "profile":
        print(json.dumps({words: profile(words) for words in sys.argv[2:]}), flush=True)
    else:
        serve(*sys.argv[1:3])


if __name__ == "__main__":
    main()
