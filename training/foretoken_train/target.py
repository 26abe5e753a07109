"""What training needs of a target: its settings, its embeddings and its output matrix."""

import dataclasses
import json
import pathlib
from typing import Any, Dict, List

import torch

from .failure import Failure
from .safetensors import SafetensorsFile

# Families whose logits are the output matrix times the state after the final norm, and whose
# layers read the rows of the embeddings as they are: nothing is scaled, capped or added.
_FAMILIES = ("llama", "mistral", "mixtral", "olmo2", "olmoe", "phi3", "qwen2", "qwen2_moe",
             "qwen3", "qwen3_moe", "smollm3")


@dataclasses.dataclass(frozen=True)
class Target:
    """`embeddings` and `output` are [vocabulary, hidden], `final_norm` [hidden] is the weight of
    the norm before the latter; `config` is what config.json says."""

    folder: pathlib.Path
    config: Dict[str, Any]
    embeddings: torch.Tensor
    output: torch.Tensor
    final_norm: torch.Tensor

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def hidden(self) -> int:
        return self.embeddings.shape[1]

    @property
    def vocabulary(self) -> int:
        return self.embeddings.shape[0]

    def begin_and_end(self) -> Dict[str, Any]:
        """bos_token_id and eos_token_id, where config.json has them."""
        return {token: self.config[token] for token in ("bos_token_id", "eos_token_id")
                if token in self.config}


def read_config(path: pathlib.Path) -> Dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}; --target is a folder of Hugging "
                      "Face's form") from error
    except ValueError as error:
        raise Failure(f"{path} is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise Failure(f"{path} is not a JSON object")
    return config


def load_target(folder: pathlib.Path) -> Target:
    """Reads a model folder of Hugging Face's form, whose weights may be in several files."""
    config = read_config(folder / "config.json")
    family = config.get("model_type")
    if family not in _FAMILIES:
        raise Failure(f"{folder} is of the family '{family}'; drafters are trained for "
                      f"{', '.join(_FAMILIES)}")
    for field in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
                  "intermediate_size"):
        if not isinstance(config.get(field), int) or config[field] < 1:
            raise Failure(f"{folder / 'config.json'}: '{field}' is not a number above 0")
    files = [SafetensorsFile(path) for path in sorted(folder.glob("*.safetensors"))]

    hidden = config["hidden_size"]
    table = [config["vocab_size"], hidden]

    def weight(name: str, shape: List[int]) -> torch.Tensor:
        for file in files:
            if name in file:
                tensor = file.tensor(name)
                if list(tensor.shape) != shape:
                    raise Failure(f"{file.path}: tensor '{name}' is {list(tensor.shape)} where "
                                  f"config.json says {shape}")
                return tensor
        raise Failure(f"{folder} has no tensor '{name}' in any *.safetensors file")

    embeddings = weight("model.embed_tokens.weight", table)
    output = embeddings if config.get("tie_word_embeddings") else weight("lm_head.weight", table)
    return Target(folder, config, embeddings, output, weight("model.norm.weight", [hidden]))
