"""`python -m foretoken_train eagle3`."""

import argparse
import dataclasses
import hashlib
import pathlib
from typing import List, Tuple

import torch

from .capture import Capture, CapturedSequence, load_capture
from .eagle3 import Eagle3, Eagle3Config
from .evaluate import Evaluation, evaluate
from .failure import Failure
from .losses import LOSSES
from .packing import pieces_of
from .publish import Account, publish_eagle3
from .target import Target, load_target
from .teacher import Teacher
from .train import Settings, Training
from .vocabulary import frequent_tokens, membership


def _above_zero(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    path = pathlib.Path
    parser.add_argument("--target", type=path, required=True, help="the target's model folder")
    parser.add_argument("--data", type=path, nargs="+", required=True,
                        help="captures of its answers: files, or folders of them")
    parser.add_argument("--out", type=path, required=True, help="the drafter's folder")
    parser.add_argument("--resume", action="store_true", help="go on from what is saved in --out")
    parser.add_argument("--device", default="cpu", help="of torch, such as cuda:0")
    parser.add_argument("--steps", type=_above_zero, default=2000, help="batches to train on")
    parser.add_argument("--save-every", type=_above_zero, default=200, help="steps")
    parser.add_argument("--hold-back", type=_above_zero, default=None,
                        help="answers to evaluate with; a twentieth by default")
    parser.add_argument("--draft-vocab", type=_above_zero, default=32000,
                        help="tokens that can be proposed, the most frequent in answers")
    parser.add_argument("--intermediate", type=_above_zero, default=None,
                        help="width of the feed-forward layer; the target's by default")
    parser.add_argument("--steps-ahead", type=_above_zero, default=7, help="tokens of a chain")
    parser.add_argument("--context", type=_above_zero, default=2048, help="tokens of a packed row")
    parser.add_argument("--rows", type=_above_zero, default=1, help="packed rows of a batch")
    parser.add_argument("--loss", choices=sorted(LOSSES), default="lk")
    parser.add_argument("--decay", type=float, default=0.8, help="of the loss, a step ahead")
    parser.add_argument("--rate", type=float, default=5e-5, help="learning rate")
    parser.add_argument("--warmup", type=int, default=100, help="steps")
    parser.add_argument("--clip", type=float, default=0.5, help="greatest norm of the gradient")
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32",
                        help="of products; weights are trained in float32")


def _settings(arguments: argparse.Namespace) -> Settings:
    return Settings(**{field.name: getattr(arguments, field.name)
                       for field in dataclasses.fields(Settings)})


def _split(capture: Capture, held: int, seed: int
           ) -> Tuple[List[CapturedSequence], List[CapturedSequence]]:
    """What is trained on, and what is held back."""
    sequences = capture.sequences
    if held >= len(sequences):
        raise Failure(f"--hold-back {held} leaves nothing of {len(sequences)} answers")
    order = torch.randperm(len(sequences), generator=torch.Generator().manual_seed(seed)).tolist()
    return ([sequences[number] for number in order[held:]],
            [sequences[number] for number in order[:held]])


def _new_network(target: Target, ids: torch.Tensor, capture: Capture,
                 arguments: argparse.Namespace) -> Eagle3:
    """Random but for the head, which begins as the target's rows."""
    of = target.config
    heads = of["num_attention_heads"]
    network = Eagle3(Eagle3Config(
        hidden_size=target.hidden, num_attention_heads=heads,
        intermediate_size=arguments.intermediate or of["intermediate_size"],
        num_key_value_heads=of.get("num_key_value_heads") or heads,
        head_dim=of.get("head_dim") or target.hidden // heads, vocab_size=target.vocabulary,
        draft_vocab_size=len(ids), taps=len(capture.layers),
        max_position_embeddings=of.get("max_position_embeddings") or arguments.context,
        rms_norm_eps=of.get("rms_norm_eps", 1e-5)))
    generator = torch.Generator().manual_seed(arguments.seed)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, parameter.shape[1] ** -0.5, generator=generator)
        network.lm_head.weight.copy_(target.output[ids].float())
    return network


def _answer_tokens(sequences: List[CapturedSequence]) -> torch.Tensor:
    return torch.cat([sequence.tokens[sequence.answer.bool()] for sequence in sequences]).long()


def _identity(training: List[CapturedSequence], ids: torch.Tensor, network: Eagle3) -> dict:
    """What a checkpoint cannot be resumed without: the same answers, tokens and shapes."""
    answers = hashlib.sha256()
    for sequence in training:
        answers.update(sequence.tokens.numpy().tobytes())
    return {"data": answers.hexdigest()[:16],
            "draft vocabulary": hashlib.sha256(ids.numpy().tobytes()).hexdigest()[:16],
            "network": str(network.config)}


def run(arguments: argparse.Namespace) -> None:
    settings = _settings(arguments)
    target = load_target(arguments.target)
    capture = load_capture(arguments.data, target)
    if len(capture.layers) != 3:
        raise Failure(f"{arguments.data[0]} has the taps of {len(capture.layers)} layers; EAGLE-3 "
                      "reads 3")
    held = arguments.hold_back or max(1, len(capture.sequences) // 20)
    training_part, held_part = _split(capture, held, settings.seed)
    for part, name in ((training_part, "trained on"), (held_part, "held back")):
        if not pieces_of(part, settings.context):
            raise Failure(f"of the data, what is {name} has no answer from which a token can be "
                          "drafted: an answer follows two tokens")
    ids = frequent_tokens(training_part, min(arguments.draft_vocab, target.vocabulary),
                          target.vocabulary)
    device = torch.device(arguments.device)
    network = _new_network(target, ids, capture, arguments).to(device)
    teacher = Teacher(target, ids, device)
    training = Training(network, teacher, settings, _identity(training_part, ids, network))
    arguments.out.mkdir(parents=True, exist_ok=True)
    checkpoint = arguments.out / "training.checkpoint"
    if arguments.resume:
        training.resume(checkpoint)
    elif checkpoint.exists():
        raise Failure(f"{checkpoint} is of an earlier training: --resume goes on with it; remove "
                      "it to begin anew")
    training.run(training_part, settings.steps, checkpoint, arguments.save_every)
    training.save(checkpoint)
    figures = evaluate(network, teacher, held_part, settings.context, settings.steps_ahead)
    covered = membership(ids, target.vocabulary)[_answer_tokens(held_part)].float().mean()
    publish_eagle3(arguments.out, target, network, ids,
                   ",".join(str(layer) for layer in capture.layers), settings,
                   Account(len(training_part), len(held_part), len(_answer_tokens(training_part)),
                           float(covered)), figures)
    checkpoint.unlink()  # What it was for is done.
    print(f"{arguments.out}: {Evaluation.length(figures.greedy):.2f} tokens a pass at T = 0, "
          f"{Evaluation.length(figures.sampled):.2f} at T = 1")
