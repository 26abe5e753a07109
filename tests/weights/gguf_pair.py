"""The bundled models as GGUF files, written as llama.cpp's converter lays them out, and as folders
with other weights. Needs the packages of requirements.txt."""

import json
import shutil

import gguf
import numpy as np
import sentencepiece

Kind = gguf.GGMLQuantizationType

NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
LAYER_NAMES = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
               "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
               "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
               "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
# What gguf.quants cannot quantise to; a tensor of such a kind has random blocks. Where a block's
# scales lie, and its bytes.
RANDOM_BLOCKS = {Kind.Q4_K: ((0, 2), 144), Kind.Q6_K: ((208,), 210)}


def gguf_name(name):
    name = name.removesuffix(".weight")
    if name.startswith("model.layers."):
        number, rest = name.removeprefix("model.layers.").split(".", 1)
        return f"blk.{number}.{LAYER_NAMES[rest]}.weight"
    return NAMES[name] + ".weight"


def interleaved(rows, heads):
    """Rows of q or k as GGUF files have them: the halves of each head alternate."""
    shape = rows.shape
    return rows.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def apart(rows, heads):
    """The other way round."""
    shape = rows.shape
    return rows.reshape(heads, shape[0] // heads // 2, 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def random_blocks(rows, kind, seed):
    random = np.random.default_rng(seed)
    places, size = RANDOM_BLOCKS[kind]
    count = rows.size // 256
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    for at in places:
        scales = (random.normal(0, 1, count) * 1e-5).astype(np.float16)
        blocks[:, at:at + 2] = scales.view(np.uint8).reshape(count, 2)
    return blocks.reshape(rows.shape[0], -1)


def read_safetensors(path):
    """Tensors of BF16 or F32 by name, as float32."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, info in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = info["data_offsets"]
        values = data[8 + length + begin:8 + length + end]
        if info["dtype"] == "BF16":
            values = (np.frombuffer(values, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            assert info["dtype"] == "F32"
            values = np.frombuffer(values, np.float32)
        tensors[name] = values.reshape(info["shape"])
    return tensors


class Model:
    """A bundled model: its folder, configuration and tensors as float32."""

    def __init__(self, folder):
        self.folder = folder
        self.config = json.loads((folder / "config.json").read_text())
        self.tensors = read_safetensors(folder / "model.safetensors")

    def heads(self, name):
        """Of a tensor whose heads are rotated; 0: none of it are."""
        if "q_proj" in name:
            return self.config["num_attention_heads"]
        return self.config["num_key_value_heads"] if "k_proj" in name else 0

    def blocks(self, kinds):
        """Each tensor by its name in GGUF files: bytes, kind. `kinds` maps a part of a name to the
        kind of the matrices that have it; norms are F32."""
        for number, (name, values) in enumerate(self.tensors.items()):
            kind = next((kind for part, kind in kinds.items() if part in name), None)
            if values.ndim == 1 or kind is None:
                kind = Kind.F32
            if self.heads(name):
                values = interleaved(values, self.heads(name))
            if kind in RANDOM_BLOCKS:
                data = random_blocks(values, kind, number)
            else:
                data = gguf.quants.quantize(values, kind)
            yield name, data, kind

    def write_gguf(self, path, kinds, change=lambda writer: None, leave_out=(), **options):
        """`change` changes metadata. Of tensors, and of "tokenizer", those in `leave_out` are not
        written."""
        writer = gguf.GGUFWriter(path, "llama", **options)
        config = self.config
        writer.add_context_length(config["max_position_embeddings"])
        writer.add_embedding_length(config["hidden_size"])
        writer.add_block_count(config["num_hidden_layers"])
        writer.add_feed_forward_length(config["intermediate_size"])
        writer.add_head_count(config["num_attention_heads"])
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
        writer.add_rope_dimension_count(config["head_dim"])
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(config["rope_theta"])
        writer.add_vocab_size(config["vocab_size"])
        if "tokenizer" not in leave_out:
            self.add_tokenizer(writer)
        change(writer)
        for name, data, kind in self.blocks(kinds):
            if gguf_name(name) not in leave_out:
                writer.add_tensor(gguf_name(name), data, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def add_tokenizer(self, writer):
        pieces = sentencepiece.SentencePieceProcessor(
            model_file=str(self.folder / "tokenizer.model"))
        config = json.loads((self.folder / "tokenizer_config.json").read_text())
        # The library tells user-defined pieces from others as little as the converter does.
        types = [2 if pieces.is_unknown(i) else 3 if pieces.is_control(i) else
                 6 if pieces.is_byte(i) else 1 for i in range(pieces.vocab_size())]
        writer.add_tokenizer_model("llama")
        writer.add_tokenizer_pre("default")
        writer.add_token_list([pieces.id_to_piece(i).encode() for i in range(len(types))])
        writer.add_token_scores([pieces.get_score(i) for i in range(len(types))])
        writer.add_token_types(types)
        writer.add_bos_token_id(pieces.bos_id())
        writer.add_eos_token_id(pieces.eos_id())
        writer.add_eot_token_id(pieces.piece_to_id(config["eos_token"]))
        writer.add_unk_token_id(pieces.unk_id())
        writer.add_add_bos_token(config["add_bos_token"])
        writer.add_add_eos_token(config["add_eos_token"])
        writer.add_chat_template(config["chat_template"])

    def write_folder(self, path, kinds):
        """A folder with the numbers, as F32, that `kinds` of blocks stand for."""
        shutil.copytree(self.folder, path)
        header, data = {}, b""
        for name, blocks, kind in self.blocks(kinds):
            values = gguf.quants.dequantize(blocks, kind).astype(np.float32)
            if self.heads(name):
                values = apart(values, self.heads(name))
            end = len(data) + values.nbytes
            header[name] = {"dtype": "F32", "shape": list(values.shape),
                            "data_offsets": [len(data), end]}
            data += values.tobytes()
        text = json.dumps(header).encode()
        (path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
        return path
