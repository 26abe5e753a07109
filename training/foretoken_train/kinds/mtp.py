"""A layer that guesses further tokens, as speculators publishes those of Qwen3 by themselves."""

import argparse
import dataclasses
import pathlib
from typing import Any, Dict, Mapping, Optional

import torch
from torch import nn

from ..drafter import Drafts, Inputs, Kind, Tables, embedded, every_place
from ..layers import (Chains, DecoderLayer, LayerShape, RMSNorm, attend_in_chains, before,
                      load_parameters, randomize, shape_in)
from ..options import add_layer_options, layer_shape
from ..packing import Batch
from ..safetensors import SafetensorsFile
from ..target import Target, read_config


@dataclasses.dataclass(frozen=True)
class MtpConfig:
    """`layers` of the target; `tokens` are bos_token_id and eos_token_id, where it has them."""

    shape: LayerShape
    vocab_size: int
    max_position_embeddings: int
    layers: int
    tokens: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def as_json(self) -> Dict[str, Any]:
        shape = dataclasses.asdict(self.shape)
        rotation = {"rope_theta": shape.pop("rope_theta"), "rope_type": "default"}
        layer = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
                 "hidden_act": "silu", "attention_bias": False, "tie_word_embeddings": False,
                 **shape, "rope_parameters": rotation, "vocab_size": self.vocab_size,
                 "max_position_embeddings": self.max_position_embeddings,
                 "num_hidden_layers": self.layers, **self.tokens}
        return {"architectures": ["MTPDraftModel"], "dtype": "bfloat16",
                "speculators_model_type": "mtp", "speculators_version": "0.9.0",
                "speculators_config": None, "num_nextn_predict_layers": 1,
                "tie_word_embeddings": False, "transformer_layer_config": layer}


def _published(name: str) -> str:
    inside = "layer."
    return "mtp_layers.0." + (name[len(inside):] if name.startswith(inside) else name)


class Mtp(nn.Module):
    """Its head and its embeddings are the target's."""

    summary = ("It reads the target's state after the final norm and drafts a chain, token by "
               "token, of which each step reads the state that the one before has made.")

    def __init__(self, config: MtpConfig):
        super().__init__()
        hidden, eps = config.shape.hidden_size, config.shape.rms_norm_eps
        self.config, self.ids = config, torch.arange(config.vocab_size)
        self.token_layernorm = RMSNorm(hidden, eps)
        self.hidden_layernorm = RMSNorm(hidden, eps)
        self.input_proj = nn.Linear(2 * hidden, hidden, bias=False)
        self.layer = DecoderLayer(config.shape, normed=True)
        self.final_layernorm = RMSNorm(hidden, eps)

    def drafts(self, batch: Batch, tables: Tables, count: int,
               _generator: torch.Generator) -> Drafts:
        place = every_place(batch)
        chains = Chains(before(batch.segment))
        state = batch.final
        log_q = []
        for step in range(count):
            token = self.token_layernorm(embedded(batch, tables, place, 1 + step))
            joined = self.input_proj(torch.cat([token, self.hidden_layernorm(state)], -1))
            position = batch.position + step
            state = self.final_layernorm(self.layer(joined, lambda x: attend_in_chains(
                self.layer.self_attn, x, position, chains)))
            log_q.append(torch.log_softmax((state @ tables.output.T).float(), -1))
        return Drafts(place, log_q)

    def tensors(self) -> Dict[str, torch.Tensor]:
        return {_published(name): value for name, value in self.state_dict().items()}

    def config_json(self) -> Dict[str, Any]:
        return self.config.as_json()


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_layer_options(parser)


def _make(inputs: Inputs) -> Mtp:
    """Random, but that its last norm is the one that the target's output matrix is used to."""
    target, arguments = inputs.target, inputs.arguments
    network = Mtp(MtpConfig(
        layer_shape(target, arguments, target.hidden), target.vocabulary,
        target.config.get("max_position_embeddings") or arguments.context,
        target.config["num_hidden_layers"], target.begin_and_end()))
    randomize(network, arguments.seed)
    with torch.no_grad():
        network.final_layernorm.weight.copy_(target.final_norm.float())
    return network


def _read(folder: pathlib.Path, target: Target) -> Optional[Mtp]:
    config = read_config(folder / "config.json")
    layer = config.get("transformer_layer_config")
    if config.get("speculators_model_type") != "mtp" or not isinstance(layer, dict):
        return None
    shape = shape_in({**layer, **(layer.get("rope_parameters") or {})})
    if shape is None or shape.hidden_size != target.hidden:
        return None
    network = Mtp(MtpConfig(shape, target.vocabulary, layer.get("max_position_embeddings", 0),
                            target.config["num_hidden_layers"], target.begin_and_end()))
    if network.config_json() != config:
        return None
    load_parameters(network, SafetensorsFile(folder / "model.safetensors"), _published)
    return network


KIND = Kind("mtp", "one layer over the state after the final norm, used again for every token",
            _make, _add_arguments, defaults={"steps_ahead": 3, "decay": 0.6}, read=_read)
