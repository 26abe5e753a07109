#!/usr/bin/env python3
"""Writes parallel/NAME beside itself: a small draft of random weights that says several positions
in one pass, and golden.json with what `transformers` computes from it in float32. README.md beside
it says what the fields mean and how to install what this needs.

    tests/golden/make_parallel.py [NAME]...
"""

import sys

import torch

from golden import versions, write_each
from make_families import load, write_model

POSITIONS = 6
PROMPT = 30
COMMITTED = [4, 1, 7]  # Tokens between two passes: some drafts accepted, none, all.
VOCABULARY = 128
SEEDS = range(20)

# As AMD's PARD has them: an ordinary model whose config.json names the token that its masks are.
DRAFTS = {
    "pard": {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCABULARY,
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False,
        "bos_token_id": 1, "eos_token_id": 2, "pard_token": VOCABULARY - 3},
}


def attempt(folder, name, seed):
    """Passes of PARD's `generate`: all tokens so far, then masks; the last POSITIONS rows count."""
    config = DRAFTS[name]
    write_model(folder, config, seed)
    model = load(folder)
    generator = torch.Generator().manual_seed(1000 + seed)
    count = PROMPT + sum(COMMITTED)
    tokens = torch.randint(3, config["pard_token"], (count,), generator=generator).tolist()
    masks = [config["pard_token"]] * (POSITIONS - 1)
    passes = []
    for committed in [PROMPT + sum(COMMITTED[:n]) for n in range(len(COMMITTED) + 1)]:
        logits = model(torch.tensor([tokens[:committed] + masks])).logits[0, committed - 1:]
        passes.append({"committed": committed,
                       "logits": [[round(float(x), 5) for x in row] for row in logits]})
    return {"made_with": versions("torch", "transformers"), "seed": seed, "token_ids": tokens,
            "passes": passes}


if __name__ == "__main__":
    with torch.no_grad():
        write_each("parallel", sys.argv[1:] or sorted(DRAFTS), attempt, SEEDS)
