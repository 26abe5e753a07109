#!/usr/bin/env python3
"""Writes families/NAME beside itself for each family of families.py, or for those named: a small
model of random weights, and golden.json with what `transformers` computes from it in float32.
README.md beside it says what the fields mean and how to install what this needs.

    tests/golden/make_families.py [NAME]...
"""

import json
import math
import shutil
import sys
import tempfile

import safetensors.torch
import torch
import transformers

from families import FAMILIES, SAVED
from golden import HERE, versions, write_each

PROMPT, CONTINUATION, PROBES = 48, 64, 16
LEAST_GAP = 1e-3  # Between the two best logits, wherever a token is chosen.
MOST_ERROR = 1e-4  # Between a logit that is decoded and that of a pass over everything.
MOST_CHANGE = 3e-3  # The change of a logit when weights change by a few millionths of their size.
LEAST_DISTINCT = 10  # Different tokens in a continuation.
SEEDS = range(100)


class MiMoConfig(transformers.Qwen2Config):
    model_type = "mimo"


class MiMoForCausalLM(transformers.Qwen2ForCausalLM):
    """What the authors' modeling_mimo.py makes of Qwen2, but for the layers that guess."""
    config_class = MiMoConfig


transformers.AutoConfig.register("mimo", MiMoConfig)
transformers.AutoModelForCausalLM.register(MiMoConfig, MiMoForCausalLM)


def randomize(model, generator):
    """Gives each weight random numbers that BF16 holds: products keep the size of their inputs,
    gains and biases lie around what they are in a new model (1 or 0). Where the embedding table is
    the lm head too it is small, and the final norm large: else each token would be its own next."""
    tied = model.config.tie_word_embeddings
    normal = lambda shape, size: torch.randn(shape, generator=generator) * size
    for name, weight in model.state_dict().items():
        if name.endswith("A_log"):
            values = torch.log(0.05 + 0.5 * torch.rand(weight.shape, generator=generator))
        elif weight.ndim == 1:
            values = float(weight.mean() > 0.5) + normal(weight.shape, 0.3)
            if tied and name == "model.norm.weight":
                values += 2
        elif "embed" in name or "lm_head" in name:
            values = normal(weight.shape, 0.15 if tied else 0.5)
        else:
            sharp = ("gate.weight", "router", "q_proj", "k_proj", "qkv_proj", "kv_b_proj")
            size = 2 if any(part in name for part in sharp) else 1
            if hasattr(model.config, "swiglu_limit") and name.endswith("gate_up_proj"):
                size = 4  # Some are beyond the limit.
            values = normal(weight.shape, size / math.sqrt(weight.shape[-1]))
        weight.copy_(values.to(torch.bfloat16).to(weight.dtype))


def in_blocks(matrices):
    """Matrices [experts, inputs, outputs] as published models have them in MXFP4: elements two by
    two [experts, outputs, blocks, 16], and the scales [experts, outputs, blocks] of 32."""
    numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    blocks = matrices.transpose(1, 2).float().unflatten(-1, (-1, 32))
    exponents = (blocks.abs().amax(-1).log2().floor() - 2).clamp(min=-126)
    sizes = blocks.abs() / 2 ** exponents[..., None]
    elements = (sizes[..., None] - numbers).abs().argmin(-1) + 8 * (blocks < 0)
    return ((elements[..., ::2] + 16 * elements[..., 1::2]).to(torch.uint8),
            (exponents + 127).to(torch.uint8))


def put_into_blocks(file):
    """The weights of experts."""
    tensors = safetensors.torch.load_file(file)
    for name in [name for name in tensors if name.endswith(("experts.gate_up_proj",
                                                            "experts.down_proj"))]:
        tensors[name + "_blocks"], tensors[name + "_scales"] = in_blocks(tensors.pop(name))
    safetensors.torch.save_file(tensors, file, {"format": "pt"})


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager",
        experts_implementation="eager").eval()


