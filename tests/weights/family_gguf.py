"""Model folders as GGUF files, laid out as llama.cpp's converter lays out each family. Tensors have
the names that the package `gguf` maps those of folders to."""

import json
import math
import re

import gguf
import numpy as np

from gguf_pair import Kind, Model, gguf_name, interleaved, read_safetensors

ARCHITECTURES = {"mistral": "llama", "cohere": "command-r", "gemma3_text": "gemma3",
                 "ministral3": "mistral3", "qwen3_next": "qwen3next", "qwen3_5_text": "qwen35",
                 "qwen3_5_moe_text": "qwen35moe", "glm": "chatglm", "granitemoehybrid": "granite",
                 "mixtral": "llama", "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe",
                 "granitemoeshared": "granitemoe", "gpt_oss": "gpt-oss",
                 "gemma4_text": "gemma4", "deepseek_v2": "deepseek2", "deepseek_v3": "deepseek2",
                 "glm4_moe": "glm4moe", "mimo": "qwen2"}
# Whose experts stacked_tensors() stacks.
STACKED = ("mixtral", "qwen2_moe", "qwen3_moe", "granitemoe", "granitemoeshared", "olmoe",
           "gpt_oss")
# Whose rows of queries and keys the converter puts in another order.
INTERLEAVED = ("llama", "mistral", "ministral3", "smollm3", "granite", "granitemoehybrid",
               "mixtral", "granitemoe", "granitemoeshared")
INTEGERS = {"max_position_embeddings": "context_length", "hidden_size": "embedding_length",
            "num_hidden_layers": "block_count", "intermediate_size": "feed_forward_length",
            "num_attention_heads": "attention.head_count",
            "num_key_value_heads": "attention.head_count_kv"}
# For models with experts.
OF_EXPERTS = {"num_local_experts": "expert_count", "num_experts": "expert_count",
              "num_experts_per_tok": "expert_used_count",
              "moe_intermediate_size": "expert_feed_forward_length",
              "shared_expert_intermediate_size": "expert_shared_feed_forward_length",
              "shared_intermediate_size": "expert_shared_feed_forward_length"}
# The weights of one expert of many, by the names of Mixtral and of the others.
PROJECTIONS = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}
FRACTIONS = {"rms_norm_eps": "attention.layer_norm_rms_epsilon", "rope_theta": "rope.freq_base",
             "rope_local_base_freq": "rope.freq_base_swa",
             "layer_norm_eps": "attention.layer_norm_epsilon", "logit_scale": "logit_scale",
             "logits_scaling": "logit_scale", "embedding_multiplier": "embedding_scale",
             "residual_multiplier": "residual_scale", "attention_multiplier": "attention.scale",
             "attn_logit_softcapping": "attn_logit_softcapping",
             "final_logit_softcapping": "final_logit_softcapping"}
# Whose files say how wide the window of a layer is: the converter leaves it out of others.
WINDOWED = ("phi3", "gemma2", "gemma3_text", "cohere2", "gpt_oss")


