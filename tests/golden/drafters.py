"""Small learned drafters, and the target that they draft for: of each the config.json in the form in
which its kind is published."""

from families import FAMILIES, config, without

VOCABULARY, DRAFTED = 128, 80

# Seven layers: 2, L/2 and L - 3 differ.
TARGET = config("LlamaForCausalLM", "llama", layers=7, head_dim=8, intermediate_size=32)


def drafter(**fields):
    """What all configurations have; heads are as wide as hidden_size says."""
    usual = config("LlamaForCausalLM", "llama", layers=1, intermediate_size=48, pad_token_id=0)
    return {**without(usual, "rope_theta"), **fields}


def eagle3(**fields):
    return drafter(**{"draft_vocab_size": DRAFTED, **fields})


def specforge(**fields):
    return eagle3(**{**fields, "architectures": ["LlamaForCausalLMEagle3"], "head_dim": 16,
                     "rope_theta": 100000.0})


def speculators(model_type, layers=1, **fields):
    return {"transformer_layer_config": without(
                config("", model_type, layers=layers, attention_bias=False, head_dim=16,
                       intermediate_size=48, rope_theta=50000.0), "architectures"),
            "draft_vocab_size": DRAFTED, **fields}


def dflash(**fields):
    """Its authors name layers by their outputs."""
    return {**config("DFlashDraftModel", "qwen3", layers=2, head_dim=16, intermediate_size=48,
                     rope_theta=100000.0), "attention_bias": False, "block_size": 6,
            "num_target_layers": TARGET["num_hidden_layers"],
            "dflash_config": {"mask_token_id": 5, "target_layer_ids": [1, 3, 5]}, **fields}


def dspark(**fields):
    """As its authors have them: all of it at the top, layers by their outputs, -1 for the embeddings
    and with tables of its own."""
    return {**without(dflash(), "dflash_config"), "architectures": ["Qwen3DSparkModel"],
            "mask_token_id": 5, "target_layer_ids": [-1, 3, 5], "markov_rank": 12,
            "markov_head_type": "vanilla", "num_anchors": 4, "enable_confidence_head": True,
            "confidence_head_with_markov": True, **fields}


def hydra(**fields):
    return {"base_model_name_or_path": "lmsys/vicuna-7b-v1.3", "grounded_heads": True,
            "hidden_state_offset": 0, "hydra_head_arch": "mlp", "hydra_num_heads": 6,
            "hydra_num_layers": 1, **fields}


