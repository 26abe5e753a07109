"""The target's distribution at captured rows."""

import dataclasses
from typing import List

import torch

from .drafter import Tables
from .target import Target

_ROWS_AT_ONCE = 1024  # Logits over a whole vocabulary are wide.


@dataclasses.dataclass(frozen=True)
class Distribution:
    """log_p [rows, length, draft vocabulary], which sums to the mass that lies on the draft's
    tokens; `best` [rows, length], the target's likeliest token."""

    log_p: torch.Tensor
    best: torch.Tensor

    def at(self, source: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """log p [n, draft vocabulary] at the rows source [rows, slots] of the n slots chosen."""
        rows = torch.arange(len(source), device=source.device)[:, None].expand_as(source)
        return self.log_p[rows[chosen], source[chosen]]


class Teacher:
    """`ids` [draft vocabulary] are the target's ids of the draft's tokens."""

    def __init__(self, target: Target, ids: torch.Tensor, device: torch.device):
        self.tables = Tables(target.embeddings.to(device, torch.float32),
                             target.output.to(device, torch.float32))
        self.ids = ids.to(device)

    def distribution(self, final: torch.Tensor) -> Distribution:
        """The target's distribution behind states [rows, length, hidden] after the final norm."""
        log_p: List[torch.Tensor] = []
        best: List[torch.Tensor] = []
        with torch.no_grad():
            for part in final.flatten(0, 1).split(_ROWS_AT_ONCE):
                logits = part.float() @ self.tables.output.T
                best.append(logits.argmax(-1))
                log_p.append(logits[:, self.ids] - torch.logsumexp(logits, -1, keepdim=True))
        shape = final.shape[:2]
        return Distribution(torch.cat(log_p).view(*shape, -1), torch.cat(best).view(shape))
