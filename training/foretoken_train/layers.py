"""What the layers of drafters are made of; parameters have the names of published files."""

import dataclasses
from typing import Any, Callable, List, Mapping, Optional

import torch
from torch import nn
from torch.nn import functional

from .failure import Failure
from .safetensors import SafetensorsFile


@dataclasses.dataclass(frozen=True)
class LayerShape:
    """The sizes of a decoder layer, as a config.json calls them."""

    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0


def shape_in(config: Mapping[str, Any]) -> Optional[LayerShape]:
    """The shape that a config.json has; None where it lacks some of it."""
    names = [field.name for field in dataclasses.fields(LayerShape)]
    if not all(isinstance(config.get(name), (int, float)) for name in names):
        return None
    return LayerShape(**{name: config[name] for name in names})


def load_parameters(network: nn.Module, tensors: SafetensorsFile,
                    name_of: Callable[[str], str] = lambda name: name) -> None:
    """Gives the parameters what a file has under the names that `name_of` makes of theirs."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            tensor = tensors.tensor(name_of(name))
            if tensor.shape != parameter.shape:
                raise Failure(f"{tensors.path}: tensor '{name_of(name)}' is {list(tensor.shape)} "
                              f"where {list(parameter.shape)} was expected")
            parameter.copy_(tensor.float())


def randomize(network: nn.Module, seed: int) -> None:
    """Draws matrices such that outputs are as large as inputs."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, parameter.shape[1] ** -0.5, generator=generator)


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


class Attention(nn.Module):
    """What attention multiplies with, over inputs of `width` numbers. With `normed` each head's
    queries and keys are normed, as Qwen3 does."""

    def __init__(self, shape: LayerShape, width: int, normed: bool = False):
        super().__init__()
        self.shape = shape
        heads, shared = shape.num_attention_heads, shape.num_key_value_heads
        self.q_proj = nn.Linear(width, heads * shape.head_dim, bias=False)
        self.k_proj = nn.Linear(width, shared * shape.head_dim, bias=False)
        self.v_proj = nn.Linear(width, shared * shape.head_dim, bias=False)
        self.o_proj = nn.Linear(heads * shape.head_dim, shape.hidden_size, bias=False)
        if normed:
            self.q_norm = RMSNorm(shape.head_dim, shape.rms_norm_eps)
            self.k_norm = RMSNorm(shape.head_dim, shape.rms_norm_eps)
        self._normed = normed

    def _heads(self, values: torch.Tensor) -> torch.Tensor:
        return values.view(*values.shape[:2], -1, self.shape.head_dim)

    def queries(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        """[rows, heads, length, head_dim] of x [rows, length, width] at position [rows, length]."""
        heads = self._heads(self.q_proj(x))
        heads = self.q_norm(heads) if self._normed else heads
        return _rotated(heads.transpose(1, 2), position, self.shape.rope_theta)

    def _for_every_head(self, heads: torch.Tensor) -> torch.Tensor:
        return heads.repeat_interleave(
            self.shape.num_attention_heads // self.shape.num_key_value_heads, 1)

    def keys(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        """As queries; heads that share keys have the same."""
        heads = self._heads(self.k_proj(x))
        heads = self.k_norm(heads) if self._normed else heads
        return self._for_every_head(
            _rotated(heads.transpose(1, 2), position, self.shape.rope_theta))

    def values(self, x: torch.Tensor) -> torch.Tensor:
        return self._for_every_head(self._heads(self.v_proj(x)).transpose(1, 2))

    def weights(self, scores: torch.Tensor) -> torch.Tensor:
        """The weights of products [..., keys] of a query with keys, which are -inf where it does not
        see one."""
        return torch.softmax(scores.float() * self.shape.head_dim ** -0.5, -1).to(scores.dtype)

    def output(self, read: torch.Tensor) -> torch.Tensor:
        """[rows, length, hidden] of what heads have read, [rows, heads, length, head_dim]."""
        return self.o_proj(read.transpose(1, 2).flatten(2))


@dataclasses.dataclass
class Chains:
    """Keys and values [rows, heads, length, head_dim] of the steps so far of chains that begin at
    every slot, the first one over the target's features, and which of its slots each slot sees
    [rows, 1, length, length]."""

    visible: torch.Tensor
    keys: List[torch.Tensor] = dataclasses.field(default_factory=list)
    values: List[torch.Tensor] = dataclasses.field(default_factory=list)


def before(segment: torch.Tensor) -> torch.Tensor:
    """Which slots of its own piece each slot sees, itself among them: [rows, 1, length, length]
    of segment [rows, length]."""
    place = torch.arange(segment.shape[1], device=segment.device)
    same = segment[:, :, None] == segment[:, None, :]
    return (same & (place[:, None] >= place[None, :]))[:, None]


def attend_in_chains(attention: Attention, x: torch.Tensor, position: torch.Tensor,
                     chains: Chains) -> torch.Tensor:
    """The next step. A slot of step i sees the first step's slots up to its own, and its own slot
    of the steps 1 to i: what a chain that starts at this slot would see."""
    query = attention.queries(x, position)
    chains.keys.append(attention.keys(x, position))
    chains.values.append(attention.values(x))
    scores = (query @ chains.keys[0].transpose(-1, -2)).masked_fill(~chains.visible, float("-inf"))
    own = [(query * key).sum(-1, keepdim=True) for key in chains.keys[1:]]
    weights = attention.weights(torch.cat([scores, *own], -1))
    length = x.shape[1]
    read = weights[..., :length] @ chains.values[0]
    for step, value in enumerate(chains.values[1:]):
        read = read + weights[..., length + step, None] * value
    return attention.output(read)


class DecoderLayer(nn.Module):
    """An ordinary layer; `attend` is what makes attention of its normed input."""

    def __init__(self, shape: LayerShape, normed: bool):
        super().__init__()
        self.input_layernorm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.self_attn = Attention(shape, shape.hidden_size, normed)
        self.post_attention_layernorm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.mlp = MLP(shape.hidden_size, shape.intermediate_size)

    def forward(self, x: torch.Tensor,
                attend: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        x = x + attend(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))
