#!/usr/bin/env python3
"""Writes adapters/NAME beside itself for each adapter below, or for those named: a low-rank adapter
of random numbers for the model families/MODEL, as PEFT saves it, and golden.json with what PEFT
and `transformers` compute with it in float32. README.md beside it says what the fields mean.

    tests/golden/make_adapters.py [NAME]...
"""

import json
import pathlib
import shutil
import sys
import tempfile

import peft
import torch
import transformers

from golden import HERE, versions, write_each

PROMPT, CONTINUATION = 40, 24
LEAST_GAP = 1e-3  # Between the two best logits, wherever a token is chosen.
LEAST_CHANGE = 0.2  # By the adapter, as a share of the largest logit.
SEEDS = range(100)

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
ALL = [*ATTENTION, "gate_proj", "up_proj", "down_proj"]

# The model, and what of LoraConfig is not as it is without being said.
ADAPTERS = {
    "llama": ("llama", dict(r=4, lora_alpha=8, target_modules=ALL)),
    # A tensor of some layers only, and of a rank and a scale of its own.
    "llama-patterns": ("llama", dict(r=2, lora_alpha=6, target_modules=["q_proj", "v_proj",
                                                                        "down_proj"],
                                     layers_to_transform=[1], rank_pattern={"down_proj": 6},
                                     alpha_pattern={"model.layers.1.self_attn.v_proj": 3})),
    "qwen2": ("qwen2", dict(r=8, lora_alpha=4, use_rslora=True,
                            target_modules=["q_proj", "k_proj", "v_proj"])),
    "qwen3": ("qwen3", dict(r=3, lora_alpha=6, target_modules=ALL)),
    "gemma3": ("gemma3", dict(r=4, lora_alpha=8, target_modules=ALL)),
    "phi3": ("phi3-long", dict(r=4, lora_alpha=8, target_modules=["qkv_proj", "o_proj",
                                                                  "gate_up_proj", "down_proj"])),
    "glm4": ("glm4", dict(r=4, lora_alpha=8, target_modules=[*ATTENTION, "gate_up_proj",
                                                             "down_proj"])),
    "cohere": ("cohere", dict(r=4, lora_alpha=8, target_modules=ALL)),
    "granite": ("granite", dict(r=4, lora_alpha=16, target_modules=ALL)),
    "olmo2": ("olmo2", dict(r=4, lora_alpha=8, target_modules=ALL)),
    "smollm3": ("smollm3", dict(r=4, lora_alpha=8, target_modules=ALL)),
    "mixtral": ("mixtral", dict(r=4, lora_alpha=8, target_modules=ATTENTION)),
}


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager",
        experts_implementation="eager").eval()


def write_adapter(folder, model_name, options, seed):
    """Random factors, whose products are about as large as what they are added to."""
    model = load(HERE / "families" / model_name)
    config = peft.LoraConfig(task_type="CAUSAL_LM", **options)
    adapted = peft.get_peft_model(model, config)
    generator = torch.Generator().manual_seed(seed)
    for name, weight in adapted.named_parameters():
        if "lora_" in name:
            values = torch.randn(weight.shape, generator=generator) * weight.shape[-1] ** -0.5
            weight.copy_(values.to(torch.bfloat16).to(weight.dtype))
    with tempfile.TemporaryDirectory() as saved:
        adapted.save_pretrained(saved)
        shutil.copyfile(f"{saved}/adapter_model.safetensors", folder / "adapter_model.safetensors")
        fields = json.loads((pathlib.Path(saved) / "adapter_config.json").read_text())
    fields["base_model_name_or_path"] = model_name
    if isinstance(fields.get("target_modules"), list):
        fields["target_modules"].sort()  # PEFT's own order changes from run to run.
    (folder / "adapter_config.json").write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n")


def attempt(folder, model_name, options, seed):
    """Writes the adapter of a seed. Returns its golden values, or why it is not taken."""
    write_adapter(folder, model_name, options, seed)
    model = load(HERE / "families" / model_name)
    generator = torch.Generator().manual_seed(1000 + seed)
    vocabulary = model.config.vocab_size
    prompt = torch.randint(3, vocabulary, (PROMPT,), generator=generator).tolist()
    plain = model(torch.tensor([prompt])).logits[0, -1]
    model = peft.PeftModel.from_pretrained(model, folder).eval()
    tokens = list(prompt)
    while len(tokens) < PROMPT + CONTINUATION:
        best = model(torch.tensor([tokens])).logits[0, -1].topk(2)
        if float(best.values[0] - best.values[1]) < LEAST_GAP:
            return "the two best logits are too close"
        tokens.append(int(best.indices[0]))
    logits = model(torch.tensor([tokens])).logits[0]
    change = float((logits[PROMPT - 1] - plain).abs().max() / plain.abs().max())
    if change < LEAST_CHANGE:
        return f"the adapter changes logits by {change:.2f} only"
    print(f"  seed {seed}: changes logits by {change:.2f}", flush=True)
    numbers = lambda values: [round(float(x), 5) for x in values]
    return {"made_with": versions("torch", "transformers", "peft"), "model": model_name,
            "seed": seed, "prompt_ids": prompt, "last_logits": numbers(logits[PROMPT - 1]),
            "greedy_ids": tokens[PROMPT:], "final_logits": numbers(logits[-1])}


def main():
    torch.set_grad_enabled(False)
    transformers.utils.logging.disable_progress_bar()
    write_each("adapters", sys.argv[1:] or ADAPTERS,
               lambda folder, name, seed: attempt(folder, *ADAPTERS[name], seed), SEEDS)


if __name__ == "__main__":
    main()
