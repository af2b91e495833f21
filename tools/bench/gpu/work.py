"""The work of the tenants of tools/bench/gpu/run, in units: `step()` does one whole unit, including results on the host if
that is part of it, `launch()` only what comes before the wait for the GPU; `digest()` is a SHA-256 of the output for a fixed
input, whatever was done before. Work that answers requests has in `wait_ms` how long its host waited for the GPU: for each
token if there is `token_ms`, in the same order, else for each request.

Thread rule: main thread.
"""

import copy
import hashlib
import os
import time

import torch

import models
from host_waits import Waits

TOKENS = 16  # of one request of the decode loop


def sha256(tensors):
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def capture(body, warm_up=3):
    """The CUDA graph of `body()`, after warm-up runs as PyTorch requires, and the result of the captured run."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(warm_up):
            body()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    # On the current stream, whose priority its kernels then have; the default stream cannot be captured.
    current = torch.cuda.current_stream()
    with torch.cuda.graph(graph, stream=current if current != torch.cuda.default_stream() else None):
        result = body()
    return graph, result


class Loop:
    """Work that is repeated until a given time."""

    def goes_on(self, end_ns):
        return time.monotonic_ns() < end_ns


class Synchronised(Loop):
    """Waits once a unit. `launch()` sets `result`."""

    def step(self):
        self.launch()
        torch.cuda.synchronize()

    def digest(self):
        self.step()
        return sha256([self.result])


class Batches(Synchronised):
    """Forward passes of an input that stays on the device."""

    def __init__(self, name):
        self.model, host = models.make_model(name)
        self.device = host.cuda()

    def launch(self):
        self.result = self.model(self.device)


class Answers:
    """One request at a time. `answer()` does one and returns its result, which is on the host."""

    def __init__(self):
        self.waits, self.wait_ms = Waits(torch.Tensor), []

    def step(self):
        self.waits.take_ms()  # drop what came between two requests
        self.on_host = self.answer()
        self.wait_ms.append(self.waits.take_ms())

    def digest(self):
        self.step()
        return sha256([self.on_host])


class Requests(Answers):
    """From the copy of the input to the result on the host."""

    def __init__(self, name, is_graph):
        super().__init__()
        self.model, self.host = models.make_model(name)
        self.device = self.host.cuda()
        self.graph = None
        if is_graph:
            self.graph, self.result = capture(lambda: self.model(self.device))

    def answer(self):
        self.device.copy_(self.host, non_blocking=True)
        if self.graph is not None:
            self.graph.replay()
        else:
            self.result = self.model(self.device)
        return self.result.cpu()


class Decode:
    """TOKENS of a GPT, one after the other as a CUDA graph; the host reads each before it asks for the next."""

    def __init__(self, name):
        self.model, self.host = models.make_model(name)
        self.token, self.position = self.host.cuda(), torch.zeros(1, dtype=torch.long, device="cuda")
        self.caches, self.token_ms = self.model.caches(), []
        self.waits, self.wait_ms = Waits(torch.Tensor), []
        self.graph, self.logits = capture(self.next)

    def next(self):
        logits = self.model(self.token, self.caches, self.position)
        self.token.copy_(logits.argmax(dim=-1))
        self.position.add_(1)
        return logits

    def step(self):
        self.token.copy_(self.host, non_blocking=True)
        self.position.zero_()
        self.text = []
        for _ in range(TOKENS):
            self.waits.take_ms()
            started = time.monotonic_ns()
            self.graph.replay()
            self.text.append(self.token.item())
            self.token_ms.append((time.monotonic_ns() - started) / 1e6)
            self.wait_ms.append(self.waits.take_ms())

    def digest(self):
        self.step()
        return sha256([self.logits, torch.tensor(self.text)])


class Chat:
    """An answer of 32 tokens by Hugging Face's generate(), each token read by the host as a streaming server does."""

    TOKENS = 32

    def __init__(self, name):
        self.model = models.llama(name).eval()
        self.prompt = torch.randint(0, models.VOCABULARY, (1, 128)).cuda()
        self.first_ms, self.token_ms, self.text = [], [], []
        self.waits, self.wait_ms = Waits(torch.Tensor), []

    def put(self, tokens):
        """Called by generate() as a streamer: first with the prompt, then with each token."""
        now, wait_ms = time.monotonic_ns(), self.waits.take_ms()
        if self.count > 0:
            (self.first_ms if self.count == 1 else self.token_ms).append((now - self.last_ns) / 1e6)
            if self.count > 1:
                self.wait_ms.append(wait_ms)
            self.text.extend(tokens.tolist())
            self.last_ns = now
        self.count += 1

    def end(self):
        pass

    def step(self):
        self.count, self.last_ns, self.text = 0, time.monotonic_ns(), []
        self.model.generate(self.prompt, attention_mask=torch.ones_like(self.prompt), max_new_tokens=self.TOKENS,
                            min_new_tokens=self.TOKENS, do_sample=False, pad_token_id=0, streamer=self)

    def digest(self):
        self.step()
        return sha256([torch.tensor(self.text)])