def write_model(folder, config, seed):
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.from_pretrained(folder), dtype=torch.float32)
    randomize(model, torch.Generator().manual_seed(seed))
    with tempfile.TemporaryDirectory() as saved:
        model.to(torch.bfloat16).save_pretrained(saved)
        shutil.copyfile(f"{saved}/model.safetensors", folder / "model.safetensors")
    if "quantization_config" in config:
        put_into_blocks(folder / "model.safetensors")


def continue_greedily(model, prompt):
    """The tokens, the logits before each, and the least gap between the two best."""
    cache, tokens, rows = None, [], []
    fed, begin = prompt, 0
    while len(tokens) < CONTINUATION:
        places = torch.arange(begin, begin + len(fed))
        output = model(torch.tensor([fed]), position_ids=places[None], past_key_values=cache,
                       use_cache=True)
        cache = output.past_key_values
        begin += len(fed)
        rows.append(output.logits[0, -1])
        tokens.append(int(rows[-1].argmax()))
        fed = tokens[-1:]
    best = torch.stack(rows).topk(2).values
    return tokens, rows, float((best[:, 0] - best[:, 1]).min())


def changed(model, generator):
    """A copy whose weights are changed by a few millionths of their size."""
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 1 + 3e-6 * torch.randn(weight.shape, generator=generator)
    return model


def attempt(folder, config, seed):
    """Writes the model of a seed. Returns its golden values, or why it is not taken."""
    write_model(folder, config, seed)
    model = load(folder)
    vocabulary = config["vocab_size"]
    generator = torch.Generator().manual_seed(1000 + seed)
    prompt = torch.randint(3, vocabulary, (PROMPT,), generator=generator).tolist()
    tokens, rows, gap = continue_greedily(model, prompt)
    if gap < LEAST_GAP:
        return f"the two best logits are {gap:.1e} apart"
    if len(set(tokens)) < LEAST_DISTINCT:
        return f"the continuation has {len(set(tokens))} different tokens only"
    whole = model(torch.tensor([prompt + tokens])).logits[0]
    decoded = float((torch.stack(rows) - whole[PROMPT - 1:-1]).abs().max())
    if decoded > MOST_ERROR:
        return f"decoding and prefill differ by {decoded:.1e}"
    other = changed(load(folder), generator)(torch.tensor([prompt + tokens])).logits[0]
    change = float((other - whole).abs().max())
    if change > MOST_CHANGE:
        return f"the least change of weights changes logits by {change:.1e}"
    probes = torch.randperm(vocabulary, generator=generator)[:PROBES].sort().values
    prompt_logits = model(torch.tensor([prompt])).logits[0]
    print(f"  deviation {whole.std():.2f}, gap {gap:.4f}, {len(set(tokens))} different tokens, "
          f"decoded {decoded:.1e}, changed {change:.1e}")
    numbers = lambda values: [round(float(x), 5) for x in values]
    return {
        "made_with": versions("torch", "transformers"), "seed": seed, "prompt_ids": prompt,
        "probe_ids": probes.tolist(), "probe_logits": [numbers(row[probes]) for row in
                                                       prompt_logits],
        "best_ids": prompt_logits.argmax(-1).tolist(), "last_logits": numbers(prompt_logits[-1]),
        "greedy_ids": tokens, "final_logits": numbers(whole[-1]),
    }


def write_saved(name):
    """families/NAME-saved: the same model as `transformers` saves it in its own form."""
    source = HERE / "families" / name
    folder = HERE / "families" / f"{name}-saved"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as saved:
        load(source).to(torch.bfloat16).save_pretrained(saved, save_original_format=False)
        for file in ("config.json", "model.safetensors"):
            shutil.copyfile(f"{saved}/{file}", folder / file)
    shutil.copyfile(source / "golden.json", folder / "golden.json")


def main():
    torch.set_grad_enabled(False)
    transformers.utils.logging.disable_progress_bar()
    chosen = sys.argv[1:] or FAMILIES
    write_each("families", chosen,
               lambda folder, name, seed: attempt(folder, FAMILIES[name], seed), SEEDS)
    for name in SAVED:
        if name in chosen:
            write_saved(name)


if __name__ == "__main__":
    main()
