"""Programs that answer requests in ways that no policy was made for: of ever new shapes, with one wait at the end of many steps,
by beam search, by JAX. Units as in work.py.

Thread rule: main thread.
"""

import hashlib
import os
import random
import time

import torch

import models
from stranger_work import import_jax
from work import Answers


def unit(name):
    """Each library is imported only on demand."""
    return {"embed": Embeddings, "denoise": Denoising, "beams": Beams, "jax-request": JaxRequests}[name]()


class Embeddings(Answers):
    """Of sentences, by a BERT of six layers: each request has another number of sentences and of tokens."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.model = models.Hidden(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
        self.model = self.model.half().cuda().eval()
        chance = random.Random(7)
        self.inputs = [torch.randint(0, 30000, (chance.randint(1, 8), chance.randint(16, 256))) for _ in range(64)]
        self.number = 0

    def digest(self):
        self.number = 0
        return super().digest()

    def answer(self):
        ids = self.inputs[self.number % len(self.inputs)].cuda()
        self.number += 1
        return torch.nn.functional.normalize(self.model(ids).mean(dim=1), dim=1).cpu()


class Denoising(Answers):
    """Twenty steps of a small U-Net; the host waits once, at the end."""

    STEPS, WIDTH = 20, 256

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)

        def block(inputs, outputs, stride=1):
            return torch.nn.Sequential(torch.nn.Conv2d(inputs, outputs, 3, stride, 1), torch.nn.GroupNorm(32, outputs),
                                       torch.nn.SiLU(), torch.nn.Conv2d(outputs, outputs, 3, 1, 1), torch.nn.SiLU())

        width = self.WIDTH
        self.first = torch.nn.Conv2d(4, width, 3, 1, 1)
        self.down = torch.nn.ModuleList([block(width, width, 2), block(width, 2 * width, 2), block(2 * width, 2 * width, 2)])
        self.up = torch.nn.ModuleList([block(2 * width, 2 * width), block(2 * width, width), block(width, width)])
        self.last = torch.nn.Conv2d(width, 4, 3, 1, 1)
        for part in (self.first, self.down, self.up, self.last):
            part.half().cuda().eval()
        self.noise = torch.randn(2, 4, 64, 64).half().pin_memory()

    def predict(self, x):
        x, kept = self.first(x), []
        for down in self.down:
            kept.append(x)
            x = down(x)
        for up, side in zip(self.up, reversed(kept)):
            x = torch.nn.functional.interpolate(up(x), scale_factor=2) + side
        return self.last(x)

    def answer(self):
        x = self.noise.cuda(non_blocking=True)
        for _ in range(self.STEPS):
            x = x - 0.05 * self.predict(x)
        return x.cpu()


class Beams(Answers):
    """A T5 that translates with four beams, 16 tokens."""

    def __init__(self):
        super().__init__()
        import transformers

        torch.manual_seed(7)
        self.model = transformers.T5ForConditionalGeneration(transformers.T5Config(
            vocab_size=models.VOCABULARY, d_model=512, num_layers=6, num_heads=8, d_ff=2048, decoder_start_token_id=0,
            pad_token_id=0, eos_token_id=1)).half().cuda().eval()
        self.prompt = torch.randint(2, models.VOCABULARY, (1, 64))

    def answer(self):
        return self.model.generate(self.prompt.cuda(), num_beams=4, max_new_tokens=16, min_new_tokens=16, do_sample=False).cpu()


class JaxRequests:
    """A jitted network of 16 layers; the answer is copied to the host."""

    def __init__(self):
        import numpy

        # Else XLA chooses kernels by measuring, and the outputs of two processes differ, also natively.
        os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"
        jax = import_jax()
        self.jax, self.wait_ms = jax, []
        keys = jax.random.split(jax.random.PRNGKey(7), 16)
        weights = [jax.random.normal(key, (2048, 2048), dtype=jax.numpy.float32) / 45 for key in keys]

        def network(x):
            for weight in weights:
                x = jax.numpy.tanh(x @ weight)
            return x

        self.network, self.input = jax.jit(network), numpy.ones((32, 2048), dtype=numpy.float32)

    def step(self):
        answer = self.network(self.jax.device_put(self.input))
        started = time.monotonic_ns()
        self.result = self.jax.device_get(answer)
        self.wait_ms.append((time.monotonic_ns() - started) / 1e6)

    def digest(self):
        self.step()
        return hashlib.sha256(self.result.tobytes()).hexdigest()