def llama3_factors(rope, theta, dims):
    """What each frequency is divided by."""
    original = rope["original_max_position_embeddings"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    for pair in range(dims // 2):
        turns = original * theta ** (-2 * pair / dims) / (2 * math.pi)
        kept = min(max((turns - low) / (high - low), 0), 1)
        yield 1 / ((1 - kept) / rope["factor"] + kept)


class Family:
    """A folder of one of the families, and the file that it becomes."""

    def __init__(self, folder):
        self.model = Model(folder)
        self.config = self.model.config
        self.type = self.config["model_type"]
        self.stacks = self.type in STACKED
        self.head_dim = self.config.get(
            "head_dim", self.config["hidden_size"] // self.config["num_attention_heads"])
        # The experts of each layer and kind of tensor that were met, by their numbers.
        self.experts = {}
        self.rope = (self.config.get("rope_scaling") or self.config.get("rope_parameters") or {})
        self.rope_type = self.rope.get("rope_type", self.rope.get("type"))

    def write_gguf(self, path, change=lambda writer: None, experts=Kind.F32, as_floats=False):
        """`change` changes metadata. The weights of experts are of the kind `experts`, or the
        floats that these stand for."""
        architecture = ARCHITECTURES.get(self.type, self.type)
        self.writer = gguf.GGUFWriter(path, architecture)
        self.key = lambda name: f"{architecture}.{name}"
        self.add_metadata()
        self.add_rope()
        change(self.writer)
        for name, values in self.tensors(architecture):
            kind = experts if "_exps.weight" in name else Kind.F32
            values = gguf.quants.quantize(np.ascontiguousarray(values, np.float32), kind)
            if as_floats:
                values, kind = gguf.quants.dequantize(values, kind), Kind.F32
            self.writer.add_tensor(name, values, raw_dtype=kind)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
        return path

    def write_adapter(self, folder, path):
        """The adapter that PEFT saved in `folder` for this model."""
        config = json.loads((folder / "adapter_config.json").read_text())
        alpha = config["lora_alpha"] * (math.sqrt(config["r"]) if config["use_rslora"] else 1)
        architecture = ARCHITECTURES.get(self.type, self.type)
        arch = next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
        names = gguf.get_tensor_name_map(arch, self.config["num_hidden_layers"])
        writer = gguf.GGUFWriter(path, architecture)
        writer.add_type("adapter")
        writer.add_string("adapter.type", "lora")
        writer.add_float32("adapter.lora.alpha", alpha)
        for name, values in read_safetensors(folder / "adapter_model.safetensors").items():
            tensor, factor = name.removeprefix("base_model.model.").split(".lora_")
            heads = self.model.heads(tensor)
            if factor == "B.weight" and self.type in INTERLEAVED and heads:
                values = interleaved(values, heads)
            called = names.get_name(tensor + ".weight", try_suffixes=(".weight",))
            writer.add_tensor(f"{called}.lora_{factor[0].lower()}",
                              np.ascontiguousarray(values, np.float32), raw_dtype=Kind.F32)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def add_metadata(self):
        config = self.config
        for field, name in INTEGERS.items():
            self.writer.add_uint32(self.key(name), config[field])
        for field, name in FRACTIONS.items():
            if config.get(field) is not None and not (
                    field == "rope_theta" and "rope_theta" in self.rope):
                self.writer.add_float32(self.key(name), config[field])
        for field, name in OF_EXPERTS.items():
            if self.stacks and field in config:
                self.writer.add_uint32(self.key(name), config[field])
        if self.type == "gpt_oss":
            self.writer.add_uint32(self.key("expert_feed_forward_length"),
                                   config["intermediate_size"])
        if "head_dim" in config:
            self.writer.add_uint32(self.key("attention.key_length"), self.head_dim)
            self.writer.add_uint32(self.key("attention.value_length"), self.head_dim)
        if self.type in WINDOWED:
            self.writer.add_uint32(self.key("attention.sliding_window"),
                                   config["sliding_window"] or 0)
        if self.type == "gemma3_text":
            self.writer.add_uint32(self.key("attention.sliding_window_pattern"),
                                   config["sliding_window_pattern"])
        if "use_parallel_residual" in config:
            self.writer.add_bool(self.key("use_parallel_residual"), config["use_parallel_residual"])
        if config.get("position_embedding_type") == "nope":
            self.writer.add_bool(self.key("rope.scaling.finetuned"), False)
        if "linear_num_key_heads" in config:
            self.add_recurrent()
        self.writer.add_bos_token_id(config["bos_token_id"])
        self.writer.add_eos_token_id(config["eos_token_id"])

    def add_recurrent(self):
        config = self.config
        heads = config["linear_num_value_heads"]
        types = config.get("layer_types", [])
        sizes = {"ssm.conv_kernel": config["linear_conv_kernel_dim"],
                 "ssm.state_size": config["linear_key_head_dim"],
                 "ssm.group_count": config["linear_num_key_heads"], "ssm.time_step_rank": heads,
                 "ssm.inner_size": heads * config["linear_value_head_dim"],
                 "full_attention_interval": (types.index("full_attention") + 1 if types
                                             else config["full_attention_interval"])}
        if "num_experts" in config:
            sizes |= {"expert_count": config["num_experts"],
                      "expert_used_count": config["num_experts_per_tok"],
                      "expert_feed_forward_length": config["moe_intermediate_size"],
                      "expert_shared_feed_forward_length":
                          config["shared_expert_intermediate_size"]}
        if "rope_parameters" in config:
            share = config["rope_parameters"]["partial_rotary_factor"]
            sizes["rope.dimension_count"] = int(self.head_dim * share)
            self.writer.add_float32(self.key("rope.freq_base"),
                                    config["rope_parameters"]["rope_theta"])
            self.writer.add_array(self.key("rope.dimension_sections"), [1, 1, 0, 0])
        for name, size in sizes.items():
            self.writer.add_uint32(self.key(name), size)

    def add_rope(self):
        rope = self.rope
        if "partial_rotary_factor" in self.config or self.type in INTERLEAVED:
            share = self.config.get("partial_rotary_factor", 1)
            self.writer.add_uint32(self.key("rope.dimension_count"), int(self.head_dim * share))
        if self.rope_type in ("linear", "yarn"):
            self.writer.add_string(self.key("rope.scaling.type"), self.rope_type)
            self.writer.add_float32(self.key("rope.scaling.factor"), rope["factor"])
        if self.rope_type == "yarn":
            self.writer.add_uint32(self.key("rope.scaling.original_context_length"),
                                   rope["original_max_position_embeddings"])
            for field in ("beta_fast", "beta_slow"):
                if field in rope:
                    self.writer.add_float32(self.key(f"rope.scaling.yarn_{field}"), rope[field])
        if self.type == "ministral3":
            self.writer.add_float32(self.key("rope.freq_base"), rope["rope_theta"])
            self.writer.add_float32(self.key("rope.scaling.yarn_log_multiplier"),
                                    rope["mscale_all_dim"])
            self.writer.add_float32(self.key("attention.temperature_scale"),
                                    rope["llama_4_scaling_beta"])
        if self.rope_type == "longrope":
            original = self.config["original_max_position_embeddings"]
            longer = self.config["max_position_embeddings"] / original
            self.writer.add_uint32(self.key("rope.scaling.original_context_length"), original)
            self.writer.add_float32(self.key("rope.scaling.attn_factor"),
                                    math.sqrt(1 + math.log(longer) / math.log(original)))

    def factors(self):
        """The tensors of a rotation."""
        if self.rope_type == "llama3":
            yield "rope_freqs.weight", np.array(
                list(llama3_factors(self.rope, self.config["rope_theta"], self.head_dim)))
        if self.rope_type == "longrope":
            for length in ("long", "short"):
                yield f"rope_factors_{length}.weight", np.array(self.rope[f"{length}_factor"])

    def stacked_tensors(self):
        """The folder's tensors, those of experts as files have them: stacked, gates apart from what
        they are multiplied with, and none transposed."""
        stacks = {}
        for name, values in self.model.tensors.items():
            numbered = re.fullmatch(r"(.*)\.\w+\.experts\.(\d+)\.(\w+)\.weight", name)
            if numbered:
                layer, expert, which = numbered.groups()
                stacked = f"{layer}.mlp.experts.{PROJECTIONS.get(which, which)}.weight"
                stacks.setdefault(stacked, {})[int(expert)] = values
            elif "input_linear" in name:
                shared = "shared_mlp" in name
                layer = name.split(".shared_mlp" if shared else ".block_sparse_moe")[0]
                stem = f"{layer}.mlp.shared_experts" if shared else f"{layer}.mlp.experts"
                for which, half in zip(("gate_proj", "up_proj"), np.split(values, 2, axis=-2)):
                    yield f"{stem}.{which}.weight", half
            elif "gate_up_proj" in name:
                of_bias = name.endswith("_bias")
                if not of_bias:
                    values = values.swapaxes(1, 2)
                stem = name.split("gate_up_proj")[0]
                for i, which in enumerate(("gate_proj", "up_proj")):
                    yield stem + which + (".bias" if of_bias else ".weight"), values[:, i::2]
            elif name.endswith("experts.down_proj"):
                yield name + ".weight", values.swapaxes(1, 2)
            elif name.endswith("down_proj_bias"):
                yield name.removesuffix("_bias") + ".bias", values
            elif name.endswith("sinks"):
                yield name + ".weight", values
            elif name.endswith("shared_expert_gate.weight"):
                yield name, values[0]
            else:
                yield name, values
        for name, experts in stacks.items():
            yield name, np.stack([experts[i] for i in range(len(experts))])

    def tensors(self, architecture):
        arch = next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
        names = gguf.get_tensor_name_map(arch, self.config["num_hidden_layers"])
        yield from self.factors()
        of_heads = {}  # Norms of queries and keys, a tensor for each head.
        for name, values in (self.stacked_tensors() if self.stacks
                             else self.model.tensors.items()):
            if ".norms." in name:
                of_heads.setdefault(name.split(".norms.")[0], []).append((name, values))
                continue
            if self.type == "granitemoehybrid" and "shared_mlp" in name:
                yield from self.as_mlp(name, values)
                continue
            if "linear_num_key_heads" in self.config:
                yield from ((names.get_name(each, try_suffixes=(".weight", ".bias")), changed)
                            for each, changed in self.recurrent(name, values))
                continue
            if self.type in INTERLEAVED and self.model.heads(name):
                values = interleaved(values, self.model.heads(name))
            if self.type in ("gemma2", "gemma3_text") and name.endswith("norm.weight"):
                values = values + np.float32(1)
            # A dense layer among those with experts has names of its own in no converter.
            yield (names.get_name(name, try_suffixes=(".weight", ".bias")) or gguf_name(name),
                   values)
        for name, heads in of_heads.items():
            in_order = sorted(heads, key=lambda head: int(head[0].split(".")[-2]))
            yield (names.get_name(name + ".weight", try_suffixes=(".weight",)),
                   np.stack([values for _, values in in_order]))

    def recurrent(self, name, values):
        """What a tensor of a model with gated delta layers becomes, by its name in folders."""
        if ".mlp.experts." in name and name.split(".")[5].isdigit():
            _, _, layer, _, _, expert, kind, _ = name.split(".")
            together = self.experts.setdefault((layer, kind), {})
            together[int(expert)] = values
            if len(together) == self.config["num_experts"]:
                yield (f"model.layers.{layer}.mlp.experts.{kind}.weight",
                       np.stack([together[i] for i in range(len(together))]))
            return
        if name.endswith("mlp.experts.gate_up_proj"):
            for kind, half in zip(("gate_proj", "up_proj"), np.split(values, 2, axis=1)):
                yield name.replace("gate_up_proj", kind) + ".weight", half
            return
        if name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight"):
            values = values + np.float32(1)
        if name.endswith("shared_expert_gate.weight"):
            values = values[0]
        if name.endswith("conv1d.weight"):
            values = values.reshape(values.shape[0], -1)
        if name.endswith("A_log"):
            values = -np.exp(values)
        if name.endswith("in_proj_qkvz.weight"):
            yield from self.apart(name, values)
            return
        if self.type.startswith("qwen3_5"):
            values = self.keys_in_turns(name, values)
        yield name.replace("dt_bias", "dt_proj.bias"), values

    def apart(self, name, values):
        """Queries, keys, values and gates, which folders have by key heads."""
        keys, key, value = (self.config[f"linear_{field}"] for field in (
            "num_key_heads", "key_head_dim", "value_head_dim"))
        of_key = value * self.config["linear_num_value_heads"] // keys
        by_head = values.reshape(keys, -1, values.shape[-1])
        parts = [part.reshape(-1, values.shape[-1]) for part in np.split(
            by_head, np.cumsum([key, key, of_key]), axis=1)]
        yield name.replace("qkvz", "qkv"), np.concatenate(parts[:3])
        yield name.replace("qkvz", "z"), parts[3]

    def keys_in_turns(self, name, values):
        """Value heads in the order in which they take key heads in turns."""
        keys, heads, width = (self.config[f"linear_{field}"] for field in (
            "num_key_heads", "num_value_heads", "value_head_dim"))
        order = np.arange(heads).reshape(keys, -1).T.reshape(-1)
        of_values = (order[:, None] * width + np.arange(width)).reshape(-1)
        before = 2 * keys * self.config["linear_key_head_dim"]
        if name.endswith(("in_proj_qkv.weight", "conv1d.weight")):
            return np.concatenate([values[:before], values[before:][of_values]])
        if name.endswith("in_proj_z.weight"):
            return values[of_values]
        if name.endswith(("in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_bias")):
            return values[order]
        if name.endswith("linear_attn.out_proj.weight"):
            return values[:, of_values]
        return values

    @staticmethod
    def as_mlp(name, values):
        """What models with experts share is the MLP of those without."""
        layer = f"blk.{name.split('.')[2]}"
        if name.endswith("output_linear.weight"):
            yield f"{layer}.ffn_down.weight", values
        else:
            for part, half in zip(("gate", "up"), np.split(values, 2)):
                yield f"{layer}.ffn_{part}.weight", half
