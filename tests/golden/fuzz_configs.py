#!/usr/bin/env python3
"""Changes every field of config.json of every small model in families/, and compares what
Foretoken makes of it with what `transformers` does. README.md beside it says how to run it, how
long it takes and what it counts.

    tests/golden/fuzz_configs.py PROGRAM [--part SHARE] [--seed N] [--log FILE] [--write] [NAME]...

PROGRAM is the built folder_logits. --part tries a share of the cases, by the seed. --write puts a
part of the cases into configs/NAME.json, which a test reads that needs no Python."""

import argparse
import collections
import copy
import dataclasses
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import transformers

import make_families
from golden import HERE, versions

MOST_APART = 1e-3  # A share of the largest logit.
ROWS = 40  # More than windows are long, and longer than the first context of a longrope.
PROBES = 8
WRITTEN = 12  # Cases of each model that --write keeps, beside those of KEPT.
KEPT = ("use_sliding_window", "layer_types", "swiglu_alpha", "hidden_act", "hidden_activation",
        "attn_logit_softcapping", "rope_theta", "rope_scaling", "rope_parameters",
        "partial_rotary_factor", "rms_norm_eps", "attention_multiplier", "norm_topk_prob",
        "routed_scaling_factor", "final_logit_softcapping", "per_layer_config",
        "num_experts", "num_local_experts", "n_routed_experts", "n_shared_experts",
        "num_experts_per_tok", "top_k_experts", "moe_topk", "first_k_dense_replace",
        "rope_interleave")
CONTEXTS = {"phi3": 128}  # The context that a model is used for where that is not its own.

# Fields that change no logit: what they are of.
METADATA = {
    "architectures": "the class, which model_type names too; another one is refused",
    "model_type": "another one is another family",
    "bos_token_id": "tokens that begin and end texts", "eos_token_id": "the same",
    "pad_token_id": "the same", "dtype": "how weights are kept in memory",
    "torch_dtype": "the same", "transformers_version": "what wrote the file",
    "use_cache": "how it is run", "initializer_range": "training", "attention_dropout": "training",
    "output_router_logits": "training", "router_aux_loss_coef": "training",
    "router_jitter_noise": "training", "resid_pdrop": "training", "embd_pdrop": "training",
    "hidden_dropout": "training", "pretraining_tp": "training", "output_attentions": "how it is run",
    "output_hidden_states": "how it is run", "return_dict": "how it is run",
    "is_encoder_decoder": "no such model", "chunk_size_feed_forward": "how it is run",
    "id2label": "classes of classifiers", "label2id": "the same", "problem_type": "the same",
    "quantization_config": "how weights are stored",
    "num_mtp_layers": "layers beside the model", "num_nextn_predict_layers": "the same"}


def excused(name, config):
    """Why a difference is none of ours, or an empty text."""
    rope = config.get("rope_scaling") or config.get("rope_parameters")
    if name == "gemma3" and "type" in (config.get("rope_scaling") or {}):
        return "Gemma 3's class leaves what rope_scaling calls type, as others do not"
    if not isinstance(rope, dict) or rope.get("rope_type", rope.get("type")) not in ("longrope",
                                                                                     "su"):
        return ""
    first = config.get("original_max_position_embeddings",
                       rope.get("original_max_position_embeddings", 0))
    used = CONTEXTS.get(name, config.get("max_position_embeddings", 0))
    if ROWS <= first < used:
        return "longrope is chosen by the context here, by the length of each text there"
    return ""


# These fields have names as values.
CHOICES = {
    "hidden_act": ["silu", "gelu_pytorch_tanh", "gelu", "relu", "gelu_new"],
    "hidden_activation": ["silu", "gelu_pytorch_tanh", "gelu", "relu"],
    "position_embedding_type": ["rope", "nope", None],
    "topk_method": ["greedy", "group_limited_greedy", "noaux_tc"],
    "scoring_func": ["softmax", "sigmoid"],
    "use_bidirectional_attention": [True, "vision", "all"]}
