"""Trains the head of judge decoding (Bachmann et al., 2025; labels as AutoJudge's): how right a
token is, by the target's state at the row that has it as its input."""

import argparse
import dataclasses
import json
import math
import pathlib
import shutil
from typing import Iterator, List, Sequence, Tuple

import torch
from torch.nn import functional

from .capture import Capture
from .failure import Failure
from .labels import LabelledText, read_labels
from .program import Program
from .safetensors import write_safetensors, write_whole
from .target import Target, load_target

_TOKENS_AT_ONCE = 200_000  # Whose states lie on the disk together.


@dataclasses.dataclass(frozen=True)
class Examples:
    """states [n, hidden] in float32, right [n], and which group each is of."""

    states: torch.Tensor
    right: torch.Tensor
    groups: List[str]

    def part(self, held: Sequence[bool], wanted: bool) -> Tuple[torch.Tensor, torch.Tensor]:
        mask = torch.tensor([each == wanted for each in held])
        return self.states[mask], self.right[mask]


@dataclasses.dataclass(frozen=True)
class Head:
    """Approves where sigmoid(weight . state + bias) > 0.5. weight [hidden], bias [1]."""

    weight: torch.Tensor
    bias: torch.Tensor

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        return states.double() @ self.weight.double() + self.bias.double()


def _pieces(texts: Sequence[LabelledText]) -> Iterator[List[LabelledText]]:
    piece: List[LabelledText] = []
    for text in texts:
        if piece and sum(len(each.tokens) for each in piece) + len(text.tokens) > _TOKENS_AT_ONCE:
            yield piece
            piece = []
        piece.append(text)
    yield piece


def _read(texts: Sequence[LabelledText], target: Target, program: Program,
          work: pathlib.Path) -> Capture:
    shutil.rmtree(work, ignore_errors=True)  # A training that was killed may have left it.
    return program.read_states(target, [text.tokens for text in texts], work)


def read_examples(texts: Sequence[LabelledText], target: Target, program: Program,
                  work: pathlib.Path) -> Tuple[Examples, str]:
    """The states of what is labelled, and the fingerprint of the target's tokenizer. `work` is a
    folder for files that are gone afterwards."""
    states, right, groups, tokenizer = [], [], [], ""
    for piece in _pieces(texts):
        try:
            capture = _read(piece, target, program, work)
            for text, read in zip(piece, capture.sequences):
                if read.tokens.tolist() != text.tokens:
                    raise Failure(f"the program has read other tokens than those of {text.group}")
                states.append(read.final[torch.tensor(text.positions)].float())
                right += text.right
                groups += [text.group] * len(text.positions)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        tokenizer = capture.tokenizer
    return Examples(torch.cat(states), torch.tensor(right), groups), tokenizer


def hold_back(groups: Sequence[str], share: float, seed: int) -> List[bool]:
    """Whether each example is held back: about that share of the groups, whole."""
    names = sorted(set(groups))
    order = torch.randperm(len(names), generator=torch.Generator().manual_seed(seed)).tolist()
    held = {names[number] for number in order[:max(1, round(share * len(names)))]}
    return [group in held for group in groups]


