"""The part of a target's vocabulary that a drafter can propose."""

from typing import Sequence

import torch

from .capture import CapturedSequence


def counts(sequences: Sequence[CapturedSequence], vocabulary: int) -> torch.Tensor:
    """How often answers have each of the tokens [vocabulary]."""
    times = torch.zeros(vocabulary, dtype=torch.int64)
    for sequence in sequences:
        times += torch.bincount(sequence.tokens[sequence.answer.bool()].long(),
                                minlength=vocabulary)
    return times


def frequent_tokens(sequences: Sequence[CapturedSequence], count: int,
                    vocabulary: int) -> torch.Tensor:
    """The ids [count], ascending, of the tokens that answers have most often; of those that they
    have equally often, the smaller ids."""
    order = torch.sort(counts(sequences, vocabulary), descending=True, stable=True).indices
    return torch.sort(order[:count]).values


def offsets(ids: torch.Tensor) -> torch.Tensor:
    """d2t [count]: what is added to a draft's id to make it the target's."""
    return ids - torch.arange(len(ids))


def membership(ids: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """t2d [vocabulary]: whether the draft can propose a token."""
    members = torch.zeros(vocabulary, dtype=torch.bool)
    members[ids] = True
    return members
