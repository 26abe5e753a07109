#!/usr/bin/env python3
"""Writes states.json beside itself: the final states (the final norm's output) of the bundled models'
prompts, and the log-probability of each prompt token but the first after those before it, computed in
float64 from the safetensors files by plain Python. What is computed is first held against the logits
in each model's golden.json.

    tests/golden/make_states.py
"""

import array
import json
import math
import pathlib
import struct
import sys
from operator import mul

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parents[1] / "models"
NAMES = ("demo-target", "demo-draft")


def load(folder):
    """The tensors by name, each a list of rows; a vector is a tensor of one row."""
    data = (folder / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "BF16", entry
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        # A bfloat16 is the upper half of a float32.
        bits = array.array("I", (half << 16 for (half,) in struct.iter_unpack("<H", data[begin:end])))
        values = list(map(float, array.array("f", bits.tobytes())))
        width = entry["shape"][-1]
        tensors[name] = [values[i:i + width] for i in range(0, len(values), width)]
    return tensors


def dot(a, b):
    return math.fsum(map(mul, a, b))


def product(matrix, vector):
    return [dot(row, vector) for row in matrix]


def plus(a, b):
    return [x + y for x, y in zip(a, b)]


def norm(vector, gain, epsilon):
    scale = 1 / math.sqrt(dot(vector, vector) / len(vector) + epsilon)
    return [x * scale * g for x, g in zip(vector, gain[0])]


def rotated(head, position, base):
    """Element i turned with element i + half, as Hugging Face pairs them."""
    half = len(head) // 2
    turned = [0.0] * len(head)
    for i in range(half):
        angle = position * base ** (-i / half)
        cos, sin = math.cos(angle), math.sin(angle)
        turned[i] = head[i] * cos - head[i + half] * sin
        turned[i + half] = head[i + half] * cos + head[i] * sin
    return turned


def heads(vector, width):
    return [vector[i:i + width] for i in range(0, len(vector), width)]


def attended(query, keys, values):
    scores = [dot(query, key) / math.sqrt(len(query)) for key in keys]
    largest = max(scores)
    weights = [math.exp(score - largest) for score in scores]
    total = math.fsum(weights)
    return [dot(weights, column) / total for column in zip(*values)]


def final_states(config, tensors, tokens):
    width, base = config["head_dim"], config["rope_theta"]
    epsilon = config["rms_norm_eps"]
    group = config["num_attention_heads"] // config["num_key_value_heads"]
    rows = [tensors["model.embed_tokens.weight"][token] for token in tokens]
    for layer in range(config["num_hidden_layers"]):
        weight = lambda name: tensors[f"model.layers.{layer}.{name}.weight"]
        keys, values, after = [], [], []
        for position, row in enumerate(rows):
            normed = norm(row, weight("input_layernorm"), epsilon)
            turn = lambda name: [rotated(head, position, base) for head in
                                 heads(product(weight(name), normed), width)]
            keys.append(turn("self_attn.k_proj"))
            values.append(heads(product(weight("self_attn.v_proj"), normed), width))
            mixed = []
            for i, query in enumerate(turn("self_attn.q_proj")):
                mixed += attended(query, [key[i // group] for key in keys],
                                  [value[i // group] for value in values])
            row = plus(row, product(weight("self_attn.o_proj"), mixed))
            normed = norm(row, weight("post_attention_layernorm"), epsilon)
            gate = product(weight("mlp.gate_proj"), normed)
            up = product(weight("mlp.up_proj"), normed)
            silu = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)]
            after.append(plus(row, product(weight("mlp.down_proj"), silu)))
        rows = after
    return [norm(row, tensors["model.norm.weight"], epsilon) for row in rows]


def log_probability(logits, token):
    largest = max(logits)
    return logits[token] - largest - math.log(math.fsum(math.exp(x - largest) for x in logits))


def main():
    models = {}
    for name in NAMES:
        config = json.loads((MODELS / name / "config.json").read_text())
        golden = json.loads((MODELS / name / "golden.json").read_text())
        tensors = load(MODELS / name)
        tokens = golden["prompt_ids"]
        states = final_states(config, tensors, tokens)
        head = tensors.get("lm_head.weight", tensors["model.embed_tokens.weight"])
        logits = [product(head, state) for state in states]
        error = max(abs(a - b) for a, b in zip(logits[-1], golden["last_logits"]))
        if error > 1e-5:
            sys.exit(f"{name}: logits differ from golden.json's by {error}")
        mean = [math.fsum(column) / len(states) for column in zip(*states)]
        logprobs = [log_probability(row, token) for row, token in zip(logits, tokens[1:])]
        models[name] = {"prompt_ids": tokens,
                        "logprobs": [round(value, 9) for value in logprobs],
                        "last": [round(value, 9) for value in states[-1]],
                        "mean": [round(value, 9) for value in mean]}
        print(f"{name}: {len(states)} rows of {len(mean)}; logits agree within {error:.1e}")
    (HERE / "states.json").write_text(json.dumps(models) + "\n")


if __name__ == "__main__":
    main()
