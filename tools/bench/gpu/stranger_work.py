"""Work by third-party libraries that reach the GPU in their own ways: JAX (XLA), CuPy, Triton, torch.compile, CUDA graphs in
each capture mode. Units as in work.py.

Thread rule: main thread, but for the second thread of Captures.
"""

import hashlib
import os
import threading

import torch

import models
from work import Batches, Loop, sha256

SIZE = 2048


def unit(name):
    """Each library is imported only on demand: JAX takes seconds."""
    return {"jax": Jax, "cupy": Cupy, "triton": Triton, "compiled": lambda: Compiled("resnet18"),
            "bertlarge": lambda: Compiled("bertlarge"), "captures": Captures}[name]()


class Jax(Loop):
    """A jitted chain of matrix products."""

    def __init__(self):
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        import jax

        self.jax = jax
        self.start = jax.random.normal(jax.random.PRNGKey(7), (SIZE, SIZE), dtype=jax.numpy.float32) / SIZE
        self.chain = jax.jit(lambda x: jax.lax.fori_loop(0, 4, lambda _, y: jax.numpy.tanh(y @ x), x))

    def step(self):
        self.result = self.chain(self.start).block_until_ready()

    def digest(self):
        self.step()
        return hashlib.sha256(self.jax.device_get(self.result).tobytes()).hexdigest()


class Cupy(Loop):
    """Matrix products and element-wise kernels on a stream of its own."""

    def __init__(self):
        import cupy

        self.cupy, self.stream = cupy, cupy.cuda.Stream(non_blocking=True)
        with self.stream:
            self.start = cupy.random.RandomState(7).standard_normal((SIZE, SIZE), dtype=cupy.float32) / SIZE
        self.stream.synchronize()

    def step(self):
        with self.stream:
            self.result = self.start
            for _ in range(4):
                self.result = self.cupy.tanh(self.result @ self.start) + self.start
        self.stream.synchronize()

    def digest(self):
        self.step()
        return hashlib.sha256(self.cupy.asnumpy(self.result).tobytes()).hexdigest()


class Triton(Loop):
    """A kernel that Triton compiles and launches through the driver."""

    def __init__(self):
        import triton_kernel

        torch.manual_seed(7)
        self.kernel, self.x = triton_kernel, torch.randn(1 << 24, device="cuda")

    def step(self):
        self.y = self.x
        for _ in range(8):
            self.y = self.kernel.scale(self.y)
        torch.cuda.synchronize()

    def digest(self):
        self.step()
        return sha256([self.y])


class Compiled(Batches):
    """A model with torch.compile, whose kernels are Triton's."""

    def __init__(self, name):
        super().__init__(name)
        self.model = torch.compile(self.model)


class Captures(Loop):
    """Each step captures a new graph, alternating global, thread-local and relaxed mode, on two streams, while another thread
    launches and synchronises on a stream of its own; then the graph runs."""

    MODES = ("global", "thread_local", "relaxed")

    def __init__(self):
        self.model, host = models.make_model("resnet18")
        self.device, self.number = host.cuda(), 0
        self.other = torch.zeros(1 << 20, device="cuda")
        self.streams = [torch.cuda.Stream() for _ in range(3)]
        for _ in range(3):
            self.model(self.device)
        torch.cuda.synchronize()

    def beside(self, end):
        with torch.inference_mode(), torch.cuda.stream(self.streams[2]):
            while not end.is_set():
                for _ in range(8):
                    self.other.add_(1)
                self.streams[2].synchronize()

    def step(self):
        first, second, _ = self.streams
        mode = self.MODES[self.number % len(self.MODES)]
        self.number += 1
        end = threading.Event()
        beside = threading.Thread(target=self.beside, args=[end])
        # Work is under way on the streams that are captured.
        first.wait_stream(torch.cuda.current_stream())
        for stream in (first, second):
            with torch.cuda.stream(stream):
                self.model(self.device)
        # Forbidden calls of a second thread break a global capture even natively, so it runs only in the other modes.
        if mode != "global":
            beside.start()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=first, capture_error_mode=mode):
                second.wait_stream(first)
                with torch.cuda.stream(second):
                    aside = self.model(self.device)
                result = self.model(self.device)
                first.wait_stream(second)
                self.result = result + aside
        finally:
            end.set()
            if mode != "global":
                beside.join()
        graph.replay()
        torch.cuda.synchronize()
        self.graph = graph

    def digest(self):
        self.step()
        return sha256([self.result])
