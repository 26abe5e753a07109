"""What a kind of drafter is: a file of kinds/ gives a Kind, everything else is shared."""

import argparse
import dataclasses
import pathlib
from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol, Sequence

import torch
from torch.nn import functional

from .capture import CapturedSequence
from .packing import Batch
from .target import Target


@dataclasses.dataclass(frozen=True)
class Tables:
    """The target's embeddings and output matrix [vocabulary, hidden], which drafters share."""

    embeddings: torch.Tensor
    output: torch.Tensor


@dataclasses.dataclass(frozen=True)
class Drafts:
    """What is drafted in a batch. `place` [rows, slots] says where: slot t holds the token behind
    it and what the target computed up to t. log_q [rows, slots, draft vocabulary], one for each
    step, of the tokens at t + 2, t + 3 and so on, of which the first the target chooses at its row
    t + 1. Kinds that say how likely each step's token is to be accepted give the logarithm of its
    odds, [rows, slots] for each step."""

    place: torch.Tensor
    log_q: List[torch.Tensor]
    confidence: List[torch.Tensor] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Rows:
    """What one step drafts in a batch, [rows, slots] each: `source` is the row of the target
    whose distribution is drafted, `token` the answer's token there, `valid` whether the slot's
    piece has both and the target produced the token."""

    source: torch.Tensor
    token: torch.Tensor
    valid: torch.Tensor


def every_place(batch: Batch) -> torch.Tensor:
    rows, length = batch.tokens.shape
    return torch.arange(length, device=batch.tokens.device).expand(rows, length)


def embedded(batch: Batch, tables: Tables, place: torch.Tensor, ahead: int) -> torch.Tensor:
    """Embeddings [rows, slots, hidden] of the tokens at place + ahead; any behind the row's end."""
    last = batch.tokens.shape[1] - 1
    tokens = batch.tokens.gather(1, (place + ahead).clamp(max=last))
    return functional.embedding(tokens, tables.embeddings)


def rows_of_step(batch: Batch, place: torch.Tensor, step: int) -> Rows:
    """Step i of the slots `place` drafts the tokens at place + 2 + i."""
    last = batch.tokens.shape[1] - 1
    drafted = (place + 2 + step).clamp(max=last)
    segment = batch.segment.gather(1, place)
    inside = (place + 2 + step <= last) & (segment >= 0)
    valid = (inside & (batch.segment.gather(1, drafted) == segment) &
             batch.answer.gather(1, drafted))
    return Rows((place + 1 + step).clamp(max=last), batch.tokens.gather(1, drafted), valid)


class Drafter(Protocol):
    """A torch.nn.Module that is trained, and how it is published."""

    ids: torch.Tensor  # The target's ids of the tokens that it drafts, ascending.
    summary: str  # A sentence of its card about what it reads and how it drafts.

    def drafts(self, batch: Batch, tables: Tables, count: int,
               generator: torch.Generator) -> Drafts:
        """`count` steps, whose tokens so far are the answer's. A kind that begins in some places
        only draws them with the generator, which is a processor's."""

    def tensors(self) -> Dict[str, torch.Tensor]:
        """What model.safetensors has."""

    def config_json(self) -> Dict[str, Any]:
        """What config.json has. With the settings it says all of the network's shape."""


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What a drafter is made of. `layers` are those that taps enter, `tokenizer` the fingerprint
    of the target's, empty where the data do not say it."""

    target: Target
    layers: Sequence[int]
    tokenizer: str
    sequences: Sequence[CapturedSequence]
    arguments: argparse.Namespace


@dataclasses.dataclass(frozen=True)
class Kind:
    """`defaults` are of shared options, where the kind has others. `make` gives a Drafter, or
    raises a Failure where the data or options do not do for one. `read` gives the one of a
    folder that this package has written, to be trained further; None where it holds none, or one
    for another target."""

    name: str
    help: str
    make: Callable[[Inputs], Drafter]
    add_arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    # How many tokens of a draft are evaluated.
    evaluated: Callable[[argparse.Namespace], int] = lambda arguments: arguments.steps_ahead
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    read: Optional[Callable[[pathlib.Path, Target], Optional[Drafter]]] = None
    # How many tokens a drafter of this kind can draft, where that is decided once it is made.
    most: Callable[[Any], Optional[int]] = lambda drafter: None
    # Files of its folder besides config.json, model.safetensors and the card.
    write_more: Callable[[Drafter, pathlib.Path], None] = lambda drafter, folder: None
    # How the engine's -md names the drafter in a folder, and what it is told besides.
    engine_draft: Callable[[pathlib.Path], str] = str
    engine_options: Callable[[pathlib.Path], List[str]] = lambda folder: []