# Each drafter: whose code computes it, which layers' inputs it reads (-1: what the final norm of
# the target makes), and its configuration.
DRAFTERS = {
    # Says nothing about layers, as those of EAGLE's authors.
    "eagle3": ("eagle3", [2, 3, 4], eagle3()),
    "eagle3-whole": ("eagle3", [2, 3, 4], eagle3(
        draft_vocab_size=VOCABULARY, rope_scaling={"type": "linear", "factor": 2.0})),
    # Narrower than its target, with embeddings of its own.
    "eagle3-narrow": ("eagle3", [2, 3, 4], eagle3(
        hidden_size=24, target_hidden_size=32, num_attention_heads=2, num_key_value_heads=1)),
    # As training/ writes it; of its Eagle3Config.
    "eagle3-trained": ("trained", [2, 4, 6], {
        "shape": {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4,
                  "num_key_value_heads": 2, "head_dim": 8},
        "vocab_size": VOCABULARY, "draft_vocab_size": DRAFTED, "max_position_embeddings": 256,
        "layers": (2, 4, 6), "tokens": {"bos_token_id": 1, "eos_token_id": 2}}),
    "eagle3-specforge": ("specforge", [1, 3, 6], specforge(
        eagle_config={"eagle_aux_hidden_state_layer_ids": [0, 2, 5],
                      "use_aux_hidden_state": True})),
    "eagle3-specforge-norms": ("specforge", [2, 3, 4], specforge(fc_norm=True, norm_output=False)),
    "eagle3-speculators": ("speculators", [1, 4, 7], speculators(
        "llama", eagle_aux_hidden_state_layer_ids=[1, 4, 7])),
    "eagle3-speculators-flags": ("speculators", [2, 3, 4], speculators(
        "llama", norm_before_residual=True, fc_norm=True, norm_output=True,
        eagle_aux_hidden_state_layer_ids=[2, 3, 4])),
    "eagle3-speculators-qwen3": ("speculators", [0, 2, 5, 6], speculators(
        "qwen3", layers=2, norm_before_residual=True, norm_before_fc=True, draft_vocab_size=VOCABULARY,
        eagle_aux_hidden_state_layer_ids=[0, 2, 5, 6])),
    "dflash": ("dflash", [2, 4, 6], dflash()),
    # Layers with windows, and all that newer folders have in the object.
    "dflash-windows": ("dflash", [1, 2, 3, 7], dflash(
        block_size=9, num_hidden_layers=3, sliding_window=8, use_sliding_window=True,
        max_window_layers=0, attention_bias=True,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        dflash_config={"mask_token_id": 9, "target_layer_ids": [0, 1, 2, 6]})),
    "dflash-speculators": ("speculators-dflash", [1, 4, 7], {
        **speculators("qwen3", layers=2), "block_size": 5, "mask_token_id": 3,
        "aux_hidden_state_layer_ids": [1, 4, 7]}),
    "dspark": ("dspark", [0, 4, 6], dspark(markov_head_type="gated")),
    "dspark-specforge": ("dspark", [2, 4, 6], dflash(block_size=7, dflash_config={
        "mask_token_id": 5, "target_layer_ids": [1, 3, 5], "projector_type": "dspark",
        "attention_mode": "gqa", "markov_rank": 16, "markov_head_type": "rnn",
        "confidence_head_alpha": 1.0, "enable_confidence_head": True,
        "confidence_head_with_markov": False})),
    "dspark-speculators": ("speculators-dspark", [1, 4, 7], {
        **speculators("qwen3", layers=2), "block_size": 5, "mask_token_id": 3, "markov_rank": 12,
        "aux_hidden_state_layer_ids": [1, 4, 7]}),
    "peagle-speculators": ("speculators-peagle", [1, 4, 7], {
        **speculators("llama", layers=2), "mask_token_id": 6, "norm_before_residual": True,
        "eagle_aux_hidden_state_layer_ids": [1, 4, 7]}),
    # All that published configurations say, and the number of heads that they are wrong about.
    "medusa": ("medusa", [-1], {"base_model_name_or_path": "lmsys/vicuna-7b-v1.3",
                                "medusa_num_heads": 2, "medusa_num_layers": 1}),
    "medusa-two-blocks": ("medusa", [-1], {"hidden_size": TARGET["hidden_size"],
                                           "medusa_num_heads": 5, "medusa_num_layers": 2,
                                           "model_type": "medusa", "vocab_size": VOCABULARY}),
    "hydra": ("hydra", [-1], hydra()),
    # More blocks, over what enters the last but one of seven layers.
    "hydra-blocks": ("hydra", [5], hydra(hydra_num_heads=5, hydra_num_layers=4,
                                         hidden_state_offset=2)),
    "hydra-prefix": ("hydra", [-1], hydra(hydra_head_arch="prefix-mlp", hydra_num_layers=3)),
    "mtp-qwen3_5": ("mtp", [-1], FAMILIES["qwen3_5"]),
    "mtp-qwen3_next": ("mtp", [-1], FAMILIES["qwen3_next"]),
    "mtp-deepseek_v3": ("in_model", [-1], FAMILIES["deepseek_v3"]),
    "mtp-glm4_moe": ("in_model", [-1], FAMILIES["glm4_moe"]),
    "mtp-extra_heads": ("extra_heads", [6], TARGET),
    "mtp-mimo": ("in_model", [-1], FAMILIES["mimo"]),
    # As speculators save it: with the target's configuration.
    "speculators-mtp-qwen3": ("mtp", [-1], None),
    "speculators-mtp-qwen3_5": ("mtp", [-1], None),
    "eagle1": ("eagle1", [-1], drafter()),
    "eagle1-two-layers": ("eagle1", [-1], drafter(bias=False, qkv_bias=True,
                                                  num_hidden_layers=2)),
}

# The targets of those that are not for drafters/target.
TARGETS = {"mtp-qwen3_5": "families/qwen3_5", "mtp-qwen3_next": "families/qwen3_next",
           "mtp-deepseek_v3": "families/deepseek_v3", "mtp-glm4_moe": "families/glm4_moe",
           "mtp-mimo": "families/mimo",
           "speculators-mtp-qwen3": "families/qwen3",
           "speculators-mtp-qwen3_5": "families/qwen3_5"}
