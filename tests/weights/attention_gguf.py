"""GGUF files of the families whose attention is of another kind than Llama's, Gemma 4 and DeepSeek,
and of GLM 4.5, whose experts are as DeepSeek's."""

import numpy as np

from family_gguf import Family


class Gemma4(Family):
    """Layers without a window have heads of their own; a list says what each layer has."""

    def __init__(self, folder):
        super().__init__(folder)
        tensors = self.model.tensors
        for name in list(tensors):
            if name.endswith("layer_scalar") or ".experts." in name:
                tensors[name + ".weight"] = tensors.pop(name)
        self.scales = {name: tensors.pop(name) for name in list(tensors) if name.endswith("scale")}

    def add_metadata(self):
        config, writer = self.config, self.writer
        sliding = [kind == "sliding_attention" for kind in config["layer_types"]]
        own = config["num_hidden_layers"] - config.get("num_kv_shared_layers", 0)
        widths = [config["intermediate_size"] * (1 if i < own else 2) for i in range(len(sliding))]
        wide = config.get("use_double_wide_mlp")
        writer.add_context_length(config["max_position_embeddings"])
        writer.add_embedding_length(config["hidden_size"])
        writer.add_block_count(config["num_hidden_layers"])
        writer.add_head_count(config["num_attention_heads"])
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_sliding_window(config["sliding_window"])
        writer.add_sliding_window_pattern(sliding)
        writer.add_shared_kv_layers(config.get("num_kv_shared_layers", 0))
        writer.add_feed_forward_length(widths if wide else config["intermediate_size"])
        writer.add_embedding_length_per_layer_input(config["hidden_size_per_layer_input"])
        writer.add_key_length(config["global_head_dim"])
        writer.add_value_length(config["global_head_dim"])
        writer.add_uint32(self.key("attention.key_length_swa"), config["head_dim"])
        writer.add_uint32(self.key("attention.value_length_swa"), config["head_dim"])
        local, full = config["num_key_value_heads"], config.get("num_global_key_value_heads")
        writer.add_head_count_kv([local if each else full for each in sliding] if full else local)
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
        writer.add_bos_token_id(config["bos_token_id"])
        writer.add_eos_token_id(config["eos_token_id"])

        if config.get("enable_moe_block"):
            writer.add_expert_count(config["num_experts"])
            writer.add_expert_used_count(config["top_k_experts"])
            writer.add_expert_feed_forward_length(config["moe_intermediate_size"])

    def tensors(self, architecture):
        yield from super().tensors(architecture)
        for name, values in self.scales.items():
            layer = name.split(".")[2]
            own = name.endswith("per_expert_scale")
            yield f"blk.{layer}.{'ffn_down_exps' if own else 'ffn_gate_inp'}.scale", values

    def add_rope(self):
        for name, kind, dims in (("", "full_attention", self.config["global_head_dim"]),
                                 ("_swa", "sliding_attention", self.config["head_dim"])):
            self.writer.add_uint32(self.key("rope.dimension_count" + name), dims)
            self.writer.add_float32(self.key("rope.freq_base" + name),
                                    self.rope[kind]["rope_theta"])

    def factors(self):
        pairs = self.config["global_head_dim"] // 2
        turning = int(pairs * self.rope["full_attention"]["partial_rotary_factor"])
        yield "rope_freqs.weight", np.array([1.0] * turning + [1e30] * (pairs - turning))


def stack_experts(tensors, count):
    for name in list(tensors):
        if name.endswith("e_score_correction_bias"):
            tensors[name.replace("_bias", ".bias")] = tensors.pop(name)
        if ".experts.0." in name:
            of_each = [tensors.pop(name.replace(".experts.0.", f".experts.{i}."))
                       for i in range(count)]
            tensors[name.replace(".experts.0.", ".experts.")] = np.stack(of_each)


def add_experts(writer, config, scores):
    """`scores`: 1 for the softmax, 2 for sigmoids."""
    writer.add_leading_dense_block_count(config["first_k_dense_replace"])
    writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    writer.add_expert_count(config["n_routed_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_expert_shared_count(config["n_shared_experts"])
    writer.add_expert_weights_scale(config["routed_scaling_factor"])
    writer.add_expert_weights_norm(config["norm_topk_prob"])
    writer.add_expert_group_count(config["n_group"])
    writer.add_expert_group_used_count(config["topk_group"])
    writer.add_uint32(f"{writer.arch}.expert_gating_func", scores)


class Glm4Moe(Family):
    def __init__(self, folder):
        super().__init__(folder)
        stack_experts(self.model.tensors, self.config["n_routed_experts"])

    def add_metadata(self):
        super().add_metadata()
        add_experts(self.writer, self.config, 2)


class DeepSeek(Family):
    """What makes keys is transposed, and lies apart from what makes values."""

    def __init__(self, folder):
        super().__init__(folder)
        self.key_width = self.config["qk_nope_head_dim"]
        tensors, config = self.model.tensors, self.config
        for name in list(tensors):
            if name.endswith("kv_b_proj.weight"):
                rank = config["kv_lora_rank"]
                both = tensors.pop(name).reshape(config["num_attention_heads"], -1, rank)
                keys, values = both[:, :self.key_width], both[:, self.key_width:]
                tensors[name.replace("kv_b_proj", "k_b_proj")] = keys.swapaxes(1, 2)
                tensors[name.replace("kv_b_proj", "v_b_proj")] = values
        stack_experts(tensors, config["n_routed_experts"])

    def add_metadata(self):
        config, writer = self.config, self.writer
        rotated, rank = config["qk_rope_head_dim"], config["kv_lora_rank"]
        writer.add_context_length(config["max_position_embeddings"])
        writer.add_embedding_length(config["hidden_size"])
        writer.add_block_count(config["num_hidden_layers"])
        writer.add_feed_forward_length(config["intermediate_size"])
        writer.add_head_count(config["num_attention_heads"])
        writer.add_head_count_kv(1)
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(config["rope_theta"])
        if config["q_lora_rank"] is not None:
            writer.add_q_lora_rank(config["q_lora_rank"])
        writer.add_kv_lora_rank(rank)
        writer.add_key_length(rank + rotated)
        writer.add_value_length(rank)
        writer.add_key_length_mla(self.key_width + rotated)
        writer.add_value_length_mla(config["v_head_dim"])
        add_experts(writer, config, {"softmax": 1, "sigmoid": 2}[config["scoring_func"]])
        writer.add_rope_dimension_count(rotated)
        writer.add_rope_scaling_yarn_log_mul(0.1 * self.rope["mscale_all_dim"])
        writer.add_bos_token_id(config["bos_token_id"])
        writer.add_eos_token_id(config["eos_token_id"])


KINDS = {"gemma4_text": Gemma4, "deepseek_v2": DeepSeek, "deepseek_v3": DeepSeek,
         "glm4_moe": Glm4Moe}


def family_of(folder):
    """The family of a folder, of whatever kind."""
    plain = Family(folder)
    return KINDS[plain.type](folder) if plain.type in KINDS else plain
