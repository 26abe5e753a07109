"""Tensors in safetensors files, mapped when read, whole or not at all when written."""

import json
import os
import pathlib
import struct
from typing import Dict, Mapping, Optional, Tuple

import numpy
import torch

from .failure import Failure

# For each name in a header: the type that torch has, and the one of the same size that numpy has.
_TYPES = {
    "F32": (torch.float32, numpy.float32),
    "F16": (torch.float16, numpy.float16),
    "BF16": (torch.bfloat16, numpy.int16),
    "I64": (torch.int64, numpy.int64),
    "I32": (torch.int32, numpy.int32),
    "U8": (torch.uint8, numpy.uint8),
    "BOOL": (torch.bool, numpy.uint8),
}
_NAMES = {types[0]: name for name, types in _TYPES.items()}


class SafetensorsFile:
    """A file's tensors, read when they are asked for. `metadata` are its texts by name."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                length = struct.unpack("<Q", file.read(8))[0]
                if length > size - 8:
                    raise ValueError("its header is longer than the file")
                header = json.loads(file.read(length))
            self.metadata: Dict[str, str] = header.pop("__metadata__", {})
            self._start = 8 + length
            self._entries = {name: self._checked(name, entry, size - self._start)
                             for name, entry in header.items()}
        except OSError as error:
            raise Failure(f"{path} cannot be read: {error.strerror}") from error
        except (AttributeError, KeyError, TypeError, ValueError, struct.error) as error:
            raise Failure(f"{path} is not a safetensors file: {error}") from error

    @staticmethod
    def _checked(name: str, entry: Mapping, size: int) -> Tuple[str, Tuple[int, ...], int]:
        """Type, shape and begin of a tensor that lies inside the `size` bytes of data."""
        shape = tuple(int(length) for length in entry["shape"])
        begin, end = (int(offset) for offset in entry["data_offsets"])
        if min(shape, default=0) < 0 or not 0 <= begin <= end <= size:
            raise ValueError(f"tensor '{name}' does not lie in the file")
        if entry["dtype"] in _TYPES:
            width = numpy.dtype(_TYPES[entry["dtype"]][1]).itemsize
            # Not numpy's product, which wraps around.
            count = 1
            for length in shape:
                count *= length
            if count * width != end - begin:
                raise ValueError(f"tensor '{name}' has {end - begin} bytes where its shape "
                                 f"needs {count * width}")
        return entry["dtype"], shape, begin

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def tensor(self, name: str) -> torch.Tensor:
        """A tensor over the mapped file: it must not be written to."""
        if name not in self._entries:
            raise Failure(f"{self.path} has no tensor '{name}'")
        kind, shape, begin = self._entries[name]
        if kind not in _TYPES:
            raise Failure(f"{self.path}: tensor '{name}' is {kind}; of use are {', '.join(_TYPES)}")
        torch_type, numpy_type = _TYPES[kind]
        if 0 in shape:
            return torch.empty(shape, dtype=torch_type)
        # Copy on write: torch has no tensors that cannot be written to.
        mapped = numpy.memmap(self.path, numpy_type, "c", self._start + begin, shape)
        tensor = torch.from_numpy(mapped)
        return tensor if tensor.dtype == torch_type else tensor.view(torch_type)


def write_safetensors(path: pathlib.Path, tensors: Mapping[str, torch.Tensor],
                      metadata: Optional[Mapping[str, str]] = None) -> None:
    """Writes a file that is there in whole or, where this is interrupted, not at all."""
    header: Dict[str, object] = {"__metadata__": dict(metadata or {})}
    arrays = []
    offset = 0
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        kind = _NAMES[plain.dtype]
        array = plain.view(torch.int16).numpy() if kind == "BF16" else plain.numpy()
        header[name] = {"dtype": kind, "shape": list(plain.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
        arrays.append(array)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # The data begin at a multiple of 8, as readers expect.

    def write(file) -> None:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays:
            file.write(array.tobytes())

    write_whole(path, write)


def write_whole(path: pathlib.Path, write) -> None:
    """Calls `write` with a file that takes the place of `path` when all of it is on the disk."""
    unfinished = path.with_name(path.name + ".unfinished")
    with open(unfinished, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
