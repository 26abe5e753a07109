"""What every kind of drafter does from its options to its folder."""

import argparse
import dataclasses
import hashlib
import json
import pathlib
from typing import List, Tuple

import torch

from .capture import CapturedSequence, load_capture
from .drafter import Drafter, Inputs, Kind
from .evaluate import Evaluation, evaluate
from .failure import Failure
from .losses import LOSSES, WEIGHTS
from .options import above_zero
from .packing import pieces_of
from .publish import Account, publish
from .target import load_target
from .teacher import Teacher
from .train import Settings, Training
from .vocabulary import membership


def add_arguments(kind: Kind, parser: argparse.ArgumentParser) -> None:
    path = pathlib.Path
    parser.add_argument("--target", type=path, required=True, help="the target's model folder")
    parser.add_argument("--data", type=path, nargs="+", required=True,
                        help="captures of its answers: files, or folders of them")
    parser.add_argument("--out", type=path, required=True, help="the drafter's folder")
    parser.add_argument("--resume", action="store_true", help="go on from what is saved in --out")
    parser.add_argument("--engine", type=path, default=None,
                        help="the program `foretoken`, to measure the drafter with at the end")
    parser.add_argument("--device", default="cpu", help="of torch, such as cuda:0")
    parser.add_argument("--steps", type=above_zero, default=2000, help="batches to train on")
    parser.add_argument("--save-every", type=above_zero, default=200, help="steps")
    parser.add_argument("--hold-back", type=above_zero, default=None,
                        help="answers to evaluate with; a twentieth by default")
    add_training_arguments(parser)
    kind.add_arguments(parser)
    parser.set_defaults(**kind.defaults)


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for all Settings but the steps."""
    parser.add_argument("--steps-ahead", type=above_zero, default=7, help="tokens of a draft")
    parser.add_argument("--context", type=above_zero, default=2048, help="tokens of a packed row")
    parser.add_argument("--rows", type=above_zero, default=1, help="packed rows of a batch")
    parser.add_argument("--loss", choices=sorted(LOSSES), default="lk")
    parser.add_argument("--weights", choices=sorted(WEIGHTS), default="alike",
                        help="of the loss at the tokens of a draft; `pace`: by what the length "
                        "that is accepted gains from each")
    parser.add_argument("--decay", type=float, default=0.8, help="of the loss, a step ahead")
    parser.add_argument("--rate", type=float, default=5e-5, help="learning rate")
    parser.add_argument("--warmup", type=int, default=100, help="steps")
    parser.add_argument("--clip", type=float, default=0.5, help="greatest norm of the gradient")
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32",
                        help="of products; weights are trained in float32")


def settings_of(arguments: argparse.Namespace) -> Settings:
    return Settings(**{field.name: getattr(arguments, field.name)
                       for field in dataclasses.fields(Settings)})


def split(sequences: List[CapturedSequence], held: int, seed: int
          ) -> Tuple[List[CapturedSequence], List[CapturedSequence]]:
    """What is trained on, and what is held back."""
    if held >= len(sequences):
        raise Failure(f"--hold-back {held} leaves nothing of {len(sequences)} answers")
    order = torch.randperm(len(sequences), generator=torch.Generator().manual_seed(seed)).tolist()
    return ([sequences[number] for number in order[held:]],
            [sequences[number] for number in order[:held]])


def answer_tokens(sequences: List[CapturedSequence]) -> torch.Tensor:
    return torch.cat([sequence.tokens[sequence.answer.bool()] for sequence in sequences]).long()


def _identity(training: List[CapturedSequence], drafter: Drafter) -> dict:
    """What a checkpoint cannot be resumed without: the same answers, tokens and shapes."""
    answers = hashlib.sha256()
    for sequence in training:
        answers.update(sequence.tokens.numpy().tobytes())
    return {"data": answers.hexdigest()[:16],
            "draft vocabulary": hashlib.sha256(drafter.ids.numpy().tobytes()).hexdigest()[:16],
            "network": json.dumps(drafter.config_json())}


def run(kind: Kind, arguments: argparse.Namespace) -> None:
    settings = settings_of(arguments)
    target = load_target(arguments.target)
    capture = load_capture(arguments.data, target)
    held = arguments.hold_back or max(1, len(capture.sequences) // 20)
    training_part, held_part = split(capture.sequences, held, settings.seed)
    for part, name in ((training_part, "trained on"), (held_part, "held back")):
        if not pieces_of(part, settings.context):
            raise Failure(f"of the data, what is {name} has no answer from which a token can be "
                          "drafted: an answer follows two tokens")
    device = torch.device(arguments.device)
    drafter = kind.make(Inputs(target, capture.layers, capture.tokenizer, training_part,
                               arguments)).to(device)
    teacher = Teacher(target, drafter.ids, device)
    training = Training(drafter, teacher, settings, _identity(training_part, drafter))
    arguments.out.mkdir(parents=True, exist_ok=True)
    checkpoint = arguments.out / "training.checkpoint"
    if arguments.resume:
        training.resume(checkpoint)
    elif checkpoint.exists():
        raise Failure(f"{checkpoint} is of an earlier training: --resume goes on with it; remove "
                      "it to begin anew")
    training.run(training_part, settings.steps, checkpoint, arguments.save_every)
    training.save(checkpoint)
    figures = evaluate(drafter, teacher, held_part, settings.context, kind.evaluated(arguments))
    covered = membership(drafter.ids, target.vocabulary)[answer_tokens(held_part)].float().mean()
    publish(arguments.out, kind, target, drafter, settings,
            Account(len(training_part), len(held_part), len(answer_tokens(training_part)),
                    float(covered)), figures, arguments.engine)
    checkpoint.unlink()  # What it was for is done.
    print(f"{arguments.out}: {Evaluation.length(figures.greedy):.2f} tokens a pass at T = 0, "
          f"{Evaluation.length(figures.sampled):.2f} at T = 1")
