"""Hydra's heads: each drafts one further token, and reads those that are drafted before it."""

import pathlib
from typing import Any, Dict, Optional

import torch
from torch import nn
from torch.nn import functional

from ..drafter import Drafts, Inputs, Kind, Tables, embedded, every_place
from ..heads import heads_of_folder
from ..layers import load_parameters
from ..packing import Batch
from ..safetensors import SafetensorsFile
from ..target import Target


class Block(nn.Module):
    """Over a state and the embeddings of `tokens` tokens, one behind the other. It begins as what
    leaves the state as it is."""

    def __init__(self, hidden: int, tokens: int):
        super().__init__()
        self.linear = nn.Linear((1 + tokens) * hidden, hidden)
        self.res_connection = nn.Linear((1 + tokens) * hidden, hidden)
        with torch.no_grad():
            for part in (self.linear, self.res_connection):
                part.weight.zero_()
                part.bias.zero_()
            self.res_connection.weight[:, :hidden] = torch.eye(hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.res_connection(x) + functional.silu(self.linear(x))


class Hydra(nn.Module):
    """Its parameters have the names of the published files; output matrices begin as the
    target's."""

    summary = ("It reads the target's state after the final norm and drafts a chain, of which each "
               "token has a head of its own that reads the tokens before.")

    def __init__(self, target: Target, heads: int):
        super().__init__()
        hidden, vocabulary = target.hidden, target.vocabulary
        self.ids = torch.arange(vocabulary)
        self._config = {"architectures": ["HydraModel"], "model_type": "hydra",
                        "base_model_name_or_path": target.name, "hydra_num_heads": heads,
                        "hydra_num_layers": 1, "hydra_head_arch": "mlp", "grounded_heads": True,
                        "hidden_state_offset": 0, "hidden_size": hidden, "vocab_size": vocabulary,
                        "torch_dtype": "bfloat16"}
        self.hydra_mlp = nn.ModuleList(nn.Sequential(Block(hidden, 1 + head))
                                       for head in range(heads))
        self.hydra_lm_head = nn.ModuleList(nn.Linear(hidden, vocabulary) for _ in range(heads))
        with torch.no_grad():
            for head in self.hydra_lm_head:
                head.weight.copy_(target.output.float())
                head.bias.zero_()

    def drafts(self, batch: Batch, tables: Tables, count: int,
               _generator: torch.Generator) -> Drafts:
        place = every_place(batch)
        read = [batch.final]
        log_q = []
        for step, (block, head) in enumerate(zip(self.hydra_mlp[:count], self.hydra_lm_head)):
            read.append(embedded(batch, tables, place, 1 + step))
            log_q.append(torch.log_softmax(head(block(torch.cat(read, -1))).float(), -1))
        return Drafts(place, log_q)

    def tensors(self) -> Dict[str, torch.Tensor]:
        return dict(self.state_dict())

    def config_json(self) -> Dict[str, Any]:
        return self._config


def _make(inputs: Inputs) -> Hydra:
    return Hydra(inputs.target, inputs.arguments.steps_ahead)


def _read(folder: pathlib.Path, target: Target) -> Optional[Hydra]:
    network = heads_of_folder(folder, "hydra_num_heads", lambda count: Hydra(target, count))
    if network is not None:
        load_parameters(network, SafetensorsFile(folder / "model.safetensors"))
    return network


KIND = Kind("hydra", "heads that each draft one further token and read those before it",
            _make, defaults={"steps_ahead": 4, "rate": 5e-4}, read=_read,
            most=lambda drafter: len(drafter.hydra_mlp))
