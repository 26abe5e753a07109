"""The loop that trains a drafter, and goes on where it was interrupted."""

import dataclasses
import pathlib
import pickle
import sys
import time
from typing import Any, Dict, List, Optional, Sequence

import torch
from torch.nn import functional

from .capture import CapturedSequence
from .drafter import Drafter, rows_of_step
from .failure import Failure
from .losses import LOSSES, WEIGHTS, acceptance
from .packing import Batch, epochs
from .safetensors import write_whole
from .teacher import Teacher


@dataclasses.dataclass(frozen=True)
class Settings:
    """What decides the weights that come out, besides the data. `context` is the length of a packed
    row, `rows` how many a batch has."""

    steps: int
    steps_ahead: int
    context: int
    rows: int
    loss: str
    weights: str
    decay: float
    rate: float
    warmup: int
    clip: float
    weight_decay: float
    seed: int
    dtype: str

    def products(self, device: torch.device) -> torch.autocast:
        """In what matrices are multiplied."""
        return torch.autocast(device.type, dtype=torch.bfloat16, enabled=self.dtype == "bfloat16")


def batch_loss(drafter: Drafter, teacher: Teacher, batch: Batch, settings: Settings,
               generator: torch.Generator) -> torch.Tensor:
    """The sum over steps ahead of the mean over their slots, each step `decay` times the weight of
    the one before. Slots whose likeliest token the draft does not have teach nothing. What a draft
    says of its own acceptance is taught besides, by cross-entropy with that."""
    target = teacher.distribution(batch.final)
    has = torch.zeros(len(teacher.tables.embeddings), dtype=torch.bool, device=teacher.ids.device)
    has[teacher.ids] = True
    with settings.products(batch.final.device):
        drafts = drafter.drafts(batch, teacher.tables, settings.steps_ahead, generator)
    losses: List[torch.Tensor] = []
    accepted: List[torch.Tensor] = []
    counted: List[torch.Tensor] = []
    for step, log_q in enumerate(drafts.log_q):
        rows = rows_of_step(batch, drafts.place, step)
        counts = rows.valid & has[target.best.gather(1, rows.source)]
        log_p, log_q = target.at(rows.source, counts), log_q[counts]
        zeros = log_p.new_zeros(counts.shape)
        losses.append(zeros.masked_scatter(counts, LOSSES[settings.loss](log_p, log_q)))
        accepted.append(zeros.masked_scatter(counts, acceptance(log_p, log_q.detach())))
        counted.append(counts)
    for step, odds in enumerate(drafts.confidence):
        losses[step] = losses[step] + functional.binary_cross_entropy_with_logits(
            odds, accepted[step], reduction="none")
    weights = WEIGHTS[settings.weights](accepted, counted)
    return sum(settings.decay ** step * (weight * loss).sum() / counts.sum().clamp(min=1)
               for step, (weight, loss, counts) in enumerate(zip(weights, losses, counted)))


def _rate(settings: Settings, step: int) -> float:
    """The share of the learning rate: up to all of it over the warmup, then down to none at the end."""
    if step < settings.warmup:
        return (step + 1) / settings.warmup
    return (settings.steps - step) / max(1, settings.steps - settings.warmup)


class Progress:
    """A line on standard error, rewritten: where training is and when it will be done."""

    def __init__(self, steps: int, first: int):
        self._steps, self._first = steps, first
        self._began = self._shown = time.monotonic()

    def show(self, step: int, loss: float) -> None:
        now = time.monotonic()
        if now - self._shown < 1 and step < self._steps:
            return
        self._shown = now
        left = (now - self._began) / (step - self._first) * (self._steps - step)
        end = "\n" if step == self._steps else ""
        print(f"\rstep {step}/{self._steps}, loss {loss:.4f}, {int(left) // 60}:"
              f"{int(left) % 60:02d} left ", end=end, file=sys.stderr, flush=True)


class Training:
    """A drafter, its optimizer and how far they are. The order of the data and what else is drawn
    follow from the seed and the step, so a checkpoint resumed is training uninterrupted."""

    def __init__(self, network: Drafter, teacher: Teacher, settings: Settings,
                 identity: Dict[str, Any]):
        """`identity` is of what the data are, for checkpoints to be compared with."""
        self.network, self.teacher, self.settings = network, teacher, settings
        self._identity = {**identity, **dataclasses.asdict(settings)}
        self.step = 0
        self._optimizer = torch.optim.AdamW(network.parameters(), lr=settings.rate,
                                            betas=(0.9, 0.95), weight_decay=settings.weight_decay)

    def save(self, path: pathlib.Path) -> None:
        state = {"identity": self._identity, "step": self.step,
                 "network": self.network.state_dict(), "optimizer": self._optimizer.state_dict()}
        write_whole(path, lambda file: torch.save(state, file))

    def resume(self, path: pathlib.Path) -> None:
        """Takes the place of what was saved, which must have had the same settings and data."""
        try:
            state = torch.load(path, map_location="cpu")
        except OSError as error:
            raise Failure(f"{path} cannot be read: {error.strerror}; --resume goes on from what a "
                          "training into the same --out has saved") from error
        except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
            raise Failure(f"{path} is not a checkpoint of training: {error}") from error
        if not isinstance(state, dict) or "identity" not in state:
            raise Failure(f"{path} is not a checkpoint of training")
        saved = state["identity"]
        for name, value in self._identity.items():
            if saved.get(name) != value:
                raise Failure(f"{path} was saved with {name} = {saved.get(name)}, and this "
                              f"training has {value}: resume with what it began with")
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]

    def run(self, sequences: Sequence[CapturedSequence], until: int,
            checkpoint: Optional[pathlib.Path] = None, save_every: int = 0) -> None:
        """Trains up to step `until`, saving as it goes."""
        settings = self.settings
        device = self.teacher.ids.device
        progress = Progress(settings.steps, self.step)
        batches = epochs(sequences, settings.context, settings.rows, settings.seed, self.step)
        while self.step < until:
            batch = next(batches).to(device)
            for group in self._optimizer.param_groups:
                group["lr"] = settings.rate * _rate(settings, self.step)
            self._optimizer.zero_grad(set_to_none=True)
            generator = torch.Generator().manual_seed(settings.seed * 1_000_003 + self.step)
            loss = batch_loss(self.network, self.teacher, batch, settings, generator)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), settings.clip)
            self._optimizer.step()
            self.step += 1
            progress.show(self.step, float(loss.detach()))
            if checkpoint and save_every and self.step % save_every == 0:
                self.save(checkpoint)