# What fields are set to that a model's class may not have at all.
STRANGERS = {
    "attention_bias": True, "attention_multiplier": 0.5, "attn_logit_softcapping": 4.0,
    "clip_qkv": 0.5, "decoder_sparse_step": 2, "embedding_multiplier": 2.0,
    "final_logit_softcapping": 4.0, "first_k_dense_replace": 1, "global_head_dim": 16,
    "head_dim": 8, "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "silu",
    "layer_norm_eps": 0.1, "layers_block_type": ["attention"], "logit_scale": 0.25,
    "logits_scaling": 3.0, "max_window_layers": 1, "mlp_bias": True, "mlp_only_layers": [0],
    "moe_layer_freq": 2, "n_group": 2, "no_rope_layers": [0, 1, 0, 1], "norm_topk_prob": True,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4,
    "num_kv_shared_layers": 1, "original_max_position_embeddings": 16,
    "partial_rotary_factor": 0.5, "position_embedding_type": "nope", "qk_layernorm": True,
    "query_pre_attn_scalar": 8, "qkv_bias": False, "residual_multiplier": 0.5,
    "rms_norm_eps": 0.1, "rope_interleave": False, "rope_local_base_freq": 100.0,
    "rope_theta": 300.0, "rotary_dims": 4, "routed_scaling_factor": 3.0, "scoring_func": "sigmoid",
    "shared_intermediate_size": 16, "sliding_window": 5, "sliding_window_pattern": 2,
    "swiglu_alpha": 1.0, "swiglu_limit": 3.0, "tie_word_embeddings": True,
    "topk_group": 1, "topk_method": "greedy", "top_k_experts": 1, "use_bidirectional_attention":
    True, "use_double_wide_mlp": True, "use_parallel_residual": True, "use_qk_norm": True,
    "use_qkv_bias": True, "use_sliding_window": True, "llama_4_scaling_beta": 0.3,
    "attention_output_bias": True, "linear_keys_in_turns": True, "latent_norm_eps": 0.1,
    "per_layer_config": {"1": {"head_dim": 8}}, "mscale_all_dim": 2.0, "factor": 3.0}


