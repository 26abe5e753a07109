"""The DSpark drafter: DFlash's layers, of whose block every place drafts the token behind it, and
two heads that read the token drafted before: one adds to its logits, one says how likely the
drafted token is to be accepted."""

import argparse
import dataclasses
import pathlib
from typing import Any, Dict, Optional

import torch
from torch import nn

from ..drafter import Drafts, Inputs, Kind, Tables
from ..layers import load_parameters, randomize
from ..options import above_zero
from ..packing import Batch
from ..safetensors import SafetensorsFile
from ..target import Target, read_config
from . import dflash


@dataclasses.dataclass(frozen=True)
class DsparkConfig:
    backbone: dflash.DflashConfig
    markov_rank: int

    def as_json(self) -> Dict[str, Any]:
        """As SpecForge writes it."""
        shape, config = self.backbone.shape, self.backbone.as_json()
        grouped = shape.num_key_value_heads < shape.num_attention_heads
        own = {**config["dflash_config"], "projector_type": "dspark",
               "attention_mode": "gqa" if grouped else "mha", "markov_rank": self.markov_rank,
               "markov_head_type": "vanilla", "confidence_head_alpha": 1.0,
               "enable_confidence_head": True, "confidence_head_with_markov": True}
        return {**config, "architectures": ["DSparkDraftModel"], "dflash_config": own}


class MarkovHead(nn.Module):
    def __init__(self, vocabulary: int, rank: int):
        super().__init__()
        self.markov_w1 = nn.Embedding(vocabulary, rank)
        self.markov_w2 = nn.Linear(rank, vocabulary, bias=False)


class ConfidenceHead(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.proj = nn.Linear(width, 1)


def _published(name: str) -> str:
    """The name of a parameter in files."""
    return name.removeprefix("backbone.")


class Dspark(nn.Module):
    """The heads have the names of the published files, as the backbone's own parameters do."""

    def __init__(self, config: DsparkConfig, places: int):
        super().__init__()
        self.config, self.ids = config, torch.arange(config.backbone.vocab_size)
        self.backbone = dflash.Dflash(config.backbone, places)
        self.markov_head = MarkovHead(config.backbone.vocab_size, config.markov_rank)
        self.confidence_head = ConfidenceHead(
            config.backbone.shape.hidden_size + config.markov_rank)
        entered = ", ".join(str(layer) for layer in config.backbone.layers)
        self.summary = (f"It reads the residual stream that enters layers {entered} of the target "
                        f"and drafts {config.backbone.block_size} tokens in one pass, to each of "
                        "whose logits the token before it adds.")

    def drafts(self, batch: Batch, tables: Tables, count: int,
               generator: torch.Generator) -> Drafts:
        place, states = self.backbone.states(batch, tables, generator)
        last = batch.tokens.shape[1] - 1
        log_q, confidence = [], []
        for step in range(count):
            state = states[..., step, :]
            before = batch.tokens.gather(1, (place + 1 + step).clamp(max=last))
            numbers = self.markov_head.markov_w1(before)
            logits = state @ tables.output.T + self.markov_head.markov_w2(numbers)
            log_q.append(torch.log_softmax(logits.float(), -1))
            read = torch.cat([state, numbers.to(state.dtype)], -1)
            confidence.append(self.confidence_head.proj(read)[..., 0].float())
        return Drafts(place, log_q, confidence)

    def tensors(self) -> Dict[str, torch.Tensor]:
        return {_published(name): value for name, value in self.state_dict().items()}

    def config_json(self) -> Dict[str, Any]:
        return self.config.as_json()


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    dflash.add_arguments(parser)
    parser.add_argument("--markov-rank", type=above_zero, default=256,
                        help="numbers by which the token before adds to logits")


def _make(inputs: Inputs) -> Dspark:
    """Random, but that its last norm is the target's and that tokens begin by adding nothing."""
    arguments, target = inputs.arguments, inputs.target
    config = dflash.config_for(inputs, block_size=arguments.steps_ahead)
    network = Dspark(DsparkConfig(config, arguments.markov_rank), arguments.places)
    randomize(network, arguments.seed)
    with torch.no_grad():
        network.backbone.norm.weight.copy_(target.final_norm.float())
        for part in (network.markov_head.markov_w2.weight, network.confidence_head.proj.weight,
                     network.confidence_head.proj.bias):
            part.zero_()
    return network


def _read(folder: pathlib.Path, target: Target) -> Optional[Dspark]:
    config = read_config(folder / "config.json")
    backbone = dflash.config_in(config, target)
    rank = config.get("dflash_config", {}).get("markov_rank") if backbone else None
    if not isinstance(rank, int) or rank < 1:
        return None
    own = DsparkConfig(backbone, rank)
    if own.as_json() != config:
        return None
    network = Dspark(own, dflash.PLACES)
    load_parameters(network, SafetensorsFile(folder / "model.safetensors"), _published)
    return network


KIND = Kind("dspark", "the same, to whose logits the token before each adds, with a head that says "
            "how likely each is to be accepted", _make, _add_arguments,
            defaults={"steps_ahead": 7, "decay": 0.78, "loss": "l1"}, read=_read,
            most=lambda drafter: drafter.config.backbone.block_size)
