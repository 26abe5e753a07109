"""Trains a drafter on what a server decodes, beside it: `foretoken serve --learn-draft DIR` writes
captures and judges what this puts into DIR/candidates. Neither waits for the other."""

import argparse
import dataclasses
import json
import pathlib
import shutil
import signal
import time
from typing import Iterator, List, Optional

import torch

from . import command
from .capture import CapturedSequence, load_capture
from .drafter import Drafter, Kind
from .evaluate import evaluate
from .failure import Failure
from .json_lines import read_lines
from .kinds import KINDS
from .options import above_zero
from .packing import pieces_of
from .publish import Account, publish
from .safetensors import SafetensorsFile
from .target import Target, load_target
from .teacher import Teacher
from .train import Settings, Training
from .vocabulary import membership

_KEPT = 3  # Candidates beside the one in use, the last ones.


class LearningFolder:
    """What a server and its trainer share."""

    def __init__(self, path: pathlib.Path):
        self.captures, self.candidates = path / "captures", path / "candidates"
        self._in_use, self._verdicts = path / "in-use.json", path / "verdicts.jsonl"
        self.candidates.mkdir(parents=True, exist_ok=True)

    def tokens_behind(self, last: str) -> int:
        """How many tokens the captures have that came after the one of that name."""
        return sum(len(SafetensorsFile(path).tensor("tokens"))
                   for path in self._shards() if path.name > last)

    def last_capture(self) -> str:
        return max((path.name for path in self._shards()), default="")

    def in_use(self) -> Optional[pathlib.Path]:
        """The candidate that the server drafts with; None: what it began with."""
        try:
            name = json.loads(self._in_use.read_text())["candidate"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return self.candidates / name if name else None

    def refused(self, candidate: str) -> bool:
        """Whether the server has judged it and did not keep it, or went back from it."""
        return any(verdict["candidate"] == candidate and not verdict["kept"]
                   for verdict in self._all_verdicts())

    def next_name(self) -> str:
        """Behind all that there are and were."""
        names = [path.name for path in self.candidates.iterdir()]
        names += [verdict["candidate"] for verdict in self._all_verdicts()]
        return f"{max((int(name) for name in names if name.isdigit()), default=0) + 1:05}"

    def remove_old(self) -> None:
        in_use = self.in_use()
        names = sorted(path for path in self.candidates.iterdir() if path.name.isdigit())
        for path in names[:-_KEPT]:
            if path != in_use:
                shutil.rmtree(path)

    def _shards(self) -> List[pathlib.Path]:
        return list(self.captures.glob("capture-*.safetensors")) if self.captures.is_dir() else []

    def _all_verdicts(self) -> Iterator[dict]:
        try:
            for _, verdict in read_lines(self._verdicts):
                yield verdict
        except (OSError, Failure):
            return  # There are none yet, or the last one is being written.


def read_drafter(folder: pathlib.Path, target: Target) -> "tuple[Kind, Drafter]":
    """A drafter as this package writes it, of any kind that can be trained further."""
    for kind in KINDS:
        drafter = kind.read(folder, target) if kind.read else None
        if drafter is not None:
            return kind, drafter
    readable = ", ".join(kind.name for kind in KINDS if kind.read)
    raise Failure(f"{folder} is no drafter for {target.name} of a kind that is trained online, as "
                  f"this package writes them: {readable}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    path = pathlib.Path
    parser.add_argument("--target", type=path, required=True, help="the target's model folder")
    parser.add_argument("--learn", type=path, required=True,
                        help="what `foretoken serve --learn-draft` was given")
    parser.add_argument("--draft", type=path, required=True,
                        help="the drafter that the server began with, a folder that this package "
                        "has written")
    parser.add_argument("--device", default="cpu", help="of torch, such as cuda:0")
    parser.add_argument("--steps", type=above_zero, default=200, help="batches of an update")
    parser.add_argument("--fresh-tokens", type=above_zero, default=20000,
                        help="that must have come since the last update")
    parser.add_argument("--hold-back", type=above_zero, default=16,
                        help="answers that each candidate's card is about")
    parser.add_argument("--updates", type=int, default=0, help="after which it ends; 0: none")
    parser.add_argument("--look-every", type=float, default=2.0, help="seconds")
    command.add_training_arguments(parser)
    parser.set_defaults(rate=5e-4, warmup=10, steps_ahead=None)


# Tokens of a draft, where neither options nor the kind say more.
_AHEAD = 4


class Online:
    """A trainer between two updates."""

    def __init__(self, arguments: argparse.Namespace):
        self._arguments = arguments
        self._folder = LearningFolder(arguments.learn)
        self._target = load_target(arguments.target)
        self._last_capture = ""
        self._last_name: Optional[str] = None
        self._begin()
        if arguments.steps_ahead is None:
            arguments.steps_ahead = self._kind.defaults.get("steps_ahead", _AHEAD)
        self._most = self._kind.most(self._drafter) or max(arguments.steps_ahead, _AHEAD)
        arguments.steps_ahead = min(arguments.steps_ahead, self._most)
        self._settings = command.settings_of(arguments)

    def _begin(self) -> None:
        """From what the server drafts with."""
        source = self._folder.in_use() or self._arguments.draft
        self._kind, drafter = read_drafter(source, self._target)
        self._drafter = drafter.to(torch.device(self._arguments.device))

    def _sequences(self) -> Optional[List[CapturedSequence]]:
        """The sequences of all captures that are there; None where they change just now."""
        try:
            if self._folder.tokens_behind(self._last_capture) < self._arguments.fresh_tokens:
                return None
            last = self._folder.last_capture()
            capture = load_capture([self._folder.captures], self._target)
        except Failure:
            return None  # The server has just removed the oldest.
        self._last_capture = last
        return capture.sequences

    def look(self) -> bool:
        """Trains and offers a drafter if there is enough to learn from; returns whether it did."""
        sequences = self._sequences()
        if sequences is None:
            return False
        if self._last_name is not None and self._folder.refused(self._last_name):
            self._begin()
        name = self._folder.next_name()
        settings = dataclasses.replace(self._settings,
                                       seed=self._settings.seed * 1_000_003 + int(name))
        held = min(self._arguments.hold_back, len(sequences) // 5)
        trained, held_back = command.split(sequences, held, settings.seed)
        if not pieces_of(trained, settings.context):
            return False
        teacher = Teacher(self._target, self._drafter.ids,
                          torch.device(self._arguments.device))
        Training(self._drafter, teacher, settings, {}).run(trained, settings.steps)
        self._offer(name, teacher, settings, trained, held_back)
        return True

    def _offer(self, name: str, teacher: Teacher, settings: Settings,
               trained: List[CapturedSequence], held_back: List[CapturedSequence]) -> None:
        part = self._folder.candidates / f"{name}.part"
        part.mkdir(exist_ok=True)
        answers = held_back or trained
        figures = evaluate(self._drafter, teacher, answers, settings.context,
                           min(max(settings.steps_ahead, _AHEAD), self._most))
        tokens = command.answer_tokens(answers)
        covered = membership(self._drafter.ids, self._target.vocabulary)[tokens].float().mean()
        publish(part, self._kind, self._target, self._drafter, settings,
                Account(len(trained), len(held_back), len(command.answer_tokens(trained)),
                        float(covered)), figures)
        part.rename(self._folder.candidates / name)  # Whole: now it is looked at.
        self._last_name = name
        self._folder.remove_old()
        print(f"{name}: {figures.length(figures.greedy):.2f} tokens a pass at T = 0, "
              f"{figures.length(figures.sampled):.2f} at T = 1", flush=True)


def run(arguments: argparse.Namespace) -> None:
    def end(_signal, _frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        online = Online(arguments)
        updates = 0
        while not arguments.updates or updates < arguments.updates:
            if online.look():
                updates += 1
            else:
                time.sleep(arguments.look_every)
    except KeyboardInterrupt:
        pass  # What was not offered yet is lost; the next one begins from what is in use.
