"""Labels for judge decoding without people, after AutoJudge (arXiv 2504.20039): where a draft would
choose another token than the target did, it is put in and the target goes on. AutoJudge searches
from left to right and keeps what it has put in; here each place is tried by itself, all at once."""

import argparse
import dataclasses
import itertools
import json
import pathlib
import re
import shutil
from typing import Dict, List, Optional, Sequence

import torch

from .capture import CapturedSequence, load_capture
from .failure import Failure
from .json_lines import read_lines, write_lines
from .options import above_zero
from .program import Program
from .safetensors import write_whole
from .target import Target, load_target

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the target says greedily: `tokens` with the prompt, which has `prompt` of them, and
    log_p [tokens], the target's log-probability of each, of the first 0."""

    tokens: List[int]
    prompt: int
    log_p: torch.Tensor


@dataclasses.dataclass(frozen=True)
class Place:
    """Where the draft chose `token`, whose log-probability the target has as `log_p`."""

    answer: int
    position: int
    token: int
    log_p: float


@dataclasses.dataclass(frozen=True)
class Continuation:
    """What the target says behind a token that was put in, with its log-probabilities."""

    tokens: List[int]
    log_p: List[float]


def _log_p(model: Target, sequence: CapturedSequence) -> torch.Tensor:
    """[tokens, vocabulary]: what the row of each token says of the next one."""
    return torch.log_softmax(sequence.final.float() @ model.output.float().T, -1)


def answer_of(target: Target, sequence: CapturedSequence) -> Answer:
    tokens = sequence.tokens.long()
    log_p = _log_p(target, sequence)[:-1].gather(1, tokens[1:, None])[:, 0]
    return Answer(tokens.tolist(), int((1 - sequence.answer).sum()),
                  torch.cat([torch.zeros(1), log_p]))


def places_of(number: int, target: Target, draft: Target, read: CapturedSequence,
              drafted: CapturedSequence) -> List[Place]:
    """Where, along an answer that both have read, the draft's likeliest token is another."""
    log_p = _log_p(target, read)
    choices = _log_p(draft, drafted)[:, :target.vocabulary].argmax(-1)
    places = []
    for position in range(1, len(read.tokens)):
        token = int(choices[position - 1])
        if read.answer[position] and token != int(read.tokens[position]):
            places.append(Place(number, position, token, float(log_p[position - 1, token])))
    return places


def last_number(text: str) -> Optional[str]:
    """None where the text has none."""
    found = _NUMBER.findall(text)
    return found[-1].replace(",", "") if found else None


def is_right(answer: Answer, place: Place, continued: Continuation, horizon: int, margin: float
             ) -> bool:
    """Whether the text from the place on is as likely per token as it was, or by no more than
    `margin` less in the logarithm. Both are cut to `horizon` tokens, and to what the answer has
    room for."""
    before = answer.log_p[place.position:][:horizon]
    after = [place.log_p, *continued.log_p][:len(before)]
    return sum(after) / len(after) >= float(before.mean()) - margin


def _ends(model: Target) -> List[int]:
    """The tokens that end a text."""
    token = model.config.get("eos_token_id")
    return token if isinstance(token, list) else [] if token is None else [token]


def _continue(target: Target, answers: Sequence[Answer], places: Sequence[Place],
              arguments: argparse.Namespace, program: Program, work: pathlib.Path
              ) -> List[Continuation]:
    """What the target says behind each place's token; behind one that ends texts nothing."""
    ends = _ends(target)
    going = [number for number, place in enumerate(places) if place.token not in ends]
    lines = work / "places.jsonl"
    write_lines(lines, ({"id": number, "tokens": answers[places[number].answer].tokens[
        :places[number].position] + [places[number].token]} for number in going))
    # What follows the token in a horizon; a last number may stand further behind.
    most = arguments.max_tokens if arguments.result == "number" else max(1, arguments.horizon - 1)
    found: Dict[int, Continuation] = {}
    if going:
        program.run("rollout", "-m", target.folder, "--prompts", lines, "--samples", 1,
                    "--temp", 0, "--max-tokens", min(most, arguments.max_tokens), "--batch",
                    arguments.batch, "--mode", "ar", "-o", work / "continued.jsonl")
        samples = itertools.islice(read_lines(work / "continued.jsonl"), 1, None)
        for _, line in samples:  # Behind the header.
            found[line["prompt"]] = Continuation(line["tokens"], line["logprobs"])
    return [found.get(number, Continuation([], [])) for number in range(len(places))]


