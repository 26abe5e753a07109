"""What a drafter's proposals would come to, worked out from captured answers."""

import dataclasses
from typing import List, Sequence

import torch

from .capture import CapturedSequence
from .eagle3 import Eagle3, rows_of_step, unroll
from .losses import acceptance
from .packing import batch_of, pack, pieces_of
from .teacher import Teacher


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The chance of each position of a chain to be accepted where the ones before it were: at
    temperature 0, and at 1 by rejection sampling. `slots` is from how many places chains were
    drafted."""

    greedy: List[float]
    sampled: List[float]
    slots: int

    @staticmethod
    def length(rates: Sequence[float]) -> float:
        """Tokens that a pass of the target emits on the average: a chain's accepted ones and the
        token that follows them."""
        total, reached = 1.0, 1.0
        for rate in rates:
            reached *= rate
            total += reached
        return total


def evaluate(network: Eagle3, teacher: Teacher, sequences: Sequence[CapturedSequence],
             length: int, count: int) -> Evaluation:
    """Drafts chains of `count` tokens along the answers. A chain goes on only where the answer
    does what verification would have done: at temperature 0 where the accepted token is the
    answer's; at 1 with the weight min(1, q/p) of the answer's token, which makes the mean right for
    answers that were sampled at temperature 1."""
    device = teacher.ids.device
    accepted = torch.zeros(2, count, dtype=torch.float64)
    reached = torch.zeros(2, count, dtype=torch.float64)
    to_draft = torch.full((teacher.embeddings.shape[0],), -1, device=device)
    to_draft[teacher.ids] = torch.arange(len(teacher.ids), device=device)
    network.eval()
    with torch.no_grad():
        for row in pack(pieces_of(sequences, length), length):
            batch = batch_of(sequences, [row], length).to(device)
            target = teacher.distribution(batch.final)
            alive = weight = rows_of_step(batch, 0).valid.double()
            for step, log_q in enumerate(unroll(network, teacher.embeddings, batch, count)):
                rows = rows_of_step(batch, step)
                log_p = target.log_p[:, rows.source]
                best = target.best[:, rows.source]
                alive, weight = alive * rows.valid, weight * rows.valid
                hit = alive * (teacher.ids[log_q.argmax(-1)] == best)
                reached[:, step] += torch.stack([alive.sum(), weight.sum()]).cpu()
                accepted[:, step] += torch.stack(
                    [hit.sum(), (weight * acceptance(log_p, log_q)).sum()]).cpu()
                alive = hit * (rows.token == best)
                drafted = to_draft[rows.token]
                at = drafted.clamp(min=0)[..., None]
                ratio = (log_q.gather(-1, at) - log_p.gather(-1, at)).clamp(max=0).exp()[..., 0]
                weight = weight * ratio * (drafted >= 0)
    network.train()
    greedy, sampled = (accepted / reached.clamp(min=1e-12)).tolist()
    slots = int(reached[0, 0]) if count else 0
    return Evaluation(greedy, sampled, slots)
