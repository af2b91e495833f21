"""The models that tenants of tools/bench/gpu/run use. Weights and inputs are random and the same in every process, so
that outputs can be compared bit for bit. Nothing is downloaded.

Thread rule: main thread.
"""

import torch
import torch.nn.functional as F

RESNETS = {"resnet18": (18, 1), "resnet18b64": (18, 64), "resnet50": (50, 256)}  # layers, batch
BERTS = {"bert": 1, "bert64": 64}  # batch, of 128 tokens
TRAINING_BATCH = 128
PREFILL = (16, 1024)  # prompts, tokens of each
LLAMAS = {"llama1b": (2048, 16, 8192), "llama400m": (1024, 24, 4096)}  # width, layers, width between
VOCABULARY, LAYERS, WIDTH, HEADS, LONGEST = 32000, 12, 1024, 16, 1024  # of the GPT


def resnet(layers):
    try:
        import torchvision
    except ImportError:
        import resnets
        return resnets.resnet(layers)
    return getattr(torchvision.models, f"resnet{layers}")(weights=None)


def llama(name):
    """A Llama of Hugging Face with about that many parameters."""
    import transformers
    torch.manual_seed(7)
    width, layers, between = LLAMAS[name]
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=width, num_hidden_layers=layers, intermediate_size=between,
        num_attention_heads=width // 64, num_key_value_heads=width // 256)).cuda().to(torch.bfloat16)


class Hidden(torch.nn.Module):
    """BERT; the output is one tensor."""

    def __init__(self, **sizes):
        super().__init__()
        import transformers
        self.bert = transformers.BertModel(transformers.BertConfig(**sizes), add_pooling_layer=False)

    def forward(self, ids):
        return self.bert(input_ids=ids).last_hidden_state


class Block(torch.nn.Module):
    """One layer of a GPT. With a cache it processes one token at `position`, without one whole prompts."""

    def __init__(self):
        super().__init__()
        self.before, self.between = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.inputs, self.outputs = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, cache=None, position=None, mask=None):
        batch, tokens, _ = x.shape
        query, key, value = (part.view(batch, tokens, HEADS, WIDTH // HEADS).transpose(1, 2)
                             for part in self.inputs(self.before(x)).split(WIDTH, dim=2))
        if cache is not None:
            keys, values = cache
            keys.index_copy_(2, position, key)
            values.index_copy_(2, position, value)
            seen = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        else:
            seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.outputs(seen.transpose(1, 2).reshape(batch, tokens, WIDTH))
        return x + self.down(F.gelu(self.up(self.between(x))))


class Gpt(torch.nn.Module):
    """A GPT: the logits of the next token."""

    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(VOCABULARY, WIDTH), torch.nn.Embedding(LONGEST, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.last, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids, caches=None, position=None):
        places = torch.arange(ids.shape[1], device=ids.device) if position is None else position
        mask = None if position is None else (torch.arange(LONGEST, device=ids.device) <= position).view(1, 1, 1, LONGEST)
        x = self.words(ids) + self.places(places)
        for number, block in enumerate(self.blocks):
            x = block(x, caches[number] if caches else None, position, mask)
        return self.head(self.last(x[:, -1:]))

    def caches(self):
        """Buffers for the keys and values of one sequence, for each layer."""
        example = self.head.weight
        return [tuple(torch.zeros(1, HEADS, LONGEST, WIDTH // HEADS, device=example.device, dtype=example.dtype)
                      for _ in range(2)) for _ in range(LAYERS)]


def make_model(name):
    """The model on the GPU in evaluation mode, and a fixed input in pinned memory. Batches are computed in half precision."""
    torch.manual_seed(7)
    if name in RESNETS:
        layers, batch = RESNETS[name]
        model, inputs = resnet(layers), torch.randn(batch, 3, 224, 224)
        if batch > 1:
            model, inputs = model.half(), inputs.half()
    elif name in BERTS:
        batch = BERTS[name]
        model, inputs = Hidden(), torch.randint(0, 30000, (batch, 128))
        if batch > 1:
            model = model.half()
    elif name == "bertlarge":
        model = Hidden(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096).half()
        inputs = torch.randint(0, 30000, (8, 128))
    elif name in ("gpt", "prefill"):
        model = Gpt().half()
        inputs = torch.randint(0, VOCABULARY, (1, 1) if name == "gpt" else PREFILL)
    else:
        raise SystemExit(f"no model {name}")
    return model.cuda().eval(), inputs.pin_memory()
