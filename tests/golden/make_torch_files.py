#!/usr/bin/env python3
"""Writes torch/ beside itself: files of torch.save, and the tensors of some as safetensors files."""

import collections
import sys

import safetensors.torch
import torch

from golden import HERE

FOLDER = HERE / "torch"


def dtypes():
    """Everything that may lie in a storage, and where in it."""
    generator = torch.Generator().manual_seed(1)
    numbers = torch.randn(6, 4, generator=generator)
    tensors = {name: numbers.to(getattr(torch, name)) for name in
               ("float32", "float16", "bfloat16", "float64")}
    integers = torch.randint(0, 100, (5,), generator=generator)
    tensors |= {name: integers.to(getattr(torch, name)) for name in
                ("int64", "int32", "int16", "int8", "uint8", "bool")}
    tensors |= {"scalar": numbers[0, 0], "empty": torch.zeros(0, 70000), "rows": numbers[2:5],
                "row": numbers[3], "columns_of_one_row": numbers[3:4, 1:3],
                "part": numbers.flatten()[5:11].view(3, 2),
                "parameter": torch.nn.Parameter(numbers[1:3])}
    tensors |= {f"many.{i}": numbers[i % 6] for i in range(40)}
    return tensors


class Module(torch.nn.Module):
    """With tables that two share, and a counter."""

    def __init__(self):
        super().__init__()
        self.embed_tokens = torch.nn.Embedding(7, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.lm_head = torch.nn.Linear(4, 7, bias=False)
        self.lm_head.weight = self.embed_tokens.weight


def main():
    torch.manual_seed(2)
    FOLDER.mkdir(exist_ok=True)
    save = lambda name, what, **options: torch.save(what, FOLDER / f"{name}.bin", **options)
    safe = lambda name, tensors: safetensors.torch.save_file(
        {key: tensor.detach().clone().contiguous() for key, tensor in tensors.items()},
        FOLDER / f"{name}.safetensors")
    save("dtypes", dtypes())
    safe("dtypes", dtypes())
    states = Module().bfloat16().state_dict()
    assert isinstance(states, collections.OrderedDict)
    save("module", states)
    save("protocol4", states, pickle_protocol=4)
    safe("module", states)
    # As EAGLE's authors publish their drafters.
    drafter = safetensors.torch.load_file(HERE / "drafters/eagle1/model.safetensors")
    save("eagle1", collections.OrderedDict(drafter))
    # And as PEFT did adapters.
    save("adapter", safetensors.torch.load_file(
        HERE / "adapters/llama-patterns/adapter_model.safetensors"))

    matrix = torch.arange(6.0).view(2, 3)
    save("transposed", {"a": matrix.t()})
    save("legacy", {"a": matrix}, _use_new_zipfile_serialization=False)
    save("whole_module", torch.nn.Linear(2, 2))
    save("nested", {"model": {"a": matrix}})
    save("one_tensor", matrix)
    save("float8", {"a": matrix.to(torch.float8_e4m3fn)})


if __name__ == "__main__":
    sys.exit(main())
