"""Sequences of random tokens and features, for the tests of training."""

import torch

from foretoken_train import packing
from foretoken_train.capture import CapturedSequence

VOCABULARY, HIDDEN, TAPS = 20, 8, 3
EMBEDDINGS = torch.randn(VOCABULARY, HIDDEN, generator=torch.Generator().manual_seed(7))


def random_sequences(lengths, prompt=2):
    generator = torch.Generator().manual_seed(9)
    normal = lambda *shape: torch.randn(*shape, generator=generator).to(torch.bfloat16)
    return [CapturedSequence(
        torch.randint(VOCABULARY, (length,), dtype=torch.int32, generator=generator),
        (torch.arange(length) >= prompt).to(torch.uint8),
        normal(length, TAPS * HIDDEN), normal(length, HIDDEN)) for length in lengths]


def one_row(lengths):
    """Random sequences packed into one row."""
    sequences = random_sequences(lengths)
    pieces = [packing.Piece(number, 0, length) for number, length in enumerate(lengths)]
    return packing.batch_of(sequences, [pieces], sum(lengths))