def _by_number(target: Target, answers: Sequence[Answer], places: Sequence[Place],
               continued: Sequence[Continuation], program: Program) -> List[Optional[bool]]:
    """Whether the last number of the text stays; None where the unchanged answer has none."""
    texts = [answer.tokens[answer.prompt:] for answer in answers]
    for place, after in zip(places, continued):
        answer = answers[place.answer]
        room = len(answer.tokens) - place.position - 1
        texts.append(answer.tokens[answer.prompt:place.position] + [place.token] +
                     after.tokens[:max(room, 0)])
    numbers = [last_number(text) for text in program.texts_of(target, texts)]
    found: List[Optional[bool]] = []
    for place, number in zip(places, numbers[len(answers):]):
        of_answer = numbers[place.answer]
        found.append(None if of_answer is None else number == of_answer)
    return found


def label(answers: Sequence[Answer], places: Sequence[Place],
          continued: Sequence[Continuation], same_number: Sequence[Optional[bool]], horizon: int,
          margin: float) -> List[dict]:
    """A line for each place (labels.py)."""
    lines = []
    for place, after, same in zip(places, continued, same_number):
        answer = answers[place.answer]
        right = is_right(answer, place, after, horizon, margin) if same is None else same
        lines.append({"tokens": answer.tokens[:place.position] + [place.token],
                      "positions": [place.position], "labels": [int(right)],
                      "group": f"answer {place.answer}"})
    return lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    path = pathlib.Path
    parser.add_argument("--target", type=path, required=True, help="the target's model folder")
    parser.add_argument("--draft", type=path, required=True,
                        help="the folder of a draft that is a model, with the target's tokenizer")
    parser.add_argument("--prompts", type=path, nargs="+", required=True,
                        help="files of prompts, as `foretoken capture` reads them")
    parser.add_argument("--out", type=path, required=True, help="the file of labelled tokens")
    parser.add_argument("--program", type=path, required=True, help="the program `foretoken`")
    parser.add_argument("--raw", action="store_true", help="never use the chat template")
    parser.add_argument("--limit", type=above_zero, default=None, help="prompts to answer")
    parser.add_argument("--max-tokens", type=above_zero, default=128, help="of an answer")
    parser.add_argument("--batch", type=above_zero, default=16, help="texts decoded together")
    parser.add_argument("--result", choices=("likelihood", "number"), default="likelihood",
                        help="what must stay as it was: how likely the rest of the text is, or its "
                        "last number, where the answer has one")
    parser.add_argument("--horizon", type=above_zero, default=8,
                        help="tokens from the place on whose likelihood is compared")
    parser.add_argument("--margin", type=float, default=0.2,
                        help="by how much the log-probability of the rest's tokens may be lower, "
                        "on the average")


def _label_all(arguments: argparse.Namespace, work: pathlib.Path) -> List[dict]:
    target, draft = load_target(arguments.target), load_target(arguments.draft)
    program = Program(arguments.program)
    options = ["--raw"] if arguments.raw else []
    for path in arguments.prompts:
        options += ["--prompts", path]
    if arguments.limit:
        options += ["--limit", arguments.limit]
    asked = ["capture", "-m", target.folder, "--layers", 0, "--temp", 0, "-n",
             arguments.max_tokens, "--mode", "ar", *options]
    program.run(*asked, "-o", work / "answers")
    captured = load_capture([work / "answers"], target)
    drafted = program.read_states(
        draft, [sequence.tokens.tolist() for sequence in captured.sequences], work / "drafted")
    if drafted.tokenizer != captured.tokenizer:
        raise Failure(f"{draft.folder} has another tokenizer than {target.folder}: its choices are "
                      "other tokens")
    answers = [answer_of(target, sequence) for sequence in captured.sequences]
    places = [place for number, (read, guessed) in enumerate(zip(captured.sequences,
                                                                 drafted.sequences))
              for place in places_of(number, target, draft, read, guessed)]
    if not places:
        raise Failure("the draft chooses what the target does in all of the answers: there is "
                      "nothing to judge")
    continued = _continue(target, answers, places, arguments, program, work)
    same: Sequence[Optional[bool]] = [None] * len(places)
    if arguments.result == "number":
        same = _by_number(target, answers, places, continued, program)
    return label(answers, places, continued, same, arguments.horizon, arguments.margin)


def run(arguments: argparse.Namespace) -> None:
    work = arguments.out.with_name(arguments.out.name + ".unfinished")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        lines = _label_all(arguments, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    write_whole(arguments.out, lambda file: file.write(text.encode()))
    right = sum(line["labels"][0] for line in lines)
    print(f"{arguments.out}: {len(lines)} tokens of the draft, {right} right and "
          f"{len(lines) - right} wrong")
