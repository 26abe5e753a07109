"""A small model whose numbers are infinite behind one letter, of weights that are all finite."""

import json
import random
import struct

from letter_tokenizer import VOCABULARY, tokenizer, write_tokenizer

LETTER = "Z"  # Also the likeliest token behind every text.
HIDDEN = 32
WIDTH = 48
LAYERS = 2
HUGE = 3e38


def bf16(value):
    bits, = struct.unpack("<I", struct.pack("<f", value))
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def tensors(huge):
    """Name, shape and numbers of each. Number 0 of a state is of LETTER alone, number 1 is the same
    in all: nothing adds to these two."""
    draw = random.Random(7)
    letter = tokenizer()["model"]["vocab"][LETTER]

    def matrix(name, rows, columns, deviation, fixed=lambda row, column: None):
        numbers = []
        for row in range(rows):
            for column in range(columns):
                number = fixed(row, column)
                numbers.append(draw.gauss(0, deviation) if number is None else number)
        return name, [rows, columns], numbers

    def sees_the_letter(row, column):
        return None if row else 1.0 if column == 0 else 0.0

    def keeps(row, column):
        return 0.0 if row < 2 else None

    def embedding(row, column):
        return None if column > 1 else 4.0 if column else 8.0 if row == letter else 0.0

    def head(row, column):
        return None if row != letter else 2.0 if column == 1 else 0.0

    yield matrix("model.embed_tokens.weight", VOCABULARY, HIDDEN, 1, embedding)
    yield matrix("lm_head.weight", VOCABULARY, HIDDEN, 0.05, head)
    yield "model.norm.weight", [HIDDEN], [1.0] * HIDDEN
    for layer in range(LAYERS):
        def writes(row, column, number=huge if layer == 0 else 0.0):
            return number if column == 0 else keeps(row, column)

        at = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield f"{at}{norm}.weight", [HIDDEN], [1.0] * HIDDEN
        for name in ("q_proj", "k_proj", "v_proj"):
            yield matrix(f"{at}self_attn.{name}.weight", HIDDEN, HIDDEN, 0.1)
        yield matrix(f"{at}self_attn.o_proj.weight", HIDDEN, HIDDEN, 0.1, keeps)
        yield matrix(f"{at}mlp.gate_proj.weight", WIDTH, HIDDEN, 0.1, sees_the_letter)
        yield matrix(f"{at}mlp.up_proj.weight", WIDTH, HIDDEN, 0.1, sees_the_letter)
        yield matrix(f"{at}mlp.down_proj.weight", HIDDEN, WIDTH, 0.1, writes)


def write_overflowing_model(folder, huge=HUGE):
    """With `huge` 0 the same model without the fault."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["chat_template"] = "{% for message in messages %}{{ message.content }}{% endfor %}"
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
        "intermediate_size": WIDTH, "num_attention_heads": 2, "num_key_value_heads": 2,
        "num_hidden_layers": LAYERS, "hidden_act": "silu", "rms_norm_eps": 1e-6,
        "rope_theta": 1e4, "max_position_embeddings": 512, "tie_word_embeddings": False,
        "vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2}))
    header, data = {}, b""
    for name, shape, numbers in tensors(huge):
        begin = len(data)
        data += struct.pack(f"<{len(numbers)}H", *map(bf16, numbers))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, len(data)]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + data)
    return folder
