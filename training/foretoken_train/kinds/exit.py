"""A layer behind the target's first ones, at which the target can end (Kangaroo's adapter)."""

import argparse
from typing import Any, Dict, List

import torch
from torch import nn

from ..drafter import Drafts, Inputs, Kind, Tables
from ..failure import Failure
from ..layers import (Chains, DecoderLayer, LayerShape, RMSNorm, attend_in_chains, before,
                      load_parameters)
from ..options import above_zero
from ..packing import Batch
from ..safetensors import SafetensorsFile
from ..target import Target
from .draft_model import shifted

# Families whose layers are a DecoderLayer, and whether queries and keys are normed.
_FAMILIES = {"llama": False, "mistral": False, "qwen3": True}


class Exit(nn.Module):
    """`layer` is the target's layer number `exit` and `norm` its last norm, both trained to follow
    each other; embeddings, the layers before and the head are the target's."""

    summary = ("It is the target's first layers, one that was trained to stand behind them, and "
               "the target's head, and drafts a chain, token by token.")

    def __init__(self, shape: LayerShape, normed: bool, exit_: int, taps: slice, tokens: int):
        """`taps` of a batch's are the states that enter the layer."""
        super().__init__()
        self.exit, self.ids = exit_, torch.arange(tokens)
        self._shape, self._taps = shape, taps
        self.layer = DecoderLayer(shape, normed)
        self.norm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)

    def drafts(self, batch: Batch, tables: Tables, count: int,
               _generator: torch.Generator) -> Drafts:
        chains = Chains(before(batch.segment))
        state = self.layer(batch.taps[..., self._taps].float(), lambda x: attend_in_chains(
            self.layer.self_attn, x, batch.position, chains))
        logits = self.norm(state) @ tables.output.float().T
        return shifted(batch, torch.log_softmax(logits, -1), count)

    def name_of(self, parameter: str) -> str:
        """The name of a parameter among the target's tensors."""
        inside = "layer."
        if parameter.startswith(inside):
            return f"model.layers.{self.exit}.{parameter[len(inside):]}"
        return f"model.{parameter}"

    def tensors(self) -> Dict[str, torch.Tensor]:
        return {self.name_of(name): value for name, value in self.state_dict().items()}

    def config_json(self) -> Dict[str, Any]:
        return {"architectures": ["TrainedExit"], "model_type": "exit", "exit": self.exit,
                "hidden_size": self._shape.hidden_size}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--exit", type=above_zero, default=None,
                        help="layers of the target that are run before; their states must be among "
                             "the data (capture --layers), and are by default the only ones")
    parser.add_argument("--evaluate-ahead", type=above_zero, default=7,
                        help="tokens of a draft that are evaluated; training is the same for all")


def _shape_of(target: Target) -> LayerShape:
    config, where = target.config, target.folder / "config.json"
    for field in ("attention_bias", "mlp_bias", "rope_scaling", "use_sliding_window",
                  "sliding_window"):
        if config.get(field):
            raise Failure(f"{where}: layers with '{field}' cannot be trained")
    rotation = config.get("rope_parameters") or {}
    if rotation.get("rope_type", "default") != "default":
        raise Failure(f"{where}: layers with scaled rotation cannot be trained")
    heads = config["num_attention_heads"]
    return LayerShape(
        target.hidden, config["intermediate_size"], heads,
        config.get("num_key_value_heads") or heads,
        config.get("head_dim") or target.hidden // heads, config.get("rms_norm_eps", 1e-6),
        rotation.get("rope_theta") or config.get("rope_theta", 10000.0))


def _exit_of(inputs: Inputs) -> int:
    layers, given = list(inputs.layers), inputs.arguments.exit
    if given is None and len(layers) == 1:
        given = layers[0]
    if given not in layers:
        asked = "--exit" if given is None else f"--exit {given}"
        raise Failure(f"{asked} is not one of the layers {layers} that the data have the states "
                      "of: capture them with `foretoken capture --layers E`")
    most = inputs.target.config["num_hidden_layers"] - 2
    if given > most:
        raise Failure(f"--exit {given}: with a layer of its own an exit saves something behind "
                      f"{most} layers of {inputs.target.name} at most")
    return given


def _weights_of(target: Target, names: List[str]) -> SafetensorsFile:
    """The target's file that has them all."""
    for path in sorted(target.folder.glob("*.safetensors")):
        file = SafetensorsFile(path)
        if all(name in file for name in names):
            return file
    raise Failure(f"{target.folder} has no *.safetensors file with all of {names[0]} ... "
                  f"{names[-1]}")


def _make(inputs: Inputs) -> Exit:
    """It begins as the target's layer in that place, with the target's last norm."""
    target = inputs.target
    family = target.config["model_type"]
    if family not in _FAMILIES:
        raise Failure(f"exits are trained for {', '.join(_FAMILIES)}, and {target.name} is of the "
                      f"family '{family}'")
    exit_ = _exit_of(inputs)
    first = list(inputs.layers).index(exit_) * target.hidden
    network = Exit(_shape_of(target), _FAMILIES[family], exit_,
                   slice(first, first + target.hidden), target.vocabulary)
    names = [network.name_of(name) for name, _ in network.layer.named_parameters(prefix="layer")]
    load_parameters(network.layer, _weights_of(target, names),
                    lambda name: network.name_of(f"layer.{name}"))
    with torch.no_grad():
        network.norm.weight.copy_(target.final_norm.float())
    return network


KIND = Kind("exit", "a layer behind the target's first ones, at which it can end", _make,
            _add_arguments, lambda arguments: arguments.evaluate_ahead, {"steps_ahead": 1},
            engine_draft=lambda folder: f"self:exit={folder}")
