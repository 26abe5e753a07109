"""The EAGLE-3 drafter: one decoder layer over a token's embedding and the target's features."""

import argparse
import dataclasses
import pathlib
from typing import Any, Dict, Mapping, Optional, Sequence

import torch
from torch import nn

from ..drafter import Drafts, Inputs, Kind, Tables, embedded, every_place
from ..failure import Failure
from ..layers import (MLP, Attention, Chains, LayerShape, RMSNorm, attend_in_chains, before,
                      load_parameters, randomize, shape_in)
from ..options import above_zero, add_layer_options, layer_shape
from ..packing import Batch
from ..safetensors import SafetensorsFile
from ..target import Target, read_config
from ..vocabulary import frequent_tokens, membership, offsets


@dataclasses.dataclass(frozen=True)
class Eagle3Config:
    """`layers` are those that taps enter; `tokens` are bos_token_id and eos_token_id, where the
    target has them."""

    shape: LayerShape
    vocab_size: int
    draft_vocab_size: int
    max_position_embeddings: int
    layers: Sequence[int]
    tokens: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def as_json(self) -> Dict[str, Any]:
        """The config.json in the dialect in which EAGLE-3's authors publish drafters."""
        return {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama",
                "num_hidden_layers": 1, "hidden_act": "silu", "attention_bias": False,
                "mlp_bias": False, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
                "target_hidden_size": self.shape.hidden_size, **dataclasses.asdict(self.shape),
                "vocab_size": self.vocab_size, "draft_vocab_size": self.draft_vocab_size,
                "max_position_embeddings": self.max_position_embeddings,
                # Layers by their outputs: what enters layer k is what k - 1 gives.
                "eagle_config": {
                    "eagle_aux_hidden_state_layer_ids": [layer - 1 for layer in self.layers],
                    "use_aux_hidden_state": True},
                **self.tokens}


class MidLayer(nn.Module):
    def __init__(self, shape: LayerShape):
        super().__init__()
        hidden, eps = shape.hidden_size, shape.rms_norm_eps
        self.hidden_norm = RMSNorm(hidden, eps)
        self.input_layernorm = RMSNorm(hidden, eps)
        self.post_attention_layernorm = RMSNorm(hidden, eps)
        self.self_attn = Attention(shape, 2 * hidden)
        self.mlp = MLP(hidden, shape.intermediate_size)

    def forward(self, embedded: torch.Tensor, feature: torch.Tensor, position: torch.Tensor,
                chains: Chains) -> torch.Tensor:
        both = torch.cat([self.input_layernorm(embedded), self.hidden_norm(feature)], -1)
        feature = feature + attend_in_chains(self.self_attn, both, position, chains)
        return feature + self.mlp(self.post_attention_layernorm(feature))


class Eagle3(nn.Module):
    """Its parameters have the names of the published files. `ids` are the target's of the tokens
    that it drafts."""

    def __init__(self, config: Eagle3Config, ids: torch.Tensor):
        super().__init__()
        hidden = config.shape.hidden_size
        self.config, self.ids = config, ids
        self.fc = nn.Linear(len(config.layers) * hidden, hidden, bias=False)
        self.midlayer = MidLayer(config.shape)
        self.norm = RMSNorm(hidden, config.shape.rms_norm_eps)
        self.lm_head = nn.Linear(hidden, config.draft_vocab_size, bias=False)
        entered = ", ".join(str(layer) for layer in config.layers)
        self.summary = ("It reads the residual stream that enters layers "
                        f"{entered} of the target and drafts a chain, token by token.")

    def drafts(self, batch: Batch, tables: Tables, count: int,
               _generator: torch.Generator) -> Drafts:
        """Chains that start at every slot at once (training-time test): a step's features are
        those that the step before has made."""
        place = every_place(batch)
        chains = Chains(before(batch.segment))
        feature = self.fc(batch.taps)
        log_q = []
        for step in range(count):
            feature = self.midlayer(embedded(batch, tables, place, 1 + step), feature,
                                    batch.position + step, chains)
            log_q.append(torch.log_softmax(self.lm_head(self.norm(feature)).float(), -1))
        return Drafts(place, log_q)

    def tensors(self) -> Dict[str, torch.Tensor]:
        """d2t and t2d only where the draft's vocabulary is a part."""
        tensors = dict(self.state_dict())
        if len(self.ids) < self.config.vocab_size:
            tensors["d2t"] = offsets(self.ids)
            tensors["t2d"] = membership(self.ids, self.config.vocab_size)
        return tensors

    def config_json(self) -> Dict[str, Any]:
        return self.config.as_json()


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_layer_options(parser)
    parser.add_argument("--draft-vocab", type=above_zero, default=32000,
                        help="tokens that can be proposed, the most frequent in answers")


def _make(inputs: Inputs) -> Eagle3:
    """Random but for the head, which begins as the target's rows."""
    target, arguments = inputs.target, inputs.arguments
    if len(inputs.layers) != 3:
        raise Failure(f"{arguments.data[0]} has the taps of {len(inputs.layers)} layers; EAGLE-3 "
                      "reads 3")
    ids = frequent_tokens(inputs.sequences, min(arguments.draft_vocab, target.vocabulary),
                          target.vocabulary)
    network = Eagle3(Eagle3Config(
        layer_shape(target, arguments, target.hidden), target.vocabulary, len(ids),
        target.config.get("max_position_embeddings") or arguments.context, tuple(inputs.layers),
        target.begin_and_end()), ids)
    randomize(network, arguments.seed)
    with torch.no_grad():
        network.lm_head.weight.copy_(target.output[ids].float())
    return network


def _read(folder: pathlib.Path, target: Target) -> Optional[Eagle3]:
    config = read_config(folder / "config.json")
    eagle = config.get("eagle_config")
    shape = shape_in(config)
    if config.get("architectures") != ["LlamaForCausalLMEagle3"] or not isinstance(eagle, dict):
        return None
    if shape is None or shape.hidden_size != target.hidden:
        return None
    tensors = SafetensorsFile(folder / "model.safetensors")
    ids = torch.arange(target.vocabulary)
    if "d2t" in tensors:
        offset = tensors.tensor("d2t")
        ids = torch.arange(len(offset)) + offset
    network = Eagle3(Eagle3Config(
        shape, target.vocabulary, len(ids), config.get("max_position_embeddings", 0),
        [layer + 1 for layer in eagle.get("eagle_aux_hidden_state_layer_ids", [])],
        target.begin_and_end()), ids)
    if network.config_json() != config:
        return None
    load_parameters(network, tensors)
    return network


KIND = Kind("eagle3", "one layer over features of three depths", _make, _add_arguments, read=_read)
