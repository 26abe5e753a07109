"""Small models of the families: of each a config.json in the form in which its models are
published, with a layer of every kind, windows that 48 tokens pass, and numbers such as scales of
logits under which each of them counts."""

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, VOCABULARY = 32, 4, 2, 16, 128


def config(architecture, model_type, layers=2, **fields):
    return {
        "architectures": [architecture], "model_type": model_type, "bos_token_id": 1,
        "eos_token_id": 2, "hidden_act": "silu", "hidden_size": HIDDEN, "intermediate_size": 64,
        "max_position_embeddings": 256, "num_attention_heads": HEADS, "num_hidden_layers": layers,
        "num_key_value_heads": KV_HEADS, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16", "vocab_size": VOCABULARY, **fields}


def without(fields, *names):
    return {name: value for name, value in fields.items() if name not in names}


def llama(**fields):
    return config("LlamaForCausalLM", "llama", head_dim=HEAD_DIM, **fields)


def gemma4(**fields):
    return without(config(
        "Gemma4ForCausalLM", "gemma4_text", attention_bias=False, final_logit_softcapping=6.0,
        global_head_dim=32, head_dim=HEAD_DIM, hidden_activation="gelu_pytorch_tanh",
        pad_token_id=0, rms_norm_eps=1e-6, sliding_window=16, tie_word_embeddings=True,
        vocab_size_per_layer_input=VOCABULARY,
        rope_parameters={
            "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0,
                               "rope_type": "proportional"},
            "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}},
        **fields), "rope_theta", "hidden_act")


def phi3(**fields):
    # Heads are as wide as hidden_size says, and three quarters of them are rotated.
    return config(
        "Phi3ForCausalLM", "phi3", num_attention_heads=2, num_key_value_heads=1, pad_token_id=0,
        partial_rotary_factor=0.75, attention_bias=False, tie_word_embeddings=True,
        rope_scaling={"type": "longrope", "short_factor": [1.0, 1.05, 1.1, 1.2, 1.4, 1.7],
                      "long_factor": [1.1, 1.5, 2.5, 4.0, 6.0, 8.0]}, **fields)


def cohere(**fields):
    return config("CohereForCausalLM", "cohere", attention_bias=False, layer_norm_eps=1e-5,
                  logit_scale=0.5, num_attention_heads=2, num_key_value_heads=1, pad_token_id=0,
                  rope_theta=8000000.0, tie_word_embeddings=True, **fields)


def stablelm(**fields):
    return config("StableLmForCausalLM", "stablelm", layer_norm_eps=1e-5, num_attention_heads=2,
                  num_key_value_heads=1, partial_rotary_factor=0.25, **fields)


def gpt_oss(**fields):
    return config("GptOssForCausalLM", "gpt_oss", attention_bias=True, experts_per_token=2,
                  head_dim=HEAD_DIM, initial_context_length=64, intermediate_size=32,
                  layer_types=["sliding_attention", "full_attention"], num_experts_per_tok=2,
                  num_local_experts=4, output_router_logits=False, pad_token_id=0,
                  rope_scaling={"beta_fast": 32.0, "beta_slow": 1.0, "factor": 4.0,
                                "original_max_position_embeddings": 64, "rope_type": "yarn",
                                "truncate": False},
                  rope_theta=150000.0, sliding_window=16, swiglu_limit=7.0, **fields)


def deepseek(architecture, model_type, **fields):
    return config(
        architecture, model_type, attention_bias=False, first_k_dense_replace=1,
        kv_lora_rank=32, moe_intermediate_size=32, moe_layer_freq=1, n_routed_experts=8,
        n_shared_experts=2, num_experts_per_tok=3, num_key_value_heads=HEADS, qk_nope_head_dim=16,
        qk_rope_head_dim=8, v_head_dim=16, rms_norm_eps=1e-6,
        rope_scaling={"beta_fast": 32, "beta_slow": 1, "factor": 4, "mscale": 0.707,
                      "mscale_all_dim": 0.707, "original_max_position_embeddings": 64,
                      "type": "yarn"}, **fields)


def granite_hybrid(positions):
    return config(
        "GraniteMoeHybridForCausalLM", "granitemoehybrid", attention_bias=False,
        attention_multiplier=0.2, embedding_multiplier=1.5, layer_types=["attention"] * 2,
        logits_scaling=2.0, mamba_d_conv=4, mamba_d_head=16, mamba_d_state=8, mamba_expand=2,
        mamba_n_groups=1, mamba_n_heads=4, num_attention_heads=2, num_experts_per_tok=0,
        num_key_value_heads=1, num_local_experts=0, position_embedding_type=positions,
        residual_multiplier=0.8, rope_scaling=None, shared_intermediate_size=64,
        tie_word_embeddings=True)


FAMILIES = {
    "llama": llama(rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                 "high_freq_factor": 4.0,
                                 "original_max_position_embeddings": 64},
                   tie_word_embeddings=True),
    "llama-linear": llama(rope_scaling={"type": "linear", "factor": 4.0}),
    "llama-yarn": llama(rope_scaling={"rope_type": "yarn", "factor": 4.0,
                                      "original_max_position_embeddings": 64}),
    # All positions are below the limit from which this scaling changes anything.
    "llama-dynamic": llama(rope_scaling={"type": "dynamic", "factor": 2.0},
                           max_position_embeddings=128),
    "llama-bias": llama(attention_bias=True, mlp_bias=True, rope_scaling=None),
    "mistral": config("MistralForCausalLM", "mistral", head_dim=HEAD_DIM, sliding_window=16),
    # As transformers 5 writes it: what rotates is in rope_parameters.
    "ministral3": without(config(
        "Ministral3ForCausalLM", "ministral3", head_dim=HEAD_DIM, sliding_window=None,
        rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0,
                         "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0,
                         "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1,
                         "original_max_position_embeddings": 32}), "rope_theta"),
    "qwen2": config("Qwen2ForCausalLM", "qwen2", max_window_layers=2, num_attention_heads=2,
                    num_key_value_heads=1, rope_theta=1000000.0, sliding_window=16,
                    tie_word_embeddings=True, use_sliding_window=False),
    "mimo": config("MiMoForCausalLM", "mimo", head_dim=16, max_window_layers=2,
                   num_attention_heads=2, num_key_value_heads=1, num_nextn_predict_layers=1,
                   rope_theta=640000.0, sliding_window=16, use_sliding_window=False),
    "qwen3": config("Qwen3ForCausalLM", "qwen3", attention_bias=False, head_dim=HEAD_DIM,
                    max_window_layers=2, rope_theta=1000000.0, sliding_window=None,
                    use_sliding_window=False),
    "gemma2": config("Gemma2ForCausalLM", "gemma2", layers=3, attention_bias=False,
                     attn_logit_softcapping=3.0, final_logit_softcapping=6.0, head_dim=HEAD_DIM,
                     hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh",
                     query_pre_attn_scalar=24, rms_norm_eps=1e-6, sliding_window=16,
                     tie_word_embeddings=True),
    "gemma3": config("Gemma3ForCausalLM", "gemma3_text", layers=4, attention_bias=False,
                     attn_logit_softcapping=None, final_logit_softcapping=None, head_dim=HEAD_DIM,
                     hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=24,
                     rms_norm_eps=1e-6, rope_local_base_freq=10000.0, rope_theta=1000000.0,
                     rope_scaling={"factor": 8.0, "rope_type": "linear"}, sliding_window=16,
                     sliding_window_pattern=3, tie_word_embeddings=True),
    # As the models without experts, the smallest ones, and those with experts.
    "gemma4": gemma4(layers=3, layer_types=["sliding_attention"] * 2 + ["full_attention"],
                     attention_k_eq_v=True, hidden_size_per_layer_input=0,
                     num_global_key_value_heads=1),
    "gemma4-small": gemma4(layers=4, layer_types=["sliding_attention", "full_attention"] * 2,
                           attention_k_eq_v=False, hidden_size_per_layer_input=8,
                           num_kv_shared_layers=2, use_double_wide_mlp=True),
    "gemma4-moe": gemma4(layers=2, layer_types=["sliding_attention", "full_attention"],
                         attention_k_eq_v=True, enable_moe_block=True,
                         hidden_size_per_layer_input=0, moe_intermediate_size=32, num_experts=8,
                         num_global_key_value_heads=1, top_k_experts=3),
    # 112 tokens are below the first context (short factors), or the prompt is beyond it (long).
    "phi3": phi3(original_max_position_embeddings=128, sliding_window=24),
    "phi3-long": phi3(original_max_position_embeddings=32, sliding_window=None),
    "smollm3": config("SmolLM3ForCausalLM", "smollm3", layers=4, attention_bias=False,
                      layer_types=["full_attention"] * 4, max_window_layers=4, mlp_bias=False,
                      no_rope_layer_interval=4, no_rope_layers=[1, 1, 1, 0], pad_token_id=0,
                      rope_scaling=None, rope_theta=5000000.0, sliding_window=None,
                      num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
                      use_sliding_window=False),
    "olmo2": config("Olmo2ForCausalLM", "olmo2", attention_bias=False, num_attention_heads=2,
                    num_key_value_heads=1, rms_norm_eps=1e-6, rope_scaling=None,
                    rope_theta=500000.0),
    "granite": config("GraniteForCausalLM", "granite", attention_bias=False,
                      attention_multiplier=0.2, embedding_multiplier=1.5, logits_scaling=2.0,
                      mlp_bias=False, num_attention_heads=2, num_key_value_heads=1,
                      residual_multiplier=0.8, rope_scaling=None, tie_word_embeddings=True),
    # Granite 4 without state space layers and experts; its larger models rotate nothing.
    "granitemoehybrid": granite_hybrid("rope"),
    "granitemoehybrid-nope": granite_hybrid("nope"),
    "granitemoe": config("GraniteMoeForCausalLM", "granitemoe", attention_bias=False,
                         attention_multiplier=0.2, embedding_multiplier=1.5, intermediate_size=32,
                         logits_scaling=2.0, num_attention_heads=2, num_experts_per_tok=3,
                         num_key_value_heads=1, num_local_experts=8, output_router_logits=False,
                         residual_multiplier=0.8, rope_scaling=None, tie_word_embeddings=True),
    "granitemoeshared": config(
        "GraniteMoeSharedForCausalLM", "granitemoeshared", attention_bias=False,
        attention_multiplier=0.2, embedding_multiplier=1.5, intermediate_size=32,
        logits_scaling=2.0, num_attention_heads=2, num_experts_per_tok=3, num_key_value_heads=1,
        num_local_experts=8, output_router_logits=False, residual_multiplier=0.8,
        rope_scaling=None, shared_intermediate_size=48, tie_word_embeddings=True),
    "olmoe": config("OlmoeForCausalLM", "olmoe", attention_bias=False, clip_qkv=None,
                    intermediate_size=32, norm_topk_prob=False, num_attention_heads=2,
                    num_experts=8, num_experts_per_tok=3, num_key_value_heads=2,
                    output_router_logits=False, rope_scaling=None),
    "qwen2_moe": config("Qwen2MoeForCausalLM", "qwen2_moe", layers=3, decoder_sparse_step=1,
                        max_window_layers=3, mlp_only_layers=[1], moe_intermediate_size=32,
                        norm_topk_prob=False, num_attention_heads=2, num_experts=8,
                        num_experts_per_tok=3, num_key_value_heads=1, output_router_logits=False,
                        rope_theta=1000000.0, shared_expert_intermediate_size=48,
                        sliding_window=None, use_sliding_window=False),
    "glm": config("GlmForCausalLM", "glm", attention_bias=True, head_dim=HEAD_DIM, pad_token_id=0,
                  partial_rotary_factor=0.5),
    "glm4": config("Glm4ForCausalLM", "glm4", attention_bias=True, head_dim=HEAD_DIM,
                   pad_token_id=0, partial_rotary_factor=0.5),
    "glm4_moe": config("Glm4MoeForCausalLM", "glm4_moe", attention_bias=True,
                       first_k_dense_replace=1, head_dim=HEAD_DIM, moe_intermediate_size=32,
                       n_group=2, n_routed_experts=8, n_shared_experts=1, norm_topk_prob=True,
                       num_experts_per_tok=3, num_nextn_predict_layers=1, pad_token_id=0,
                       partial_rotary_factor=0.5, routed_scaling_factor=1.5, topk_group=1,
                       use_qk_norm=True),
    "cohere": cohere(use_qk_norm=False),
    "cohere-qk-norm": cohere(use_qk_norm=True),
    "cohere2": config("Cohere2ForCausalLM", "cohere2", layers=4, attention_bias=False,
                      head_dim=HEAD_DIM, layer_norm_eps=1e-5, layer_switch=4, logit_scale=0.5,
                      order_of_interleaved_layers="local_attn_first", pad_token_id=0,
                      position_embedding_type="rope_gptj", rope_scaling=None, rope_theta=50000.0,
                      rotary_pct=1.0, sliding_window=16, sliding_window_pattern=4,
                      tie_word_embeddings=True, use_embedding_sharing=True,
                      use_gated_activation=True, use_parallel_block=True,
                      use_parallel_embedding=True),
    "stablelm": stablelm(qk_layernorm=False, use_parallel_residual=False, use_qkv_bias=True),
    "stablelm-parallel": stablelm(qk_layernorm=True, use_parallel_residual=True,
                                  use_qkv_bias=False),
    "mixtral": config("MixtralForCausalLM", "mixtral", num_experts_per_tok=2, num_local_experts=4,
                      num_attention_heads=2, num_key_value_heads=1, output_router_logits=False,
                      rope_theta=1000000.0, sliding_window=None),
    "qwen3_moe": config("Qwen3MoeForCausalLM", "qwen3_moe", layers=3, attention_bias=False,
                        decoder_sparse_step=1, head_dim=HEAD_DIM, max_window_layers=3,
                        mlp_only_layers=[1], moe_intermediate_size=32, norm_topk_prob=True,
                        num_experts=8, num_experts_per_tok=3, output_router_logits=False,
                        rope_scaling=None, rope_theta=1000000.0, sliding_window=None,
                        use_sliding_window=False),
    "gpt_oss": gpt_oss(),
    # As the models are published: the weights of experts in blocks.
    "gpt_oss-mxfp4": gpt_oss(quantization_config={
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
                                   "model.embed_tokens", "lm_head"],
        "quant_method": "mxfp4"}),
    "deepseek_v2": deepseek("DeepseekV2ForCausalLM", "deepseek_v2", n_group=1,
                            norm_topk_prob=False, q_lora_rank=None, routed_scaling_factor=1.0,
                            scoring_func="softmax", topk_group=1, topk_method="greedy"),
    "deepseek_v2-groups": deepseek("DeepseekV2ForCausalLM", "deepseek_v2", n_group=4,
                                   norm_topk_prob=False, q_lora_rank=32, routed_scaling_factor=2.0,
                                   scoring_func="softmax", topk_group=2,
                                   topk_method="group_limited_greedy"),
    "deepseek_v3": deepseek("DeepseekV3ForCausalLM", "deepseek_v3", n_group=4, norm_topk_prob=True,
                            q_lora_rank=32, routed_scaling_factor=2.5, scoring_func="sigmoid",
                            topk_group=2, topk_method="noaux_tc"),
    "qwen3_next": config("Qwen3NextForCausalLM", "qwen3_next", layers=4, attention_bias=False,
                         decoder_sparse_step=1, full_attention_interval=4, head_dim=HEAD_DIM,
                         linear_conv_kernel_dim=4, linear_key_head_dim=8, linear_num_key_heads=2,
                         linear_num_value_heads=4, linear_value_head_dim=16, mlp_only_layers=[],
                         moe_intermediate_size=32, norm_topk_prob=True, num_experts=4,
                         num_experts_per_tok=2, partial_rotary_factor=0.25, rms_norm_eps=1e-6,
                         rope_scaling=None, rope_theta=10000000.0,
                         shared_expert_intermediate_size=32, use_sliding_window=False),
    "qwen3_5": config("Qwen3_5ForCausalLM", "qwen3_5_text", layers=4, attention_bias=False,
                      head_dim=HEAD_DIM, layer_types=["linear_attention", "full_attention"] * 2,
                      linear_conv_kernel_dim=3, linear_key_head_dim=16, linear_num_key_heads=2,
                      linear_num_value_heads=4, linear_value_head_dim=8, rms_norm_eps=1e-6,
                      rope_parameters={"rope_type": "default", "rope_theta": 10000000.0,
                                       "partial_rotary_factor": 0.25, "mrope_interleaved": True,
                                       "mrope_section": [1, 1, 0]},
                      tie_word_embeddings=True),
    "qwen3_5_moe": config("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", layers=4,
                          attention_bias=False, full_attention_interval=2, head_dim=HEAD_DIM,
                          linear_conv_kernel_dim=4, linear_key_head_dim=8, linear_num_key_heads=1,
                          linear_num_value_heads=4, linear_value_head_dim=8,
                          moe_intermediate_size=32, num_experts=4, num_experts_per_tok=2,
                          rms_norm_eps=1e-6,
                          rope_parameters={"rope_type": "default", "rope_theta": 10000000.0,
                                           "partial_rotary_factor": 0.25},
                          shared_expert_intermediate_size=32),
}

# These are there a second time, as transformers 5.24 saves them in its own form: with experts
# stacked, and with what is newer in config.json.
SAVED = ("deepseek_v2", "deepseek_v3", "gemma4", "gemma4-small", "glm4_moe", "granitemoe",
         "granitemoehybrid", "granitemoeshared", "ministral3", "mixtral", "olmoe", "qwen2_moe",
         "qwen3_moe")
