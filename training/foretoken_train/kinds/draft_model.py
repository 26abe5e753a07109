"""A small model of its own that drafts for the target: a Llama or a Qwen3 without biases."""

import argparse
import dataclasses
import pathlib
import shutil
from typing import Any, Dict, Mapping, Optional

import torch
from torch import nn

from ..drafter import Drafts, Inputs, Kind, Tables, every_place
from ..failure import Failure
from ..layers import (Chains, DecoderLayer, LayerShape, RMSNorm, attend_in_chains, before,
                      randomize)
from ..options import above_zero, add_layer_options, layer_shape
from ..packing import Batch
from ..safetensors import SafetensorsFile
from ..target import Target, read_config

_FAMILIES = {"llama": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM"}

# What a folder says of its tokens.
_TOKENIZER_FILES = ("tokenizer.model", "tokenizer.json", "tokenizer_config.json", "vocab.json",
                    "merges.txt", "special_tokens_map.json", "added_tokens.json",
                    "generation_config.json", "chat_template.jinja")


@dataclasses.dataclass(frozen=True)
class ModelShape:
    """`tokens` are bos_token_id and eos_token_id, where the target has them."""

    layer: LayerShape
    family: str
    num_hidden_layers: int
    vocab_size: int
    max_position_embeddings: int
    tie_word_embeddings: bool
    tokens: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def as_json(self) -> Dict[str, Any]:
        return {"architectures": [_FAMILIES[self.family]], "model_type": self.family,
                "hidden_act": "silu", "attention_bias": False, "torch_dtype": "bfloat16",
                **dataclasses.asdict(self.layer), "num_hidden_layers": self.num_hidden_layers,
                "vocab_size": self.vocab_size, "tie_word_embeddings": self.tie_word_embeddings,
                "max_position_embeddings": self.max_position_embeddings, **self.tokens}


class Trunk(nn.Module):
    def __init__(self, shape: ModelShape):
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.layer.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(shape.layer, normed=shape.family == "qwen3")
                                    for _ in range(shape.num_hidden_layers))
        self.norm = RMSNorm(shape.layer.hidden_size, shape.layer.rms_norm_eps)

    def forward(self, batch: Batch) -> torch.Tensor:
        """States [rows, length, hidden] after the norm; each piece is a text of its own."""
        x = self.embed_tokens(batch.tokens)
        visible = before(batch.segment)
        for layer in self.layers:
            x = layer(x, lambda normed, attention=layer.self_attn: attend_in_chains(
                attention, normed, batch.position, Chains(visible)))
        return self.norm(x)


def shifted(batch: Batch, log_q: torch.Tensor, count: int) -> Drafts:
    """What a model that reads tokens only drafts from every slot, by its log q [rows, length, n]
    behind each token."""
    place = every_place(batch)
    last = batch.tokens.shape[1] - 1
    return Drafts(place, [log_q[:, (place[0] + 1 + step).clamp(max=last)]
                          for step in range(count)])


class DraftModel(nn.Module):
    """Its parameters have the names of the published files."""

    summary = "It is a model of its own and drafts a chain, token by token."

    def __init__(self, shape: ModelShape, tokenizer: pathlib.Path):
        """`tokenizer` is a folder with the target's."""
        super().__init__()
        self.shape, self.ids = shape, torch.arange(shape.vocab_size)
        self._tokenizer = tokenizer
        self.model = Trunk(shape)
        if not shape.tie_word_embeddings:
            self.lm_head = nn.Linear(shape.layer.hidden_size, shape.vocab_size, bias=False)

    def head(self) -> torch.Tensor:
        tied = self.shape.tie_word_embeddings
        return self.model.embed_tokens.weight if tied else self.lm_head.weight

    def drafts(self, batch: Batch, _tables: Tables, count: int,
               _generator: torch.Generator) -> Drafts:
        logits = self.model(batch) @ self.head().T
        return shifted(batch, torch.log_softmax(logits.float(), -1), count)

    def tensors(self) -> Dict[str, torch.Tensor]:
        return dict(self.state_dict())

    def config_json(self) -> Dict[str, Any]:
        return self.shape.as_json()

    def write_more(self, folder: pathlib.Path) -> None:
        for name in _TOKENIZER_FILES:
            if (self._tokenizer / name).exists():
                shutil.copyfile(self._tokenizer / name, folder / name)


