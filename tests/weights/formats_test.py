#!/usr/bin/env python3
"""Every quantised format against the Python package `gguf`, bit for bit: formats_test.py DEQUANTIZE
BUILD_FOLDER. The blocks are what that package makes of weights where it can quantise, and random
bytes, every bit of which then counts."""

import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).parent
sys.path.append(str(SOURCE.parent))
from python_packages import install

BLOCKS = 400
# Where the scales of a block lie, which as random bytes would be infinite or none.
HALVES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0],
          "IQ4_XS": [0], "MXFP4": []}


def random_blocks(name, block_bytes, random):
    import numpy as np
    blocks = random.integers(0, 256, (BLOCKS, block_bytes), dtype=np.uint8)
    for at in HALVES[name]:
        scales = random.normal(0, 1, BLOCKS) * 10.0 ** random.integers(-7, 4, BLOCKS)
        blocks[:, at:at + 2] = scales.astype(np.float16).view(np.uint8).reshape(BLOCKS, 2)
    if name == "MXFP4":
        blocks[:, 0] = random.integers(0, 251, BLOCKS)  # Beyond it a float32 is infinite.
    return blocks


def main():
    import gguf
    import gguf.quants
    import numpy as np
    program = sys.argv[1]
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
            result = subprocess.run([program, name, str(BLOCKS)], input=blocks.tobytes(),
                                    capture_output=True, check=True)
            got = np.frombuffer(result.stdout, np.float32)
            if got.size != wanted.size:
                sys.exit(f"{name}: {got.size} elements, not {wanted.size}")
            wrong = np.flatnonzero(got.view(np.uint32) != wanted.view(np.uint32))
            if wrong.size:
                at = wrong[0]
                sys.exit(f"{name}: {wrong.size} of {got.size} elements differ; the first is "
                         f"{at}: {got[at]!r}, not {wanted[at]!r}")
        print(f"{name}: {len(samples)} x {BLOCKS} blocks equal")


if __name__ == "__main__":
    if "FORMATS_TEST" not in os.environ:
        python = install(pathlib.Path(sys.argv[2]).resolve(), SOURCE / "requirements.txt")
        os.execve(python, [str(python), *sys.argv], {**os.environ, "FORMATS_TEST": "1"})
    main()
