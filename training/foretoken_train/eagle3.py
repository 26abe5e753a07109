"""The EAGLE-3 drafter: one decoder layer over a token's embedding and the target's features."""

import dataclasses
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import nn
from torch.nn import functional

from .packing import Batch


@dataclasses.dataclass(frozen=True)
class Eagle3Config:
    """Shapes of a drafter, as its config.json calls them."""

    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    draft_vocab_size: int
    max_position_embeddings: int
    taps: int
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0

    def as_json(self) -> Dict[str, Any]:
        """Of the dialect in which EAGLE-3's authors publish drafters."""
        fields = dataclasses.asdict(self)
        del fields["taps"]
        return {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama",
                "num_hidden_layers": 1, "hidden_act": "silu", "attention_bias": False,
                "mlp_bias": False, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
                "target_hidden_size": self.hidden_size, **fields}


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * scaled


class MLP(nn.Module):
    def __init__(self, hidden: int, inner: int):
        super().__init__()
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


def _rotated(x: torch.Tensor, position: torch.Tensor, theta: float) -> torch.Tensor:
    """x [rows, heads, length, head_dim] turned by position [rows, length]; halves are the pairs."""
    half = x.shape[-1] // 2
    rates = theta ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angle = position[:, None, :, None].float() * rates
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    low, high = x[..., :half], x[..., half:]
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


@dataclasses.dataclass
class Steps:
    """Keys and values [rows, heads, length, head_dim] of the steps so far, the first one over the
    target's features, and which of its slots each slot sees [rows, 1, length, length]."""

    visible: torch.Tensor
    keys: List[torch.Tensor] = dataclasses.field(default_factory=list)
    values: List[torch.Tensor] = dataclasses.field(default_factory=list)


class Attention(nn.Module):
    """A slot of step i sees the first step's slots up to its own, and its own slot of the steps
    1 to i: what a chain that starts at this slot would see."""

    def __init__(self, config: Eagle3Config):
        super().__init__()
        self.config = config
        hidden, width = config.hidden_size, config.head_dim
        self.q_proj = nn.Linear(2 * hidden, config.num_attention_heads * width, bias=False)
        self.k_proj = nn.Linear(2 * hidden, config.num_key_value_heads * width, bias=False)
        self.v_proj = nn.Linear(2 * hidden, config.num_key_value_heads * width, bias=False)
        self.o_proj = nn.Linear(config.num_attention_heads * width, hidden, bias=False)

    def forward(self, x: torch.Tensor, position: torch.Tensor, steps: Steps) -> torch.Tensor:
        config = self.config
        rows, length = x.shape[:2]

        def heads(values: torch.Tensor) -> torch.Tensor:
            return values.view(rows, length, -1, config.head_dim).transpose(1, 2)

        shared = config.num_attention_heads // config.num_key_value_heads
        query = _rotated(heads(self.q_proj(x)), position, config.rope_theta)
        key = _rotated(heads(self.k_proj(x)), position, config.rope_theta)
        steps.keys.append(key.repeat_interleave(shared, 1))
        steps.values.append(heads(self.v_proj(x)).repeat_interleave(shared, 1))

        scores = query @ steps.keys[0].transpose(-1, -2)
        scores = scores.float().masked_fill(~steps.visible, float("-inf"))
        own = [(query * key).sum(-1, keepdim=True).float() for key in steps.keys[1:]]
        weights = torch.softmax(torch.cat([scores, *own], -1) * config.head_dim ** -0.5, -1)
        weights = weights.to(query.dtype)
        read = weights[..., :length] @ steps.values[0]
        for number, value in enumerate(steps.values[1:]):
            read = read + weights[..., length + number, None] * value
        return self.o_proj(read.transpose(1, 2).reshape(rows, length, -1))


class MidLayer(nn.Module):
    def __init__(self, config: Eagle3Config):
        super().__init__()
        hidden, eps = config.hidden_size, config.rms_norm_eps
        self.hidden_norm = RMSNorm(hidden, eps)
        self.input_layernorm = RMSNorm(hidden, eps)
        self.post_attention_layernorm = RMSNorm(hidden, eps)
        self.self_attn = Attention(config)
        self.mlp = MLP(hidden, config.intermediate_size)

    def forward(self, embedded: torch.Tensor, feature: torch.Tensor, position: torch.Tensor,
                steps: Steps) -> torch.Tensor:
        both = torch.cat([self.input_layernorm(embedded), self.hidden_norm(feature)], -1)
        feature = feature + self.self_attn(both, position, steps)
        return feature + self.mlp(self.post_attention_layernorm(feature))


class Eagle3(nn.Module):
    """Its parameters have the names of the published files."""

    def __init__(self, config: Eagle3Config):
        super().__init__()
        self.config = config
        self.fc = nn.Linear(config.taps * config.hidden_size, config.hidden_size, bias=False)
        self.midlayer = MidLayer(config)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, config.draft_vocab_size, bias=False)

    def step(self, embedded: torch.Tensor, feature: torch.Tensor, position: torch.Tensor,
             steps: Steps) -> Tuple[torch.Tensor, torch.Tensor]:
        """The features [rows, length, hidden] of the next step, and this one's log q
        [rows, length, draft vocabulary]."""
        feature = self.midlayer(embedded, feature, position, steps)
        return feature, torch.log_softmax(self.lm_head(self.norm(feature)).float(), -1)


@dataclasses.dataclass(frozen=True)
class Rows:
    """What one step drafts in a batch, [rows, length] each: `source` is the row of the target
    whose distribution is drafted, `token` the answer's token there, `valid` whether the slot's
    piece has both and the target produced the token."""

    source: torch.Tensor
    token: torch.Tensor
    valid: torch.Tensor


def rows_of_step(batch: Batch, step: int) -> Rows:
    """Slot t holds the token behind it and its own feature, so step i drafts the token at t+2+i,
    which the target chooses at row t+1+i."""
    length = batch.tokens.shape[1]
    place = torch.arange(length, device=batch.tokens.device)
    last = length - 1
    source = (place + 1 + step).clamp(max=last)
    drafted = (place + 2 + step).clamp(max=last)
    inside = (place + 2 + step <= last) & (batch.segment >= 0)
    valid = inside & (batch.segment[:, drafted] == batch.segment) & batch.answer[:, drafted]
    return Rows(source, batch.tokens[:, drafted], valid)


def unroll(network: Eagle3, embeddings: torch.Tensor, batch: Batch, count: int,
           dtype: Optional[torch.dtype] = None):
    """Yields log q [rows, length, draft vocabulary] of each of `count` steps of chains that start
    at every slot at once (training-time test): a step's features are those that the step before
    has made, its tokens are the answer's."""
    length = batch.tokens.shape[1]
    last = length - 1
    place = torch.arange(length, device=batch.tokens.device)
    same = batch.segment[:, :, None] == batch.segment[:, None, :]
    steps = Steps((same & (place[:, None] >= place[None, :]))[:, None])
    device = batch.tokens.device.type
    with torch.autocast(device, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
        feature = network.fc(batch.taps)
        for step in range(count):
            tokens = batch.tokens[:, (place + 1 + step).clamp(max=last)]
            embedded = functional.embedding(tokens, embeddings)
            feature, log_q = network.step(embedded, feature, batch.position + step, steps)
            yield log_q