def _shape_of_folder(folder: pathlib.Path, target: Target) -> ModelShape:
    config = read_config(folder / "config.json")
    where = folder / "config.json"
    family = config.get("model_type")
    if family not in _FAMILIES:
        raise Failure(f"{where}: drafts of the family '{family}' cannot be trained; of use are "
                      f"{', '.join(_FAMILIES)}")
    for field in ("attention_bias", "mlp_bias", "rope_scaling", "use_sliding_window"):
        if config.get(field):
            raise Failure(f"{where}: a draft with '{field}' cannot be trained")
    for field in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
                  "intermediate_size"):
        if not isinstance(config.get(field), int) or config[field] < 1:
            raise Failure(f"{where}: '{field}' is not a number above 0")
    if config["vocab_size"] != target.vocabulary:
        raise Failure(f"{where}: has {config['vocab_size']} tokens where {target.name} has "
                      f"{target.vocabulary}; a draft is trained with the target's")
    rotation = config.get("rope_parameters") or {}
    if rotation.get("rope_type", "default") != "default":
        raise Failure(f"{where}: a draft with scaled rotation cannot be trained")
    heads = config["num_attention_heads"]
    layer = LayerShape(
        config["hidden_size"], config["intermediate_size"], heads,
        config.get("num_key_value_heads") or heads,
        config.get("head_dim") or config["hidden_size"] // heads,
        config.get("rms_norm_eps", 1e-6),
        rotation.get("rope_theta") or config.get("rope_theta", 10000.0))
    return ModelShape(layer, family, config["num_hidden_layers"], config["vocab_size"],
                      config.get("max_position_embeddings", 2048),
                      bool(config.get("tie_word_embeddings", False)), target.begin_and_end())


def load_draft_model(folder: pathlib.Path, target: Target) -> DraftModel:
    """Reads a folder of a small model with the target's tokens."""
    model = DraftModel(_shape_of_folder(folder, target), target.folder)
    files = [SafetensorsFile(path) for path in sorted(folder.glob("*.safetensors"))]
    weights = {}
    for name, value in model.state_dict().items():
        file = next((file for file in files if name in file), None)
        if file is None:
            raise Failure(f"{folder} has no tensor '{name}' in any *.safetensors file")
        weights[name] = file.tensor(name).float()
        if weights[name].shape != value.shape:
            raise Failure(f"{file.path}: tensor '{name}' is {list(weights[name].shape)} where "
                          f"config.json says {list(value.shape)}")
    model.load_state_dict(weights)
    return model


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_layer_options(parser)
    parser.add_argument("--hidden", type=above_zero, default=None,
                        help="width of the model; a quarter of the target's by default")
    parser.add_argument("--layers", type=above_zero, default=2)
    parser.add_argument("--begin-with", type=pathlib.Path, default=None,
                        help="a model folder to train further, which decides the shape")
    parser.add_argument("--evaluate-ahead", type=above_zero, default=7,
                        help="tokens of a draft that are evaluated; training is the same for all")


def _make(inputs: Inputs) -> DraftModel:
    target, arguments = inputs.target, inputs.arguments
    if arguments.begin_with:
        return load_draft_model(arguments.begin_with, target)
    hidden = arguments.hidden or max(1, target.hidden // 4)
    model = DraftModel(ModelShape(
        layer_shape(target, arguments, hidden), "llama", arguments.layers, target.vocabulary,
        target.config.get("max_position_embeddings") or arguments.context, True,
        target.begin_and_end()), target.folder)
    randomize(model, arguments.seed)
    return model


def _read(folder: pathlib.Path, target: Target) -> Optional[DraftModel]:
    config = read_config(folder / "config.json")
    other = "draft_vocab_size" in config or "speculators_model_type" in config
    if other or config.get("architectures") not in [[name] for name in _FAMILIES.values()]:
        return None
    return load_draft_model(folder, target)


KIND = Kind("draft-model", "a small model of its own, distilled from the target", _make,
            _add_arguments, lambda arguments: arguments.evaluate_ahead, {"steps_ahead": 1},
            read=_read, write_more=DraftModel.write_more)