class Steps(Loop):
    """Training steps; the host reads each loss. `loss()` computes it from `self.model`; `self.optimizer` is its optimizer."""

    def launch(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        return loss

    def step(self):
        self.launch().item()


class LanguageTraining(Steps):
    """Of a Hugging Face Llama in bf16."""

    def __init__(self, name):
        torch.use_deterministic_algorithms(True, warn_only=True)
        self.model = models.llama(name).train()
        self.beginning = models.llama(name)
        self.tokens = torch.randint(0, models.VOCABULARY, (4, 512)).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True)

    def loss(self):
        return self.model(input_ids=self.tokens, labels=self.tokens, use_cache=False).loss

    def digest(self):
        """Of the untrained model's output, independent of how far the training is."""
        with torch.no_grad():
            result = self.beginning(input_ids=self.tokens, use_cache=False).logits[:, -1]
        return sha256([result.float()])


class Training(Steps):
    """Of ResNet-50 under bf16 autocast with momentum."""

    def __init__(self, name):
        assert name == "resnet50"
        torch.backends.cudnn.deterministic = True
        torch.manual_seed(7)
        self.model = models.resnet(50).cuda().train()
        self.inputs = torch.randn(models.TRAINING_BATCH, 3, 224, 224).cuda()
        self.labels = torch.randint(0, 1000, (models.TRAINING_BATCH,)).cuda()
        self.beginning = copy.deepcopy(self.model.state_dict())
        self.begin()

    def begin(self):
        self.model.load_state_dict(self.beginning)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)

    def loss(self):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return torch.nn.functional.cross_entropy(self.model(self.inputs), self.labels)

    def digest(self):
        self.begin()
        for _ in range(3):
            self.step()
        return sha256(self.model.state_dict().values())


class Distributed(Training):
    """The same with several processes, one on each GPU, which average their gradients with NCCL (RANK, WORLD_SIZE,
    MASTER_ADDR and MASTER_PORT as torchrun sets them)."""

    def __init__(self, name):
        self.rank = int(os.environ["RANK"])
        torch.cuda.set_device(self.rank)
        torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", self.rank))
        super().__init__(name)
        self.model = torch.nn.parallel.DistributedDataParallel(self.model, device_ids=[self.rank])
        self.beginning = copy.deepcopy(self.model.state_dict())
        self.begin()

    def goes_on(self, end_ns):
        """All ranks stop after the same step, or one would wait for the others for ever."""
        late = torch.tensor([time.monotonic_ns() >= end_ns], dtype=torch.int32, device="cuda")
        torch.distributed.all_reduce(late)
        return late.item() == 0


def mode(kind):
    """The context that all of a tenant's work is done in."""
    return torch.inference_mode(kind not in ("train", "distributed", "language"))


def make_work(kind, name):
    if kind in ("loop", "endless"):
        return Batches(name)
    if kind in ("request", "graph"):
        return Requests(name, kind == "graph")
    if kind == "decode":
        return Decode(name)
    if kind == "chat":
        return Chat(name)
    if kind == "train":
        return Training(name)
    if kind == "language":
        return LanguageTraining(name)
    if kind == "distributed":
        return Distributed(name)
    if kind == "stranger":
        import stranger_work

        return stranger_work.unit(name)
    if kind == "stranger-request":
        import stranger_requests

        return stranger_requests.unit(name)
    raise SystemExit(f"no kind {kind}")
