"""The DFlash drafter: layers over a block of masks, which read the target's features as keys and
values and draft all of the block in one pass."""

import argparse
import dataclasses
import pathlib
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import torch
from torch import nn
from torch.nn import functional

from ..drafter import Drafts, Inputs, Kind, Tables, every_place, rows_of_step
from ..failure import Failure
from ..layers import (Attention, DecoderLayer, LayerShape, RMSNorm, load_parameters, randomize,
                      shape_in)
from ..options import above_zero, add_layer_options, layer_shape
from ..packing import Batch
from ..safetensors import SafetensorsFile
from ..target import Target, read_config
from ..vocabulary import counts


PLACES = 512  # Places of a packed row at which blocks begin, where nothing else is said.


@dataclasses.dataclass(frozen=True)
class DflashConfig:
    """`block_size` tokens of which the first is known; `layers` are those that taps enter,
    `target_layers` how many the target has; `tokens` are bos_token_id and eos_token_id, where it
    has them."""

    shape: LayerShape
    num_hidden_layers: int
    block_size: int
    mask_token_id: int
    vocab_size: int
    max_position_embeddings: int
    layers: Sequence[int]
    target_layers: int
    tokens: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def as_json(self) -> Dict[str, Any]:
        """The config.json in the dialect in which DFlash's authors publish drafters."""
        return {"architectures": ["DFlashDraftModel"], "model_type": "qwen3",
                "hidden_act": "silu", "attention_bias": False, "attention_dropout": 0.0,
                "tie_word_embeddings": False, "torch_dtype": "bfloat16",
                **dataclasses.asdict(self.shape), "rope_scaling": None, "sliding_window": None,
                "use_sliding_window": False, "num_hidden_layers": self.num_hidden_layers,
                "layer_types": ["full_attention"] * self.num_hidden_layers,
                "block_size": self.block_size, "vocab_size": self.vocab_size,
                "max_position_embeddings": self.max_position_embeddings,
                "num_target_layers": self.target_layers,
                # Layers by their outputs: what enters layer k is what k - 1 gives.
                "dflash_config": {"mask_token_id": self.mask_token_id,
                                  "target_layer_ids": [layer - 1 for layer in self.layers]},
                **self.tokens}


@dataclasses.dataclass(frozen=True)
class Blocks:
    """Where blocks lie: each slot's root has position [rows, slots]; slots see the features at
    `visible` [rows, slots, length] of the row, whose positions are `featured` [rows, length]."""

    position: torch.Tensor
    visible: torch.Tensor
    featured: torch.Tensor
    size: int

    def of_queries(self) -> torch.Tensor:
        """Positions [rows, slots * size]."""
        within = torch.arange(self.size, device=self.position.device)
        return (self.position[..., None] + within).flatten(1)


def attend_in_blocks(attention: Attention, x: torch.Tensor, features: torch.Tensor,
                     blocks: Blocks) -> torch.Tensor:
    """x [rows, slots * size, hidden]: each place sees all of its own block and the features
    [rows, length, hidden] before it."""
    position = blocks.of_queries()

    def in_blocks(heads: torch.Tensor) -> torch.Tensor:
        return heads.unflatten(2, (-1, blocks.size))

    query = attention.queries(x, position)
    key, value = in_blocks(attention.keys(x, position)), in_blocks(attention.values(x))
    before = in_blocks(query @ attention.keys(features, blocks.featured).transpose(-1, -2))
    before = before.masked_fill(~blocks.visible[:, None, :, None], float("-inf"))
    own = in_blocks(query) @ key.transpose(-1, -2)
    weights = attention.weights(torch.cat([before, own], -1))
    length = features.shape[1]
    read = weights[..., :length].flatten(2, 3) @ attention.values(features)
    return attention.output(read + (weights[..., length:] @ value).flatten(2, 3))


