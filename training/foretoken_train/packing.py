"""Sequences side by side in rows of one length."""

import dataclasses
from typing import Iterator, List, Sequence

import torch

from .capture import CapturedSequence


@dataclasses.dataclass(frozen=True)
class Piece:
    """Tokens begin to end of a sequence."""

    sequence: int
    begin: int
    end: int


@dataclasses.dataclass(frozen=True)
class Batch:
    """Rows of packed pieces: tokens, answer, position and segment are [rows, length], taps
    [rows, length, width], final [rows, length, hidden]. `segment` numbers the pieces of a row; -1
    is padding. `position` counts from the piece's first token."""

    tokens: torch.Tensor
    answer: torch.Tensor
    taps: torch.Tensor
    final: torch.Tensor
    segment: torch.Tensor
    position: torch.Tensor

    def to(self, device: torch.device) -> "Batch":
        return Batch(*(getattr(self, field.name).to(device)
                       for field in dataclasses.fields(self)))


def pieces_of(sequences: Sequence[CapturedSequence], length: int) -> List[Piece]:
    """The sequences in pieces of at most `length` tokens. Without those too short to draft in or
    without a token of an answer."""
    pieces = []
    for number, sequence in enumerate(sequences):
        for begin in range(0, len(sequence.tokens), length):
            end = min(begin + length, len(sequence.tokens))
            # The first token that is drafted in a piece is its third.
            if end - begin > 2 and bool(sequence.answer[begin + 2:end].any()):
                pieces.append(Piece(number, begin, end))
    return pieces


def pack(pieces: Sequence[Piece], length: int) -> List[List[Piece]]:
    """Rows of pieces, in order: each piece goes into the row that is being filled, or begins the
    next."""
    rows: List[List[Piece]] = []
    filled = length
    for piece in pieces:
        size = piece.end - piece.begin
        if filled + size > length:
            rows.append([])
            filled = 0
        rows[-1].append(piece)
        filled += size
    return rows


def _row(sequences: Sequence[CapturedSequence], row: Sequence[Piece], length: int) -> Batch:
    parts = [sequences[piece.sequence] for piece in row]

    def joined(name: str, kind: torch.dtype) -> torch.Tensor:
        values = torch.cat([getattr(part, name)[piece.begin:piece.end]
                            for part, piece in zip(parts, row)]).to(kind)
        padding = values.new_zeros((length - len(values),) + values.shape[1:])
        return torch.cat([values, padding])

    sizes = torch.tensor([piece.end - piece.begin for piece in row])
    segment = torch.full((length,), -1, dtype=torch.int64)
    segment[:int(sizes.sum())] = torch.repeat_interleave(torch.arange(len(row)), sizes)
    position = torch.zeros(length, dtype=torch.int64)
    position[:int(sizes.sum())] = torch.cat([torch.arange(int(size)) for size in sizes])
    return Batch(joined("tokens", torch.int64), joined("answer", torch.bool),
                 joined("taps", torch.float32), joined("final", torch.float32), segment, position)


def batch_of(sequences: Sequence[CapturedSequence], rows: Sequence[Sequence[Piece]],
             length: int) -> Batch:
    """Packed rows as tensors; the row of the fewest tokens is padded as all are."""
    made = [_row(sequences, row, length) for row in rows]
    return Batch(*(torch.stack([getattr(row, field.name) for row in made])
                   for field in dataclasses.fields(Batch)))


def epochs(sequences: Sequence[CapturedSequence], length: int, rows: int, seed: int,
           skipped: int) -> Iterator[Batch]:
    """Batches of `rows` rows without end, each epoch in an order of its own that depends on
    (seed, epoch) only, from the batch after the first `skipped` on. The last rows of an epoch that
    do not fill a batch are a smaller one."""
    pieces = pieces_of(sequences, length)
    epoch = 0
    while True:
        order = torch.randperm(
            len(pieces), generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch))
        packed = pack([pieces[number] for number in order.tolist()], length)
        count = -(-len(packed) // rows)
        for number in range(min(skipped, count), count):
            yield batch_of(sequences, packed[number * rows:(number + 1) * rows], length)
        skipped = max(0, skipped - count)
        epoch += 1
