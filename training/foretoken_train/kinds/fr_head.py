"""A head of fewer tokens for a draft model that is there (FR-Spec), trained for these tokens."""

import argparse
import dataclasses
import pathlib
from typing import Any, Dict

import torch
from torch import nn

from ..drafter import Drafts, Inputs, Kind, Tables
from ..failure import Failure
from ..options import above_zero
from ..packing import Batch
from ..safetensors import write_whole
from ..vocabulary import counts
from .draft_model import DraftModel, load_draft_model, shifted

RANKING = "ranking.txt"


@dataclasses.dataclass(frozen=True)
class Ranking:
    """Tokens, the most frequent first, and how often answers have them: what the engine's
    --draft-vocab reads."""

    tokenizer: str
    vocabulary: int
    tokens: torch.Tensor
    times: torch.Tensor

    def text(self) -> str:
        lines = [f"foretoken-token-ranking 1 {self.tokenizer} {self.vocabulary}"]
        lines += [f"{token} {times}"
                  for token, times in zip(self.tokens.tolist(), self.times.tolist())]
        return "\n".join(lines) + "\n"


class FrHead(nn.Module):
    """Only the rows of the ranked tokens are trained; all others stay as they were."""

    def __init__(self, draft: DraftModel, ranking: Ranking):
        super().__init__()
        self.draft = draft.requires_grad_(False)
        self.ids = ranking.tokens.sort().values
        self.rows = nn.Parameter(draft.head()[self.ids].clone())
        self._ranking = ranking
        self.summary = (f"{draft.summary} `--draft-vocab {RANKING}` with this folder's file limits "
                        "it to the tokens that its head was trained further for.")

    def drafts(self, batch: Batch, _tables: Tables, count: int,
               _generator: torch.Generator) -> Drafts:
        logits = self.draft.model(batch) @ self.rows.T
        return shifted(batch, torch.log_softmax(logits.float(), -1), count)

    def tensors(self) -> Dict[str, torch.Tensor]:
        head = self.draft.head().detach().clone()
        head[self.ids.to(head.device)] = self.rows.detach()
        return {**self.draft.tensors(), "lm_head.weight": head}

    def config_json(self) -> Dict[str, Any]:
        return {**self.draft.config_json(), "tie_word_embeddings": False}

    def write_more(self, folder: pathlib.Path) -> None:
        self.draft.write_more(folder)
        write_whole(folder / RANKING, lambda file: file.write(self._ranking.text().encode()))


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--draft", type=pathlib.Path, required=True,
                        help="the draft's model folder")
    parser.add_argument("--draft-vocab", type=above_zero, default=16384,
                        help="tokens that can be proposed, the most frequent in answers")
    parser.add_argument("--evaluate-ahead", type=above_zero, default=7,
                        help="tokens of a draft that are evaluated; training is the same for all")


def _make(inputs: Inputs) -> FrHead:
    target, arguments = inputs.target, inputs.arguments
    if not inputs.tokenizer:
        raise Failure(f"{arguments.data[0]} does not say of which tokenizer it is, which a ranking "
                      "must: capture the answers anew")
    times = counts(inputs.sequences, target.vocabulary)
    order = torch.sort(times, descending=True, stable=True).indices
    tokens = order[:min(arguments.draft_vocab, int((times > 0).sum()))]
    ranking = Ranking(inputs.tokenizer, target.vocabulary, tokens, times[tokens])
    return FrHead(load_draft_model(arguments.draft, target), ranking)


KIND = Kind("fr-head", "a head of fewer tokens for a draft model that is there", _make,
            _add_arguments, lambda arguments: arguments.evaluate_ahead, {"steps_ahead": 1},
            write_more=FrHead.write_more,
            engine_options=lambda folder: ["--draft-vocab", str(folder / RANKING)])
