"""A trained drafter as a folder that others read."""

import dataclasses
import json
import pathlib
from typing import Any, Dict, Mapping

import torch

from .eagle3 import Eagle3
from .evaluate import Evaluation
from .safetensors import write_safetensors, write_whole
from .target import Target
from .train import Settings
from .vocabulary import membership, offsets


@dataclasses.dataclass(frozen=True)
class Account:
    """What the model card tells of the data."""

    sequences: int
    held_back: int
    answer_tokens: int
    covered: float  # The share of the held-back answers' tokens that the draft can propose.


def eagle3_tensors(network: Eagle3, ids: torch.Tensor, vocabulary: int) -> Dict[str, torch.Tensor]:
    """The file's tensors; d2t and t2d only where the draft's vocabulary is a part."""
    tensors = {name: value.to(torch.bfloat16) for name, value in network.state_dict().items()}
    if len(ids) < vocabulary:
        tensors["d2t"] = offsets(ids)
        tensors["t2d"] = membership(ids, vocabulary)
    return tensors


def _card(name: str, target: Target, network: Eagle3, layers: str, settings: Settings,
          account: Account, figures: Evaluation) -> str:
    count = sum(value.numel() for value in network.parameters())
    lines = [
        f"# {name}", "",
        f"An EAGLE-3 drafter of {count / 1e6:.2f}M parameters for {target.name}, trained by "
        "`foretoken_train`. It reads the residual stream that enters layers "
        f"{layers} of the target, and proposes "
        f"{network.config.draft_vocab_size} of its {target.vocabulary} tokens, "
        f"{account.covered:.1%} of those in held-back answers.", "",
        f"- Data: {account.sequences} answers of the target, {account.answer_tokens} tokens; "
        f"{account.held_back} more held back.",
        "- Settings: " + ", ".join(f"{key} {value}"
                                   for key, value in dataclasses.asdict(settings).items()) + ".",
        "", f"Acceptance by position where the ones before were accepted, from {figures.slots} "
        "places in the held-back answers, worked out from logits in float32 (a server's figures "
        "differ with its arithmetic, and with how it samples):", "",
        "| T | " + " | ".join(str(i + 1) for i in range(len(figures.greedy))) +
        " | tokens a pass |",
        "|---|" + "---|" * (len(figures.greedy) + 1)]
    for temperature, rates in (("0", figures.greedy), ("1", figures.sampled)):
        lines.append(f"| {temperature} | " + " | ".join(f"{rate:.3f}" for rate in rates) +
                     f" | {Evaluation.length(rates):.2f} |")
    lines += ["", "The line of T = 1 is of rejection sampling, and holds for data that were "
              "sampled at temperature 1."]
    return "\n".join(lines) + "\n"


def published_config(network: Eagle3, layers: str, target: Mapping[str, Any]) -> Dict[str, Any]:
    """The drafter's config.json; `target` is its target's. `layers` are those that taps enter."""
    config = network.config.as_json()
    # Published configs name layers by their outputs: what enters layer k is what k - 1 gives.
    config["eagle_config"] = {
        "eagle_aux_hidden_state_layer_ids": [int(layer) - 1 for layer in layers.split(",")],
        "use_aux_hidden_state": True}
    for token in ("bos_token_id", "eos_token_id"):
        if token in target:
            config[token] = target[token]
    return config


def publish_eagle3(folder: pathlib.Path, target: Target, network: Eagle3, ids: torch.Tensor,
                   layers: str, settings: Settings, account: Account,
                   figures: Evaluation) -> None:
    """Writes model.safetensors, config.json and README.md. `layers` are those that taps enter."""
    config = published_config(network, layers, target.config)
    write_safetensors(folder / "model.safetensors",
                      eagle3_tensors(network, ids, target.vocabulary), {"format": "pt"})
    text = json.dumps(config, indent=2) + "\n"
    write_whole(folder / "config.json", lambda file: file.write(text.encode()))
    card = _card(folder.resolve().name, target, network, layers, settings, account, figures)
    write_whole(folder / "README.md", lambda file: file.write(card.encode()))
