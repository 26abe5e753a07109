#!/usr/bin/env python3
"""Every quantised format against the Python package `gguf`, bit for bit: formats_test.py
CONVERT_BLOCKS BUILD_FOLDER. Blocks that are read are what that package makes of weights where it can
quantise, and random bytes, every bit of which then counts. Blocks that are written are those that
it writes; of formats whose scales are searched, which it does not write, it reads what we mean."""

import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).parent
sys.path.append(str(SOURCE.parent))
from python_packages import run_with

BLOCKS = 400
# Where the scales of a block lie, which as random bytes would be infinite or none.
HALVES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0],
          "IQ4_XS": [0], "MXFP4": []}
NOT_WRITTEN = ("IQ4_NL", "IQ4_XS", "MXFP4")
# The most, relative and root mean square, by which formats of searched scales may change weights.
ERRORS = {"Q2_K": 0.32, "Q3_K": 0.2, "Q4_K": 0.1, "Q5_K": 0.05, "Q6_K": 0.027}


def random_blocks(name, block_bytes, random):
    import numpy as np
    blocks = random.integers(0, 256, (BLOCKS, block_bytes), dtype=np.uint8)
    for at in HALVES[name]:
        scales = random.normal(0, 1, BLOCKS) * 10.0 ** random.integers(-7, 4, BLOCKS)
        blocks[:, at:at + 2] = scales.astype(np.float16).view(np.uint8).reshape(BLOCKS, 2)
    if name == "MXFP4":
        blocks[:, 0] = random.integers(0, 251, BLOCKS)  # Beyond it a float32 is infinite.
    return blocks


def convert(direction, name, values):
    """What our program makes of blocks, "from", or of floats, "to"."""
    result = subprocess.run([sys.argv[1], direction, name, str(len(values))],
                            input=values.tobytes(), capture_output=True, check=True)
    return result.stdout


def check_written(name, kind, random):
    """Weights of models, of heavy tails, of few different values (so that many lie between two
    codes), tiny and zero ones."""
    import gguf
    import numpy as np
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    shape = (BLOCKS, elements)
    samples = [random.normal(0, 0.02, shape), random.standard_t(3, shape),
               random.integers(-4, 5, shape) / 8, random.normal(0, 1e-7, shape), np.zeros(shape)]
    for weights in samples:
        weights = weights.astype(np.float32)
        written = np.frombuffer(convert("to", name, weights), np.uint8).reshape(BLOCKS, size)
        try:
            wanted = gguf.quants.quantize(weights, kind).view(np.uint8).reshape(BLOCKS, size)
            if not np.array_equal(written, wanted):
                block = np.flatnonzero((written != wanted).any(axis=1))[0]
                sys.exit(f"{name}: the block of {weights[block]} is {written[block]}, not "
                         f"{wanted[block]}")
        except NotImplementedError:
            read = gguf.quants.dequantize(written, kind).reshape(shape)
            error = np.sqrt(np.mean((read - weights) ** 2) / max(np.mean(weights ** 2), 1e-30))
            if np.abs(weights).max() > 1e-3 and error > ERRORS[name]:
                sys.exit(f"{name}: quantising changes weights by {error:.3f} of their size")


def main():
    import gguf
    import gguf.quants
    import numpy as np
    random = np.random.default_rng(7)
    for name in HALVES:
        kind = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        samples = [random_blocks(name, size, random)]
        try:
            weights = random.normal(0, 0.02, (BLOCKS, elements)).astype(np.float32)
            samples.append(gguf.quants.quantize(weights, kind).reshape(BLOCKS, size))
        except NotImplementedError:
            pass
        for blocks in samples:
            wanted = gguf.quants.dequantize(blocks, kind).reshape(-1).astype(np.float32)
            got = np.frombuffer(convert("from", name, blocks), np.float32)
            if got.size != wanted.size:
                sys.exit(f"{name}: {got.size} elements, not {wanted.size}")
            wrong = np.flatnonzero(got.view(np.uint32) != wanted.view(np.uint32))
            if wrong.size:
                at = wrong[0]
                sys.exit(f"{name}: {wrong.size} of {got.size} elements differ; the first is "
                         f"{at}: {got[at]!r}, not {wanted[at]!r}")
        if name not in NOT_WRITTEN:
            check_written(name, kind, random)
        print(f"{name}: {len(samples)} x {BLOCKS} blocks equal")
    for name in ("F16", "BF16"):
        check_written(name, gguf.GGMLQuantizationType[name], random)


if __name__ == "__main__":
    run_with(pathlib.Path(sys.argv[2]), SOURCE / "requirements.txt")
    main()
