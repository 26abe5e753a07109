"""Medusa's heads over a target that is not trained (Medusa-1): each drafts one further token."""

import pathlib
from typing import Any, Dict, Optional

import torch
from torch import nn
from torch.nn import functional

from ..drafter import Drafts, Inputs, Kind, Tables, every_place
from ..heads import heads_of_folder
from ..layers import load_parameters
from ..packing import Batch
from ..safetensors import SafetensorsFile
from ..target import Target


class Block(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.linear = nn.Linear(hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + functional.silu(self.linear(x))


class Medusa(nn.Module):
    """Its parameters have the names of the published files. Each head begins as the target's: its
    block adds nothing yet."""

    summary = ("It reads the target's state after the final norm and drafts all tokens at once, "
               "none of which knows the others.")

    def __init__(self, target: Target, heads: int):
        super().__init__()
        hidden, vocabulary = target.hidden, target.vocabulary
        self.ids = torch.arange(vocabulary)
        self._config = {"architectures": ["MedusaModel"], "model_type": "medusa",
                        "base_model_name_or_path": target.name, "medusa_num_heads": heads,
                        "medusa_num_layers": 1, "hidden_size": hidden, "vocab_size": vocabulary,
                        "torch_dtype": "bfloat16"}
        self.heads = nn.ModuleList(
            nn.Sequential(Block(hidden), nn.Linear(hidden, vocabulary, bias=False))
            for _ in range(heads))
        with torch.no_grad():
            for block, head in self.heads:
                block.linear.weight.zero_()
                block.linear.bias.zero_()
                head.weight.copy_(target.output.float())

    def drafts(self, batch: Batch, _tables: Tables, count: int,
               _generator: torch.Generator) -> Drafts:
        return Drafts(every_place(batch),
                      [torch.log_softmax(head(batch.final).float(), -1)
                       for head in self.heads[:count]])

    def tensors(self) -> Dict[str, torch.Tensor]:
        return dict(self.heads.state_dict())

    def config_json(self) -> Dict[str, Any]:
        return self._config


def _make(inputs: Inputs) -> Medusa:
    return Medusa(inputs.target, inputs.arguments.steps_ahead)


def _read(folder: pathlib.Path, target: Target) -> Optional[Medusa]:
    network = heads_of_folder(folder, "medusa_num_heads", lambda count: Medusa(target, count))
    if network is not None:
        load_parameters(network.heads, SafetensorsFile(folder / "model.safetensors"))
    return network


KIND = Kind("medusa", "heads that each draft one further token", _make,
            defaults={"steps_ahead": 4, "rate": 1e-3}, read=_read,
            most=lambda drafter: len(drafter.heads))
