"""A Triton kernel, in a file of its own because Triton reads its source. Thread rule: main thread."""

import torch
import triton
import triton.language as tl


@triton.jit
def _scale(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < count) * 0.5 + 1.0, mask=at < count)


def scale(x):
    y = torch.empty_like(x)
    _scale[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
