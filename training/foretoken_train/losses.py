"""How far a draft is from its target at a row.

Every loss takes log p [..., n] of the target and log q [..., n] of the draft over the draft's n
tokens and gives [...]. p sums to less than 1 where the target's mass lies on tokens that the draft
does not have: what is lost there is lost to acceptance too, so `acceptance` counts it.
Cross-entropy and KL compare with p scaled to sum to 1."""

from typing import Callable, Dict, List

import torch

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

Weights = Callable[[List[torch.Tensor], List[torch.Tensor]], List[torch.Tensor]]

_PACE_SMOOTHING = 0.5  # How much each acceptance is smoothed towards 1, as published.
_LK_DECAY = 3.0  # How fast the hybrid loss turns from KL to acceptance, as published.


def acceptance(log_p: torch.Tensor, log_q: torch.Tensor) -> torch.Tensor:
    """The chance that rejection sampling accepts a token drawn from q: the sum of min(p, q)."""
    return torch.minimum(log_p, log_q).exp().sum(-1)


def cross_entropy(log_p: torch.Tensor, log_q: torch.Tensor) -> torch.Tensor:
    """The cross-entropy of the draft under the target's distribution."""
    return -(torch.softmax(log_p, -1) * log_q).sum(-1)


def kl(log_p: torch.Tensor, log_q: torch.Tensor) -> torch.Tensor:
    """The divergence of the draft from the target: cross-entropy less what no draft can avoid."""
    scaled = torch.log_softmax(log_p, -1)
    return (scaled.exp() * (scaled - log_q)).sum(-1)


def total_variation(log_p: torch.Tensor, log_q: torch.Tensor) -> torch.Tensor:
    return 1 - acceptance(log_p, log_q)


def lk(log_p: torch.Tensor, log_q: torch.Tensor) -> torch.Tensor:
    """The hybrid LK loss (arXiv 2602.23881): KL where little is accepted, since total variation
    has next to no gradient there, and total variation, which is what counts, where much is."""
    accepted = acceptance(log_p, log_q)
    weight = torch.exp(-_LK_DECAY * accepted.detach())
    return weight * kl(log_p, log_q) + (1 - weight) * (1 - accepted)


def l1(log_p: torch.Tensor, log_q: torch.Tensor) -> torch.Tensor:
    """What DSpark is published with: 0.1 of cross-entropy and 0.9 of the distributions' distance,
    which is twice their total variation."""
    return 0.1 * cross_entropy(log_p, log_q) + 1.8 * total_variation(log_p, log_q)


LOSSES: Dict[str, Loss] = {"ce": cross_entropy, "kl": kl, "l1": l1, "tv": total_variation,
                           "lk": lk}


def alike(_accepted: List[torch.Tensor], valid: List[torch.Tensor]) -> List[torch.Tensor]:
    return [each.float() for each in valid]


def pace(accepted: List[torch.Tensor], valid: List[torch.Tensor]) -> List[torch.Tensor]:
    """The gain in a draft's length by a greater acceptance at slots [rows, slots] of each step
    (D-PACE), from the `accepted` of all steps: the sum, over it and the steps
    behind it, of the chance that the draft is accepted up to them. Acceptances are smoothed, so
    that steps behind an unlikely one count too."""
    reached = torch.ones_like(accepted[0])
    chances = []
    for chance, there in zip(accepted, valid):
        smooth = (1 - _PACE_SMOOTHING) * chance.detach() + _PACE_SMOOTHING
        reached = torch.where(there, reached * smooth, reached)
        chances.append(reached * there)
    return [there * sum(chances[step:]) for step, there in enumerate(valid)]


WEIGHTS: Dict[str, Weights] = {"alike": alike, "pace": pace}
