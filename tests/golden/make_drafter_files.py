#!/usr/bin/env python3
"""Writes drafters/NAME-gguf beside itself: learned drafters that make_drafters.py has written as GGUF
files, as llama.cpp's converter (conversion/llama.py) lays them out, with the same golden.json."""

import json
import shutil
import sys

import gguf
import numpy as np
import safetensors.torch
import torch

from golden import HERE

NAMES = {"fc": "fc", "norm": "output_norm", "lm_head": "output", "embed_tokens": "token_embd",
         "midlayer.input_layernorm": "blk.0.attn_norm", "midlayer.hidden_norm": "blk.0.attn_norm_2",
         "midlayer.self_attn.q_proj": "blk.0.attn_q", "midlayer.self_attn.k_proj": "blk.0.attn_k",
         "midlayer.self_attn.v_proj": "blk.0.attn_v", "midlayer.self_attn.o_proj": "blk.0.attn_output",
         "midlayer.post_attention_layernorm": "blk.0.ffn_norm",
         "midlayer.mlp.gate_proj": "blk.0.ffn_gate", "midlayer.mlp.up_proj": "blk.0.ffn_up",
         "midlayer.mlp.down_proj": "blk.0.ffn_down"}


def interleaved(matrix, heads):
    """Rows that are rotated together are neighbours there."""
    return matrix.reshape(heads, 2, -1, matrix.shape[1]).swapaxes(1, 2).reshape(matrix.shape)


def write(name):
    source, folder = HERE / "drafters" / name, HERE / "drafters" / f"{name}-gguf"
    folder.mkdir(exist_ok=True)
    shutil.copyfile(source / "golden.json", folder / "golden.json")
    config = json.loads((source / "config.json").read_text())
    points = json.loads((source / "golden.json").read_text())["points"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(folder / "drafter.gguf", "eagle3")
    writer.add_vocab_size(config["vocab_size"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(1)
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["hidden_size"] // heads)
    writer.add_array("eagle3.extract_layers", points)
    writer.add_uint32("eagle3.target_hidden_size",
                      config.get("target_hidden_size", config["hidden_size"]))
    writer.add_bool("eagle3.norm_before_residual", False)
    for key, tensor in safetensors.torch.load_file(source / "model.safetensors").items():
        if key == "d2t":
            writer.add_tensor(key, tensor.numpy() + np.arange(len(tensor)),
                              raw_dtype=gguf.GGMLQuantizationType.I64)
        elif key != "t2d":
            values = tensor.to(torch.float32).numpy()
            if "q_proj" in key or "k_proj" in key:
                values = interleaved(values, heads if "q_proj" in key else kv_heads)
            writer.add_tensor(NAMES[key.removesuffix(".weight")] + ".weight",
                              np.ascontiguousarray(values),
                              raw_dtype=gguf.GGMLQuantizationType.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


BLOCK_NAMES = {"fc": "fc", "hidden_norm": "enc.output_norm", "norm": "output_norm",
               "lm_head": "output", "markov_head.markov_w1": "markov_w1",
               "markov_head.markov_w2": "markov_w2", "confidence_head.proj": "conf_proj"}
LAYER_NAMES = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q",
               "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
               "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
               "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm",
               "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def block_name(key):
    stem, ending = key.rsplit(".", 1)
    if stem.startswith("layers."):
        _, layer, rest = stem.split(".", 2)
        return f"blk.{layer}.{LAYER_NAMES[rest]}.{ending}"
    return f"{BLOCK_NAMES[stem]}.{ending}"


def write_block(name):
    """Of DFlash and DSpark, as conversion/qwen.py lays them out; it writes no size of the
    vocabulary."""
    source, folder = HERE / "drafters" / name, HERE / "drafters" / f"{name}-gguf"
    folder.mkdir(exist_ok=True)
    shutil.copyfile(source / "golden.json", folder / "golden.json")
    whole = json.loads((source / "config.json").read_text())
    config = {**whole, **whole.get("transformer_layer_config", {})}
    own = {**config, **config.get("dflash_config", {})}
    writer = gguf.GGUFWriter(folder / "drafter.gguf", "dflash")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["head_dim"])
    rope = config.get("rope_parameters", config)
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_uint32("dflash.block_size", config["block_size"])
    writer.add_array("dflash.target_layers", json.loads(
        (source / "golden.json").read_text())["points"])
    writer.add_bool("dflash.attention.causal", False)
    writer.add_mask_token_id(own["mask_token_id"])
    for key, tensor in safetensors.torch.load_file(source / "model.safetensors").items():
        if key == "d2t":
            writer.add_tensor(key, tensor.numpy() + np.arange(len(tensor)),
                              raw_dtype=gguf.GGMLQuantizationType.I64)
        elif key != "t2d":
            writer.add_tensor(block_name(key),
                              np.ascontiguousarray(tensor.to(torch.float32).numpy()),
                              raw_dtype=gguf.GGMLQuantizationType.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    for each in sys.argv[1:] or ("eagle3", "eagle3-narrow", "dflash", "dspark-speculators"):
        (write if each.startswith("eagle3") else write_block)(each)