def fit(states: torch.Tensor, right: torch.Tensor, l2: float) -> Head:
    """Logistic regression, right and wrong tokens counting the same in all; `l2` is of the weights
    of states that are scaled to mean 0 and deviation 1."""
    mean, deviation = states.double().mean(0), states.double().std(0).clamp(min=1e-6)
    scaled, truth = (states.double() - mean) / deviation, right.double()
    share = truth.mean()
    balance = torch.where(right, 0.5 / share, 0.5 / (1 - share))
    weight = torch.zeros(states.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = functional.binary_cross_entropy_with_logits(scaled @ weight + bias, truth, balance)
        value = value + 0.5 * l2 * weight.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    plain = weight.detach() / deviation
    return Head(plain.float(), (bias.detach() - plain @ mean).float()[None])


def with_border(head: Head, states: torch.Tensor, right: torch.Tensor, recall: float) -> Head:
    """The same head, its bias such that approval 0.5 refuses that share of the wrong tokens, at
    least, and not many more."""
    wrong = head.logits(states[~right]).sort().values
    border = float(wrong[max(0, math.ceil(recall * len(wrong)) - 1)])
    bias = head.bias.double() - border
    # A little less, so that no rounding lets the token at the border pass.
    return Head(head.weight, (bias - 1e-6 * bias.abs().clamp(min=1)).float())


def roc_area(scores: torch.Tensor, right: torch.Tensor) -> float:
    """The chance that a right token has a higher score than a wrong one; equal ones count half."""
    wrong = scores[~right].sort().values
    below = torch.searchsorted(wrong, scores[right])
    up_to = torch.searchsorted(wrong, scores[right], right=True)
    return float((below + up_to).double().mean() / (2 * len(wrong)))


def shares(scores: torch.Tensor, right: torch.Tensor, approval: float) -> Tuple[float, float]:
    """What is refused of the wrong tokens, and accepted of the right ones."""
    accepted = torch.sigmoid(scores) > approval
    return float((~accepted[~right]).double().mean()), float(accepted[right].double().mean())


def _card(name: str, target: Target, arguments: argparse.Namespace, counts: Sequence[str],
          scores: torch.Tensor, right: torch.Tensor) -> str:
    lines = [
        f"# {name}", "",
        f"A head for judge decoding with {target.name}, trained by `foretoken_train`: from the "
        "target's state after the final norm at the row of a token itself it says how right the "
        "token is. `foretoken run --lossy judge --lossy-judge FOLDER` accepts proposed tokens with "
        "it, which gives up that the text is the target's own.", "",
        f"- Data: {counts[0]} trained on, {counts[1]} held back.",
        f"- Settings: recall {arguments.recall}, l2 {arguments.l2}, seed {arguments.seed}.",
        f"- Area under the ROC curve, held back: {roc_area(scores, right):.3f}.", "",
        "The border, approval 0.5, is where the recall is met on what is held back; "
        "`--lossy-approval` moves it:", "",
        "| approval | wrong tokens refused | right tokens accepted |", "|---|---|---|"]
    for approval in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        refused, accepted = shares(scores, right, approval)
        lines.append(f"| {approval} | {refused:.1%} | {accepted:.1%} |")
    return "\n".join(lines) + "\n"


def _counted(right: torch.Tensor) -> str:
    return f"{len(right)} tokens, {int((~right).sum())} of them wrong"


def _check_kinds(right: torch.Tensor, what: str) -> None:
    if not bool(right.any()) or bool(right.all()):
        raise Failure(f"of the labelled tokens, what is {what} has {_counted(right)}: a head needs "
                      "right ones and wrong ones")


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    path = pathlib.Path
    parser.add_argument("--target", type=path, required=True, help="the target's model folder")
    parser.add_argument("--data", type=path, nargs="+", required=True,
                        help="labelled tokens: JSON lines, as judge-data writes them")
    parser.add_argument("--out", type=path, required=True, help="the head's folder")
    parser.add_argument("--program", type=path, required=True,
                        help="the program `foretoken`, which reads the target's states")
    parser.add_argument("--recall", type=_share, default=0.9,
                        help="share of the wrong tokens that is to be refused")
    parser.add_argument("--hold-back", type=_share, default=0.2,
                        help="share of the texts that the border is put by, and the card written")
    parser.add_argument("--l2", type=float, default=0.1, help="of the weights")
    parser.add_argument("--seed", type=int, default=0, help="which texts are held back")


def run(arguments: argparse.Namespace) -> None:
    target = load_target(arguments.target)
    texts = read_labels(arguments.data)
    examples, tokenizer = read_examples(texts, target, Program(arguments.program),
                                        arguments.out / "unfinished")
    held = hold_back(examples.groups, arguments.hold_back, arguments.seed)
    states, right = examples.part(held, False)
    held_states, held_right = examples.part(held, True)
    _check_kinds(right, "trained on")
    _check_kinds(held_right, "held back")
    head = with_border(fit(states, right, arguments.l2), held_states, held_right, arguments.recall)
    write_safetensors(arguments.out / "model.safetensors",
                      {"judge.weight": head.weight, "judge.bias": head.bias}, {"format": "pt"})
    config = {"model_type": "judge", "hidden_size": target.hidden, "tokenizer": tokenizer,
              "base_model_name_or_path": target.name, "recall": arguments.recall}
    text = json.dumps(config, indent=2) + "\n"
    write_whole(arguments.out / "config.json", lambda file: file.write(text.encode()))
    scores = head.logits(held_states)
    card = _card(arguments.out.resolve().name, target, arguments,
                 (_counted(right), _counted(held_right)), scores, held_right)
    write_whole(arguments.out / "README.md", lambda file: file.write(card.encode()))
    refused, accepted = shares(scores, held_right, 0.5)
    print(f"{arguments.out}: of what is held back {refused:.1%} of the wrong tokens are refused, "
          f"{accepted:.1%} of the right ones accepted (ROC area "
          f"{roc_area(scores, held_right):.3f})")
