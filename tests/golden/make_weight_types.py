#!/usr/bin/env python3
"""Writes weight_types.json beside itself: for each type of weights how to make a small Llama whose
matrices have it, and the logits that `transformers` computes in float32 from that model's GGUF file,
which it dequantises with the package `gguf`. README.md beside it says what the fields mean and how
to install what this needs.

    tests/golden/make_weight_types.py
"""

import json
import math
import pathlib
import tempfile

import gguf
import gguf.quants
import numpy as np
import torch
import transformers

from golden import HERE, versions

LAYERS, HIDDEN, INTERMEDIATE, HEADS, KV_HEADS, HEAD_DIM = 2, 256, 512, 8, 2, 64
VOCABULARY, CONTEXT, EPSILON, THETA = 64, 64, 1e-5, 10000.0
TOKENS = [(7 * i * i + 3 * i + 1) % VOCABULARY for i in range(24)]
ROWS = 6  # The last of them, whose logits are kept.

# What becomes of the random bytes of a block: at an offset, of an integer of that many bytes, some
# bits are kept and others set. Scales, which are halves, become of a size by which all models have
# similar weights; a block's minimum is near the mean of what it is taken from, so that weights are
# around 0.
FRACTION, SIGN = 0x3FF, 0x8000
half = lambda exponent: exponent << 10
least = lambda offset, exponent, sign=0: (offset, 2, 0x7F, sign | half(exponent) | 0x180)
CHANGES = {
    "F32": [(0, 4, 0x81FFFFFF, 0x3C000000)], "F16": [(0, 2, 0x8FFF, 0x2000)],
    "BF16": [(0, 2, 0x81FF, 0x3C00)],
    "Q8_0": [(0, 2, SIGN | FRACTION, half(4))],
    "Q4_0": [(0, 2, SIGN | FRACTION, half(8))],
    "Q4_1": [(0, 2, FRACTION, half(8)), least(2, 11, SIGN)],
    "Q5_0": [(0, 2, SIGN | FRACTION, half(7))],
    "Q5_1": [(0, 2, FRACTION, half(7)), least(2, 11, SIGN)],
    "Q2_K": [(80, 2, FRACTION, half(6)), (82, 2, 0xFF, half(7))],
    "Q3_K": [(108, 2, SIGN | FRACTION, half(5))],
    "Q4_K": [(0, 2, FRACTION, half(2)), least(2, 5)],
    "Q5_K": [(0, 2, FRACTION, half(1)), least(2, 5)],
    "Q6_K": [(208, 2, SIGN | FRACTION, half(0))],  # Below the smallest normal half.
    "IQ4_NL": [(0, 2, SIGN | FRACTION, half(4))],
    "IQ4_XS": [(0, 2, SIGN | FRACTION, half(0))],
    "MXFP4": [(0, 1, 0x01, 120)],
}
GAINS = [(0, 4, 0x00FFFFFF, 0x3F000000)]  # From 0.5 to 2, as F32.


def tensors():
    """Name and shape of every tensor, in the order in which they are made."""
    yield "token_embd.weight", (VOCABULARY, HIDDEN)
    for layer in range(LAYERS):
        for name, shape in {"attn_norm": (HIDDEN,), "attn_q": (HEADS * HEAD_DIM, HIDDEN),
                            "attn_k": (KV_HEADS * HEAD_DIM, HIDDEN),
                            "attn_v": (KV_HEADS * HEAD_DIM, HIDDEN),
                            "attn_output": (HIDDEN, HEADS * HEAD_DIM), "ffn_norm": (HIDDEN,),
                            "ffn_gate": (INTERMEDIATE, HIDDEN), "ffn_up": (INTERMEDIATE, HIDDEN),
                            "ffn_down": (HIDDEN, INTERMEDIATE)}.items():
            yield f"blk.{layer}.{name}.weight", shape
    yield "output_norm.weight", (HIDDEN,)
    yield "output.weight", (VOCABULARY, HIDDEN)


def random_bytes(tensor, count):
    """Byte i of tensor number t is the lowest byte of a mixture of t * 2^32 + i."""
    words = np.arange(count, dtype=np.uint64) + np.uint64(tensor << 32)
    for _ in range(3):
        words *= np.uint64(0x9E3779B97F4A7C15)
        words ^= words >> np.uint64(32)
    return (words & np.uint64(0xFF)).astype(np.uint8)


def make_blocks(tensor, kind, elements, changes):
    per_block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    blocks = random_bytes(tensor, elements // per_block * block_bytes).reshape(-1, block_bytes)
    for offset, width, keep, bits in changes:
        field = blocks[:, offset:offset + width]
        for byte in range(width):
            field[:, byte] &= np.uint8(keep >> (8 * byte) & 0xFF)
            field[:, byte] |= np.uint8(bits >> (8 * byte) & 0xFF)
    return blocks


def write_model(path, kind):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INTERMEDIATE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_rope_freq_base(THETA)
    writer.add_vocab_size(VOCABULARY)
    for number, (name, shape) in enumerate(tensors()):
        of = gguf.GGMLQuantizationType.F32 if len(shape) == 1 else kind
        blocks = make_blocks(number, of, math.prod(shape),
                             GAINS if len(shape) == 1 else CHANGES[kind.name])
        rows = blocks.reshape(shape[0], -1) if len(shape) == 2 else blocks.view(np.float32)[:, 0]
        writer.add_tensor(name, rows, raw_dtype=of)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def compute_logits(folder, file):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file, dtype=torch.float32, attn_implementation="eager").eval()
    config = model.config
    assert (config.head_dim, config.num_key_value_heads) == (HEAD_DIM, KV_HEADS), config
    assert not config.tie_word_embeddings
    with torch.no_grad():
        return model(torch.tensor([TOKENS])).logits[0, -ROWS:].numpy()


def main():
    transformers.utils.logging.disable_progress_bar()
    kinds = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, changes in CHANGES.items():
            kind = gguf.GGMLQuantizationType[name]
            write_model(pathlib.Path(folder) / f"{name}.gguf", kind)
            logits = compute_logits(folder, f"{name}.gguf")
            print(f"{name}: logits from {logits.min():.3f} to {logits.max():.3f}, deviation "
                  f"{logits.std():.3f}")
            assert np.isfinite(logits).all() and logits.std() > 0.1
            kinds[name] = {"number": int(kind), "changes": changes,
                           "logits": [[round(float(x), 6) for x in row] for row in logits]}
    golden = {
        "made_with": versions("torch", "transformers", "gguf", "numpy"),
        "config": {"context_length": CONTEXT, "embedding_length": HIDDEN, "block_count": LAYERS,
                   "feed_forward_length": INTERMEDIATE, "attention.head_count": HEADS,
                   "attention.head_count_kv": KV_HEADS, "attention.key_length": HEAD_DIM},
        "norm_epsilon": EPSILON, "rope_theta": THETA,
        "tensors": [[name, list(shape)] for name, shape in tensors()],
        "gains": GAINS, "prompt_ids": TOKENS, "types": kinds,
    }
    (HERE / "weight_types.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
