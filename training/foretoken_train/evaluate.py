"""What a drafter's proposals would come to, worked out from captured answers."""

import dataclasses
from typing import List, Sequence

import torch

from .capture import CapturedSequence
from .drafter import Drafter, rows_of_step
from .losses import acceptance
from .packing import batch_of, pack, pieces_of
from .teacher import Teacher


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The chance of each position of a draft to be accepted where the ones before it were: at
    temperature 0, and at 1 by rejection sampling. `slots` is from how many places was drafted."""

    greedy: List[float]
    sampled: List[float]
    slots: int

    @staticmethod
    def length(rates: Sequence[float]) -> float:
        """Tokens that a pass of the target emits on the average: a draft's accepted ones and the
        token that follows them."""
        total, reached = 1.0, 1.0
        for rate in rates:
            reached *= rate
            total += reached
        return total


def evaluate(drafter: Drafter, teacher: Teacher, sequences: Sequence[CapturedSequence],
             length: int, count: int) -> Evaluation:
    """Drafts `count` tokens at places along the answers. A draft goes on only where the answer
    does what verification would have done: at temperature 0 where the accepted token is the
    answer's; at 1 with the weight min(1, q/p) of the answer's token, which makes the mean right for
    answers that were sampled at temperature 1."""
    device = teacher.ids.device
    accepted = torch.zeros(2, count, dtype=torch.float64)
    reached = torch.zeros(2, count, dtype=torch.float64)
    to_draft = torch.full((len(teacher.tables.embeddings),), -1, device=device)
    to_draft[teacher.ids] = torch.arange(len(teacher.ids), device=device)
    generator = torch.Generator().manual_seed(0)
    drafter.eval()
    with torch.no_grad():
        for row in pack(pieces_of(sequences, length), length):
            batch = batch_of(sequences, [row], length).to(device)
            target = teacher.distribution(batch.final)
            drafts = drafter.drafts(batch, teacher.tables, count, generator)
            alive = weight = rows_of_step(batch, drafts.place, 0).valid.double()
            for step, log_q in enumerate(drafts.log_q):
                rows = rows_of_step(batch, drafts.place, step)
                log_p = target.log_p[0, rows.source]
                best = target.best[0, rows.source]
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
    drafter.train()
    greedy, sampled = (accepted / reached.clamp(min=1e-12)).tolist()
    slots = int(reached[0, 0]) if count else 0
    return Evaluation(greedy, sampled, slots)
