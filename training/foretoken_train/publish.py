"""A trained drafter as a folder that others read."""

import dataclasses
import json
import pathlib
from typing import Optional, Sequence

import torch

from .drafter import Drafter, Kind
from .engine import EngineFigures, measure
from .evaluate import Evaluation
from .safetensors import write_safetensors, write_whole
from .target import Target
from .train import Settings


@dataclasses.dataclass(frozen=True)
class Account:
    """What the model card tells of the data."""

    sequences: int
    held_back: int
    answer_tokens: int
    covered: float  # The share of the held-back answers' tokens that the draft can propose.


def _card(kind: Kind, target: Target, drafter: Drafter, settings: Settings, account: Account,
          figures: Evaluation, in_engine: Sequence[EngineFigures], name: str) -> str:
    count = sum(value.numel() for value in drafter.tensors().values()
                if value.is_floating_point())
    lines = [
        f"# {name}", "",
        f"A drafter of the kind {kind.name} of {count / 1e6:.2f}M parameters for {target.name}, "
        f"trained by `foretoken_train`. {drafter.summary} It proposes "
        f"{len(drafter.ids)} of the target's {target.vocabulary} tokens, "
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
    if in_engine:
        lines += ["", "In the engine (`bench`, mode sd, its built-in prompts):", "",
                  "| Prompts | T | tokens a round | by position |", "|---|---|---|---|"]
        lines += [f"| {each.prompts} | {each.temperature} | {each.length:.2f} | " +
                  ", ".join(f"{rate:.3f}" for rate in each.rates) + " |" for each in in_engine]
    return "\n".join(lines) + "\n"


def write_drafter(folder: pathlib.Path, drafter: Drafter) -> None:
    """Writes model.safetensors, its numbers in BF16, and config.json."""
    write_safetensors(folder / "model.safetensors",
                      {name: value.to(torch.bfloat16) if value.is_floating_point() else value
                       for name, value in drafter.tensors().items()}, {"format": "pt"})
    text = json.dumps(drafter.config_json(), indent=2) + "\n"
    write_whole(folder / "config.json", lambda file: file.write(text.encode()))


def publish(folder: pathlib.Path, kind: Kind, target: Target, drafter: Drafter,
            settings: Settings, account: Account, figures: Evaluation,
            engine: Optional[pathlib.Path] = None) -> None:
    """Writes the drafter, and README.md, its card, with what the program `engine` makes of it."""
    write_drafter(folder, drafter)
    kind.write_more(drafter, folder)
    in_engine = [] if engine is None else measure(engine, target.folder,
                                                  kind.engine_draft(folder),
                                                  kind.engine_options(folder))
    card = _card(kind, target, drafter, settings, account, figures, in_engine,
                 folder.resolve().name)
    write_whole(folder / "README.md", lambda file: file.write(card.encode()))