def others(field, value):
    """Values to put in the place of one, of its type and of others."""
    if field in CHOICES:
        return [each for each in CHOICES[field] if each != value] + ["zzz", None, 3]
    if isinstance(value, bool):
        return [not value, None, "true", 1 - int(value)]
    if isinstance(value, int):
        return [value + 1, value * 2, max(value // 2, 1), 0, -1, value + 0.5, str(value), None, True]
    if isinstance(value, float):
        return [value * 1.5, value * 0.25, value * 30, 0.0, int(value) + 1, -value, str(value), None]
    if isinstance(value, str):
        return [value + "x", None, 3]
    if isinstance(value, list):
        changed = [list(reversed(value)), value[:-1], value + value[-1:], [], None, "zzz"]
        if value and isinstance(value[0], str):
            changed += [["full_attention"] * len(value), ["sliding_attention"] * len(value)]
            changed += [["zzz"] * len(value)]
        return changed
    return [None, {}, "zzz"] if isinstance(value, dict) else [1, 0, "zzz", True, 0.5, []]


def rotations(pairs):
    """Objects such as rope_parameters."""
    factors = lambda step: [round(1 + step * i, 3) for i in range(pairs)]
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
              "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    long = {"rope_type": "longrope", "short_factor": factors(0.1), "long_factor": factors(0.5),
            "original_max_position_embeddings": 32}
    base = [{"rope_type": "default"}, {"rope_type": "linear", "factor": 3.0},
            {"rope_type": "dynamic", "factor": 3.0}, yarn, {**yarn, "attention_factor": 0.7},
            {**yarn, "mscale": 0.8, "mscale_all_dim": 0.4}, {**yarn, "truncate": False},
            {**yarn, "beta_fast": 8.0, "beta_slow": 2.0}, {**yarn, "factor": None}, llama3, long,
            {**long, "factor": 2.0}, {**long, "attention_factor": 1.3},
            {"rope_type": "proportional", "partial_rotary_factor": 0.5},
            {"rope_type": "proportional", "factor": 2.0}, {"rope_type": "zzz"},
            {"rope_type": "linear"}, {"rope_type": "su", **{k: long[k] for k in long if
                                                            k != "rope_type"}},
            {"rope_type": "mrope", "mrope_section": [1, 1, 1]}]
    yield from base
    for each in base[:4] + [llama3]:
        yield {**each, "rope_theta": 500.0}
        yield {**each, "rope_theta": 500.0, "partial_rotary_factor": 0.5}
        yield {**each, "llama_4_scaling_beta": 0.3, "original_max_position_embeddings": 8}
        yield {**each, "mscale_all_dim": 2.0}
        old = {name: value for name, value in each.items() if name != "rope_type"}
        yield {**old, "type": each["rope_type"]}
    yield {"full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0},
           "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}}
    yield {"full_attention": {"rope_type": "default", "rope_theta": 500.0}}


def changes(name, config, generator):
    """Pairs: what is changed, in words, and the configuration."""
    kind = config["model_type"]
    fields = {field.name: field.default for field in
              dataclasses.fields(type(transformers.AutoConfig.for_model(kind)))}
    def with_fields(**new):
        return {**copy.deepcopy(config), **new}
    for field in sorted(set(config) | set(fields)):
        if field in METADATA or field in ("rope_scaling", "rope_parameters"):
            continue
        if field in config:
            yield field, "left out", {k: v for k, v in config.items() if k != field}
        value = config.get(field, fields.get(field))
        if value is dataclasses.MISSING:
            continue
        if field not in config:
            yield field, f"is {value!r}", with_fields(**{field: value})
        for other in others(field, value):
            yield field, f"is {other!r}", with_fields(**{field: other})
    for field, value in STRANGERS.items():
        yield field, f"is {value!r}", with_fields(**{field: value})
    if "sliding_window" in fields:
        for count in range(3):
            asked = {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": count}
            yield "use_sliding_window", f"is True, max_window_layers {count}", {
                k: v for k, v in with_fields(**asked).items() if k != "layer_types"}
            types = ["sliding_attention" if i % 3 == count else "full_attention"
                     for i in range(config["num_hidden_layers"])]
            yield "layer_types", f"is {types}, windows asked for", with_fields(
                **asked, layer_types=types)
            yield "layer_types", f"is {types}, windows not asked for", with_fields(
                **{**asked, "use_sliding_window": False}, layer_types=types)
    if "per_layer_config" in config or kind == "gemma4_text":
        full = [i for i, each in enumerate(config["layer_types"]) if each == "full_attention"]
        bare = {k: v for k, v in config.items()
                if k not in ("global_head_dim", "num_global_key_value_heads")}
        for sizes in ({"head_dim": 32}, {"head_dim": 32, "num_key_value_heads": 1},
                      {"num_key_value_heads": 4}, {"head_dim": 24, "intermediate_size": 16}, {}):
            yield "per_layer_config", f"is {sizes} of layers without a window", {
                **bare, "per_layer_config": {str(i): sizes for i in full}}
        yield "per_layer_config", "is of the first layer", {
            **bare, "per_layer_config": {"0": {"head_dim": 32}}}
    head = config.get("qk_rope_head_dim") or config.get("head_dim") or (
        config["hidden_size"] // config["num_attention_heads"])
    bare = {k: v for k, v in config.items() if k not in ("rope_scaling", "rope_parameters")}
    yield "rope_parameters", "left out", bare
    for place in ("rope_scaling", "rope_parameters"):
        for rotation in rotations(head // 2):
            yield place, f"is {rotation}", {**copy.deepcopy(bare), place: rotation}
            if place == "rope_scaling" and generator.random() < 0.2:
                yield place, f"is {rotation} beside rope_parameters", {
                    **copy.deepcopy(bare), place: rotation,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 700.0}}
            if generator.random() < 0.2:
                yield place, f"is {rotation}, original_max_position_embeddings 16", {
                    **copy.deepcopy(bare), place: rotation, "original_max_position_embeddings": 16}


class Foretoken:
    """The program, asked for one folder after the other."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def logits(self, folder, context, tokens):
        """[rows, vocabulary], or the sentence that refuses it."""
        line = " ".join(map(str, [folder, context, *tokens])) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode()
        if answer.startswith("refused "):
            return answer[len("refused "):].strip()
        if not answer.startswith("computed "):
            sys.exit(f"the program died of {(folder / 'config.json').read_text()}")
        data = self.process.stdout.read(4 * int(answer.split()[1]))
        return np.frombuffer(data, np.float32).reshape(len(tokens), -1)


class Reference:
    """transformers: with the weights of the small model where they are what a configuration asks
    for, else with new random ones, which it leaves in the folder."""

    def __init__(self, weights):
        self.weights = weights

    def logits(self, folder, tokens):
        """[rows, vocabulary], or why there are none; and whether weights are the model's own."""
        try:
            model, own = self.load(folder), True
            if model is None:
                model, own = self.make(folder), False
            with torch.no_grad():
                logits = model(torch.tensor([tokens])).logits[0].float().numpy()
        except Exception as error:  # Whatever classes make of what they did not expect.
            return f"{type(error).__name__}: {str(error)[:200]}", True
        if not np.isfinite(logits).all():
            return "logits are no numbers", True
        return logits, own

    def load(self, folder):
        link = folder / "model.safetensors"
        link.unlink(missing_ok=True)
        link.symlink_to(self.weights)
        try:
            model, info = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype=torch.float32, attn_implementation="eager",
                experts_implementation="eager", output_loading_info=True,
                ignore_mismatched_sizes=True)
        except (RuntimeError, ValueError):
            return None
        if info["missing_keys"] or info["mismatched_keys"]:
            return None
        return model.eval()

    def make(self, folder):
        config = transformers.AutoConfig.from_pretrained(folder)
        model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=torch.float32, attn_implementation="eager").eval()
        if sum(weight.numel() for weight in model.parameters()) > 3e6:
            raise ValueError("is larger than a small model")
        make_families.randomize(model, torch.Generator().manual_seed(1))
        text = (folder / "config.json").read_text()
        (folder / "model.safetensors").unlink()
        model.save_pretrained(folder)
        (folder / "config.json").write_text(text)
        return make_families.load(folder)


def judge(reference, ours, field):
    """The outcome, and what is to be said of it."""
    if isinstance(reference, str):
        return "not run by transformers", reference
    if isinstance(ours, str):
        named = field in ours or any(word in ours for word in ("tensor", "rope", "rotat"))
        return ("refused" if named else "refused without the name"), ours
    if ours.shape != reference.shape:
        return "different", f"shapes {ours.shape} and {reference.shape}"
    apart = float(np.abs(ours - reference).max() / np.abs(reference).max())
    return ("equal" if apart < MOST_APART else "different"), f"{apart:.1e} apart"


def run(name, foretoken, part, seed, report):
    source = HERE / "families" / name
    config = json.loads((source / "config.json").read_text())
    golden = json.loads((source / "golden.json").read_text())
    tokens = golden["prompt_ids"][:ROWS]
    reference = Reference(source / "model.safetensors")
    generator = random.Random(seed)
    counts, cases = collections.Counter(), []
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        for field, change, changed in changes(name, config, generator):
            if generator.random() >= part:
                continue
            (folder / "config.json").write_text(json.dumps(changed))
            expected, own = reference.logits(folder, tokens)
            ours = foretoken.logits(folder, CONTEXTS.get(name, 0), tokens)
            outcome, detail = judge(expected, ours, field)
            reason = excused(name, changed) if outcome == "different" else ""
            if reason:
                outcome, detail = "excused", reason
            counts[outcome] += 1
            report(name, outcome, field, change, detail)
            if own and outcome in ("equal", "refused"):
                cases.append((field, change, changed, outcome, expected))
    return counts, cases, tokens


def write(name, cases, tokens, seed):
    """Keeps some cases of each field of KEPT, and some others; none with numbers that JSON has not,
    which `transformers` writes all the same."""
    cases = [case for case in cases if not re.search(r"\b(Infinity|NaN)\b", json.dumps(case[2]))]
    generator = random.Random(seed)
    generator.shuffle(cases)
    kept, left = [], collections.Counter()
    for case in cases:
        if case[0] in KEPT and left[case[0], case[3]] < 2:
            left[case[0], case[3]] += 1
            kept.append(case)
    kept += [case for case in cases if case[0] not in KEPT][:WRITTEN]
    base = json.loads((HERE / "families" / name / "config.json").read_text())
    written = []
    for field, change, changed, outcome, expected in kept:
        entry = {"field": field, "change": change, "outcome": outcome,
                 "removed": sorted(set(base) - set(changed)),
                 "set": {k: v for k, v in changed.items() if k not in base or base[k] != v
                         or type(base[k]) is not type(v)}}
        if outcome == "equal":
            row = expected[-1]
            entry["largest"] = round(float(np.abs(expected).max()), 4)
            entry["last_logits"] = [round(float(x), 4) for x in row[:: len(row) // PROBES]]
            entry["step"] = len(row) // PROBES
        written.append(entry)
    folder = HERE / "configs"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(
        {"made_with": versions("torch", "transformers"), "context": CONTEXTS.get(name, 0),
         "tokens": tokens, "cases": written}, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", type=float, default=1, help="share of the cases to try")
    parser.add_argument("--log", type=argparse.FileType("w"))
    options = parser.parse_intermixed_args()
    warnings.filterwarnings("ignore")
    transformers.utils.logging.set_verbosity(50)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    sums = collections.Counter()

    def report(name, outcome, field, change, detail):
        line = f"{name}\t{outcome}\t{field} {change}\t{detail}"
        if options.log:
            print(line, file=options.log, flush=True)
        if outcome in ("different", "refused without the name"):
            print(line, flush=True)

    for name in options.names or sorted(make_families.FAMILIES):
        counts, cases, tokens = run(name, Foretoken(options.program), options.part, options.seed,
                                    report)
        print(f"{name}: {sum(counts.values())} cases, {dict(sorted(counts.items()))}", flush=True)
        sums += counts
        if options.write:
            write(name, cases, tokens, options.seed)
    print(f"all: {sum(sums.values())} cases, {dict(sorted(sums.items()))}")
    sys.exit(1 if sums["different"] else 0)


if __name__ == "__main__":
    main()