class Dflash(nn.Module):
    """Its parameters have the names of the published files; head and embeddings are the target's.
    Blocks begin at `places` random slots of a row, or at all where it has fewer."""

    def __init__(self, config: DflashConfig, places: int):
        super().__init__()
        shape = config.shape
        self.config, self.ids = config, torch.arange(config.vocab_size)
        self._places = places
        self.fc = nn.Linear(len(config.layers) * shape.hidden_size, shape.hidden_size, bias=False)
        self.hidden_norm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.layers = nn.ModuleList(DecoderLayer(shape, normed=True)
                                    for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        entered = ", ".join(str(layer) for layer in config.layers)
        self.summary = (f"It reads the residual stream that enters layers {entered} of the target "
                        f"and drafts {config.block_size - 1} tokens in one pass.")

    def _drawn(self, batch: Batch, generator: torch.Generator) -> torch.Tensor:
        """Slots [rows, slots] from which a token can be drafted, where a row has enough of them."""
        valid = rows_of_step(batch, every_place(batch), 0).valid
        drawn = torch.rand(valid.shape, generator=generator).to(valid.device).masked_fill(
            ~valid, -1)
        most = int(valid.sum(1).max().clamp(min=1, max=self._places))
        return drawn.topk(most, 1).indices.sort(1).values

    def states(self, batch: Batch, tables: Tables,
               generator: torch.Generator) -> Tuple[torch.Tensor, torch.Tensor]:
        """Where blocks begin, and what the head reads of their places, [rows, slots, size, hidden].
        Of a block's tokens the first is the one behind a slot, the others are masks."""
        place, size = self._drawn(batch, generator), self.config.block_size
        length = batch.tokens.shape[1]
        same = batch.segment.gather(1, place)[..., None] == batch.segment[:, None]
        here = torch.arange(length, device=place.device) <= place[..., None]
        blocks = Blocks(batch.position.gather(1, place) + 1, same & here, batch.position, size)
        tokens = place.new_full((*place.shape, size), self.config.mask_token_id)
        tokens[..., 0] = batch.tokens.gather(1, (place + 1).clamp(max=length - 1))
        x = functional.embedding(tokens.flatten(1), tables.embeddings)
        features = self.hidden_norm(self.fc(batch.taps))
        for layer in self.layers:
            x = layer(x, lambda normed, attention=layer.self_attn: attend_in_blocks(
                attention, normed, features, blocks))
        return place, self.norm(x).unflatten(1, (-1, size))

    def drafts(self, batch: Batch, tables: Tables, count: int,
               generator: torch.Generator) -> Drafts:
        place, states = self.states(batch, tables, generator)
        log_q = torch.log_softmax((states[..., 1:count + 1, :] @ tables.output.T).float(), -1)
        return Drafts(place, list(log_q.unbind(2)))

    def tensors(self) -> Dict[str, torch.Tensor]:
        return dict(self.state_dict())

    def config_json(self) -> Dict[str, Any]:
        return self.config.as_json()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_layer_options(parser)
    parser.add_argument("--layers", type=above_zero, default=5, help="of the drafter")
    parser.add_argument("--places", type=above_zero, default=PLACES,
                        help="random places of a packed row at which blocks begin")
    parser.add_argument("--mask-token", type=int, default=None,
                        help="the target's token that stands for one to be drafted; by default "
                        "one that answers do not have")


def config_for(inputs: Inputs, block_size: int) -> DflashConfig:
    """Raises a Failure where the data or options do not do."""
    target, arguments = inputs.target, inputs.arguments
    if not inputs.layers:
        raise Failure(f"{arguments.data[0]} has no taps, which are what DFlash reads")
    if min(inputs.layers) < 1:
        raise Failure(f"{arguments.data[0]} has taps of what enters layer 0; DFlash reads what "
                      "layers give, so captures are of layers from 1 on")
    mask = arguments.mask_token
    if mask is None:
        # The highest of the rarest tokens: most likely one that texts never have.
        times = counts(inputs.sequences, target.vocabulary)
        mask = int((times == times.min()).nonzero().max())
    if not 0 <= mask < target.vocabulary:
        raise Failure(f"--mask-token {mask} is no token of {target.name}, which has "
                      f"{target.vocabulary}")
    return DflashConfig(
        layer_shape(target, arguments, target.hidden), arguments.layers, block_size, mask,
        target.vocabulary, target.config.get("max_position_embeddings") or arguments.context,
        tuple(inputs.layers), target.config["num_hidden_layers"], target.begin_and_end())


def _make(inputs: Inputs) -> Dflash:
    """Random, but that its last norm is the one that the target's output matrix is used to."""
    target, arguments = inputs.target, inputs.arguments
    network = Dflash(config_for(inputs, arguments.steps_ahead + 1), arguments.places)
    randomize(network, arguments.seed)
    with torch.no_grad():
        network.norm.weight.copy_(target.final_norm.float())
    return network


def config_in(config: Mapping[str, Any], target: Target) -> Optional[DflashConfig]:
    """The configuration that a config.json has, which this package may have written for the target;
    None where it lacks some of it."""
    own, shape = config.get("dflash_config"), shape_in(config)
    if not isinstance(own, dict) or shape is None or shape.hidden_size != target.hidden:
        return None
    numbers = [config.get(name) for name in ("num_hidden_layers", "block_size",
                                             "max_position_embeddings", "num_target_layers")]
    numbers.append(own.get("mask_token_id"))
    layers = own.get("target_layer_ids")
    if not all(isinstance(number, int) for number in numbers) or not isinstance(layers, list):
        return None
    count, size, positions, target_layers, mask = numbers
    return DflashConfig(shape, count, size, mask, target.vocabulary, positions,
                        tuple(layer + 1 for layer in layers), target_layers,
                        target.begin_and_end())


def _read(folder: pathlib.Path, target: Target) -> Optional[Dflash]:
    config = read_config(folder / "config.json")
    own = config_in(config, target)
    if own is None or own.as_json() != config:
        return None
    network = Dflash(own, PLACES)
    load_parameters(network, SafetensorsFile(folder / "model.safetensors"))
    return network


KIND = Kind("dflash", "layers that draft a block of tokens in one pass", _make, add_arguments,
            defaults={"steps_ahead": 15, "decay": 0.87}, read=_read,
            most=lambda drafter: drafter.config.block_size - 1)
