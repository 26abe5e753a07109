"""Captured data: answers of a target, and what its passes computed. docs/look_up/formats.md
defines the files."""

import dataclasses
import pathlib
from typing import List, Sequence, Tuple

import torch

from .failure import Failure
from .safetensors import SafetensorsFile
from .target import Target

FORMAT = "1"


@dataclasses.dataclass(frozen=True)
class CapturedSequence:
    """A prompt and its answer of n tokens: tokens [n], answer [n] (whether the target produced
    the token), taps [n, width], final [n, hidden] (the state after the final norm)."""

    tokens: torch.Tensor
    answer: torch.Tensor
    taps: torch.Tensor
    final: torch.Tensor


@dataclasses.dataclass(frozen=True)
class Capture:
    """`layers` are those that the taps enter: tap k is hidden_states[layers[k]]. `tokenizer` is
    the fingerprint of the target's, empty where the files do not say it."""

    layers: Tuple[int, ...]
    tokenizer: str
    sequences: List[CapturedSequence]


def _shards(paths: Sequence[pathlib.Path]) -> List[pathlib.Path]:
    """The files that are named, and those of the folders that are named."""
    shards: List[pathlib.Path] = []
    for path in paths:
        found = sorted(path.glob("capture-*.safetensors")) if path.is_dir() else [path]
        if not found:
            raise Failure(f"{path} has no capture-*.safetensors")
        shards += found
    return shards


def _layers(shard: SafetensorsFile) -> Tuple[int, ...]:
    if shard.metadata.get("format") != FORMAT:
        raise Failure(f"{shard.path} is a capture of format {shard.metadata.get('format')}; "
                      f"this version reads {FORMAT}")
    try:
        layers = shard.metadata["layers"]
        return tuple(int(layer) for layer in layers.split(",")) if layers else ()
    except (KeyError, ValueError) as error:
        raise Failure(f"{shard.path}: 'layers' of the metadata is not numbers and commas, such as "
                      "2,3,3") from error


def _read_shard(shard: SafetensorsFile, layers: int, target: Target) -> List[CapturedSequence]:
    tokens = shard.tensor("tokens")
    if tokens.dim() != 1:
        raise Failure(f"{shard.path}: 'tokens' is {list(tokens.shape)} where it should be one row")
    count = len(tokens)
    shapes = {"tokens": (torch.int32, (count,)), "answer": (torch.uint8, (count,)),
              "taps": (torch.bfloat16, (count, layers * target.hidden)),
              "final": (torch.bfloat16, (count, target.hidden))}
    tensors = {}
    for name, (kind, shape) in shapes.items():
        tensor = tensors[name] = shard.tensor(name)
        if tensor.dtype != kind or tuple(tensor.shape) != shape:
            raise Failure(f"{shard.path}: '{name}' is {tensor.dtype} {list(tensor.shape)} where "
                          f"{target.name} needs {kind} {list(shape)}")
    starts = shard.tensor("starts").tolist()
    if not starts or starts[0] != 0 or starts[-1] != count or sorted(starts) != starts:
        raise Failure(f"{shard.path}: 'starts' does not rise from 0 to {count}")
    if count and not 0 <= int(tokens.min()) <= int(tokens.max()) < target.vocabulary:
        raise Failure(f"{shard.path} has tokens that {target.name} does not have: it has "
                      f"{target.vocabulary}")
    return [CapturedSequence(*(tensors[name][begin:end] for name in shapes))
            for begin, end in zip(starts, starts[1:])]


def load_capture(paths: Sequence[pathlib.Path], target: Target) -> Capture:
    """Maps shards, which are files or folders of them, made with the same layers of `target`."""
    shards = [SafetensorsFile(path) for path in _shards(paths)]
    layers = _layers(shards[0])
    if any(not 0 <= layer <= target.config["num_hidden_layers"] for layer in layers):
        raise Failure(f"{shards[0].path} is of layers {layers}; {target.name} has "
                      f"{target.config['num_hidden_layers']}")
    sequences: List[CapturedSequence] = []
    for shard in shards:
        if _layers(shard) != layers:
            raise Failure(f"{shard.path} is of layers {_layers(shard)}, {shards[0].path} of "
                          f"{layers}: data of one training have the same")
        sequences += _read_shard(shard, len(layers), target)
    return Capture(layers, shards[0].metadata.get("tokenizer", ""), sequences)
