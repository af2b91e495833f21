"""Records which kernels a tenant of tools/bench/gpu/run ran on the GPU, and when, with PyTorch's profiler (CUPTI).

Thread rule: main thread.
"""

import time

import torch


class Recorder:
    """`kernels` is afterwards a list of [start, end, name], times in ns of CLOCK_MONOTONIC, by start; without copies and
    fills."""

    def __enter__(self):
        self.profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
        self.profiler.__enter__()
        # The first record starts CUPTI, which takes seconds.
        torch.ones(1, device="cuda").add_(1)
        torch.cuda.synchronize()
        return self

    def __exit__(self, *arguments):
        torch.cuda.synchronize()
        self.profiler.__exit__(*arguments)
        unix_offset = time.time_ns() - time.monotonic_ns()
        self.kernels = sorted(
            [event.start_ns() - unix_offset, event.start_ns() - unix_offset + event.duration_ns(), event.name()[:80]]
            for event in self.profiler.profiler.kineto_results.events()
            if event.device_type() == torch.autograd.DeviceType.CUDA and event.duration_ns() > 0
            and not event.name().startswith("Mem"))


def launch_ms(work):
    """CPU time of launching a unit, when it need not wait for anything."""
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        started = time.process_time()
        work.launch()
        times.append(1e3 * (time.process_time() - started))
    torch.cuda.synchronize()
    return sorted(times)[len(times) // 2]


def profile(work):
    """The kernels of one unit of work."""
    launching = launch_ms(work)
    with Recorder() as recorder:
        time.sleep(0.01)
        started = time.monotonic_ns()
        work.step()
    durations = sorted((end - start) / 1e3 for start, end, _ in recorder.kernels if start >= started - 5_000_000)
    return {"kernels": len(durations), "longest_us": durations[-1], "next_us": durations[-2], "launch_ms": launching,
            "total_ms": sum(durations) / 1e3, "durations_us": durations}
