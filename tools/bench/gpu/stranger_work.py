"""Loops that reach the GPU in ways of their own: JAX (XLA), CuPy, Triton, torch.compile, CUDA graphs in each capture mode, long
kernels, tiny ones, copies, shapes that are new in each step. Units as in work.py.

Thread rule: main thread, but for the second thread of Captures.
"""

import hashlib
import os
import random
import threading

import torch

import models
from work import Batches, Loop, Synchronised, capture, sha256

SIZE = 2048


def unit(name):
    """Each library is imported only on demand: JAX takes seconds."""
    return {"jax": Jax, "cupy": Cupy, "triton": Triton, "compiled": lambda: Compiled("resnet18"),
            "bertlarge": lambda: Compiled("bertlarge"), "captures": Captures, "long": LongKernels, "copies": Copies,
            "tiny": TinyKernels, "networks": Networks, "steps": WholeSteps}[name]()


def import_jax():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax

    return jax


class Jax(Loop):
    """A jitted chain of matrix products."""

    def __init__(self):
        self.jax = jax = import_jax()
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


class LongKernels(Synchronised):
    """Products of matrices in double precision, each one kernel of many milliseconds."""

    def __init__(self):
        torch.manual_seed(7)
        self.x = torch.randn(8192, 8192, dtype=torch.float64, device="cuda")

    def launch(self):
        for _ in range(2):
            self.result = self.x @ self.x


class WholeSteps(Synchronised):
    """A graph of a dozen such kernels, as of a whole training step: one launch that is longer than a turn."""

    def __init__(self):
        torch.manual_seed(7)
        self.x = torch.randn(8192, 8192, dtype=torch.float64, device="cuda")
        out = torch.empty_like(self.x)
        self.graph, self.result = capture(lambda: [torch.mm(self.x, self.x, out=out) for _ in range(12)][-1])

    def launch(self):
        self.graph.replay()


class Copies(Synchronised):
    """A loader: pinned memory to the device, a little work, and back."""

    def __init__(self):
        torch.manual_seed(7)
        self.host, self.back = torch.randn(1 << 25).pin_memory(), torch.empty(1 << 25).pin_memory()

    def launch(self):
        self.back.copy_(self.host.cuda(non_blocking=True).mul_(2).add_(1), non_blocking=True)
        self.result = self.back


class TinyKernels(Synchronised):
    """Thousands of kernels of a few microseconds between two waits."""

    def __init__(self):
        self.x = torch.zeros(1 << 12, device="cuda")

    def launch(self):
        self.x.zero_()
        for _ in range(4000):
            self.x.add_(1)
        self.result = self.x


class Networks(Synchronised):
    """Training of a graph network; each step has other numbers of nodes and edges."""

    @torch.inference_mode(False)
    def __init__(self):
        import torch_geometric

        torch.manual_seed(7)
        self.layers = torch.nn.ModuleList(torch_geometric.nn.SAGEConv(256, 256) for _ in range(3)).cuda()
        self.optimizer = torch.optim.Adam(self.layers.parameters())
        self.nodes = torch.randn(1 << 16, 256, device="cuda")
        self.chance = random.Random(7)
        with torch.no_grad():
            self.result = self.layers[0](self.nodes[:1000], torch.arange(1000, device="cuda").expand(2, 1000))

    @torch.inference_mode(False)
    def launch(self):
        count = self.chance.randint(10_000, len(self.nodes))
        edges = torch.randint(0, count, (2, 8 * count), device="cuda")
        x = self.nodes[:count]
        for layer in self.layers:
            x = torch.relu(layer(x, edges))
        self.optimizer.zero_grad(set_to_none=True)
        x.square().mean().backward()
        self.optimizer.step()

    # The digest is of the untrained first layer with one edge a node: sums of several, by atomic adds, differ from run to run.
