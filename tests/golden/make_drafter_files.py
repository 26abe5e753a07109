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


if __name__ == "__main__":
    for each in sys.argv[1:] or ("eagle3", "eagle3-narrow"):
        write(each)
