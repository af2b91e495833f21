#!/usr/bin/env python3
"""One GPU tenant of tools/bench/gpu/run: an unmodified PyTorch program that knows nothing of xschedd.

usage: tenant.py KIND MODEL
  request   one request at a time, from the copy of the input to the result on the host
  graph     the same, the model captured as a CUDA graph
  loop      batches one after the other, a synchronisation after each
  profile   measures the kernels of one batch, and ends

Commands come on standard input, answers go to standard output, one line of JSON each. The first answer says that the
tenant is warm, with the SHA-256 of the model's output on a fixed input. Then each command is a stretch of time:
  {"start_ns": T, "end_ns": T, "rate": requests a second, "seed": N}     CLOCK_MONOTONIC
and the answer what was done in it. Outside of its stretches a tenant does nothing. End of input ends it.
"""

import hashlib
import json
import random
import sys
import time

import torch

torch.set_num_threads(1)


def make_model(name):
    """The model on the GPU in evaluation mode, and a fixed input in pinned memory."""
    torch.manual_seed(7)
    if name.startswith("resnet"):
        import torchvision
        depth, batch = {"resnet18": (18, 1), "resnet50": (50, 256)}[name]
        model = getattr(torchvision.models, f"resnet{depth}")(weights=None)
        inputs = torch.randn(batch, 3, 224, 224)
        if batch > 1:
            model, inputs = model.half(), inputs.half()
    elif name.startswith("bert"):
        import transformers
        batch = {"bert": 1, "bert64": 64}[name]
        bert = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False)

        class Hidden(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.bert = bert

            def forward(self, ids):
                return self.bert(input_ids=ids).last_hidden_state

        model, inputs = Hidden(), torch.randint(0, 30000, (batch, 128))
        if batch > 1:
            model = model.half()
    else:
        raise SystemExit(f"no model {name}")
    return model.cuda().eval(), inputs.pin_memory()


class Tenant:
    def __init__(self, kind, name):
        self.kind = kind
        self.model, self.host = make_model(name)
        self.device = torch.empty_like(self.host, device="cuda")
        self.graph = None
        with torch.inference_mode():
            self.device.copy_(self.host)
            for _ in range(5):
                self.result = self.model(self.device)
            torch.cuda.synchronize()
            if kind == "graph":
                self.capture()
            for _ in range(20):
                self.run()
            torch.cuda.synchronize()

    def capture(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.model(self.device)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = self.model(self.device)

    def run(self):
        """From the copy of the input to the result on the host; a loop's input stays on the device."""
        if self.kind != "loop":
            self.device.copy_(self.host, non_blocking=True)
        if self.graph is not None:
            self.graph.replay()
        else:
            self.result = self.model(self.device)
        if self.kind != "loop":
            self.on_host = self.result.cpu()

    def digest(self):
        with torch.inference_mode():
            self.run()
            return hashlib.sha256(self.result.cpu().numpy().tobytes()).hexdigest()

    def requests(self, start_ns, end_ns, rate, seed):
        """One after the other with `rate` 0. Else arrivals at `rate` a second, each moved by up to a quarter of the interval, so that they keep no step with
        anything. A request that finds the one before it unfinished waits; its latency counts from its arrival."""
        done = []
        with torch.inference_mode():
            while rate == 0 and (begun := time.monotonic_ns()) < end_ns:
                self.run()
                done.append([begun, (time.monotonic_ns() - begun) / 1e6])
            chance, interval = random.Random(seed), 1e9 / (rate or 1)
            for number in range(int((end_ns - start_ns) / interval) if rate else 0):
                arrival = start_ns + (number + 0.25 + 0.5 * chance.random()) * interval
                wait = arrival - time.monotonic_ns()
                if wait > 0:
                    time.sleep(wait / 1e9)
                begun = time.monotonic_ns()
                self.run()
                ended = time.monotonic_ns()
                # Waking up late is this program's own affair; having to wait for the request before is not.
                since = begun if wait > 0 else arrival
                done.append([int(since), (ended - since) / 1e6])
        return {"requests": done}

    def batches(self, start_ns, end_ns):
        ends = []
        with torch.inference_mode():
            while time.monotonic_ns() < end_ns:
                self.run()
                torch.cuda.synchronize()
                ends.append(time.monotonic_ns())
        return {"ends_ns": ends}

    def obey(self, command):
        start, end = command["start_ns"], command["end_ns"]
        time.sleep(max(0.0, (start - time.monotonic_ns()) / 1e9))
        cpu, began = time.process_time(), time.monotonic()
        if self.kind == "loop":
            answer = self.batches(start, end)
        else:
            answer = self.requests(start, end, command["rate"], command["seed"])
        answer["cores"] = (time.process_time() - cpu) / (time.monotonic() - began)
        answer["digest"] = self.digest()
        return answer


def profile(name):
    tenant = Tenant("loop", name)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler, torch.inference_mode():
        tenant.run()
        torch.cuda.synchronize()
    kernels = sorted(event.device_time_total for event in profiler.events()
                     if event.device_time_total > 0 and not event.name.startswith("Mem"))
    return {"kernels": len(kernels), "longest_us": kernels[-1], "next_us": kernels[-2], "total_ms": sum(kernels) / 1e3,
            "durations_us": kernels}


def main():
    kind, name = sys.argv[1:3]
    if kind == "profile":
        print(json.dumps(profile(name)), flush=True)
        return
    began = time.monotonic()
    tenant = Tenant(kind, name)
    print(json.dumps({"ready_s": time.monotonic() - began, "digest": tenant.digest()}), flush=True)
    for line in sys.stdin:
        print(json.dumps(tenant.obey(json.loads(line))), flush=True)


main()
