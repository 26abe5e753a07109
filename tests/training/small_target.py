"""A Llama in plain torch, for the tests of training: random or read from a model folder, and what
it answers written as a capture (docs/look_up/formats.md). On its own it captures a folder's
answers: small_target.py MODEL_FOLDER OUT_FOLDER ANSWERS TOKENS SEED."""

import json
import pathlib
import sys

import torch
from torch.nn import functional

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "training"))
from foretoken_train.safetensors import SafetensorsFile, write_safetensors

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16,
          "intermediate_size": 24, "num_hidden_layers": 6, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 4, "vocab_size": 40, "rms_norm_eps": 1e-5,
          "rope_theta": 10000.0, "max_position_embeddings": 64, "tie_word_embeddings": False}


TOKENIZER = 64 * "f"  # A fingerprint.


def write_random_target(folder, seed=0, **changes):
    """A model folder of random weights, sharp enough that its answers are not noise."""
    config = {**CONFIG, **changes}
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    width = config["head_dim"]
    generator = torch.Generator().manual_seed(seed)

    def matrix(rows, columns, scale=1.0):
        values = torch.randn(rows, columns, generator=generator) * scale / columns ** 0.5
        return values.to(torch.bfloat16)

    tensors = {"model.embed_tokens.weight": matrix(config["vocab_size"], hidden, hidden ** 0.5),
               "model.norm.weight": torch.ones(hidden, dtype=torch.bfloat16),
               "lm_head.weight": matrix(config["vocab_size"], hidden, 3.0)}
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{name}{norm}.weight"] = torch.ones(hidden, dtype=torch.bfloat16)
        heads, shared = config["num_attention_heads"], config["num_key_value_heads"]
        for part, rows, columns in (
                ("self_attn.q_proj", heads * width, hidden),
                ("self_attn.k_proj", shared * width, hidden),
                ("self_attn.v_proj", shared * width, hidden),
                ("self_attn.o_proj", hidden, heads * width), ("mlp.gate_proj", inner, hidden),
                ("mlp.up_proj", inner, hidden), ("mlp.down_proj", hidden, inner)):
            tensors[f"{name}{part}.weight"] = matrix(rows, columns)
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(config))


class SmallTarget:
    """Computes in float32, several sequences of one length at once, without a cache."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        file = SafetensorsFile(folder / "model.safetensors")
        self.weight = lambda name: file.tensor(name + ".weight").float()

    def _norm(self, name, x):
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + self.config["rms_norm_eps"])
        return x * scale * self.weight(name)

    def _attention(self, name, x):
        config = self.config
        count, length = x.shape[:2]
        width = config["head_dim"]

        def heads(part):
            return (x @ self.weight(f"{name}.{part}").T).view(count, length, -1, width)

        angle = torch.arange(length)[:, None] * config["rope_theta"] ** (
            -torch.arange(0, width, 2) / width)
        turn = torch.polar(torch.ones_like(angle), angle)[:, None]

        def rotated(part):
            values = heads(part)
            pairs = torch.complex(values[..., :width // 2], values[..., width // 2:]) * turn
            return torch.cat([pairs.real, pairs.imag], -1)

        group = config["num_attention_heads"] // config["num_key_value_heads"]
        query = rotated("q_proj")
        key, value = (part.repeat_interleave(group, 2) for part in
                      (rotated("k_proj"), heads("v_proj")))
        scores = torch.einsum("bqhd,bkhd->bhqk", query, key) * width ** -0.5
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        read = torch.einsum("bhqk,bkhd->bqhd", weights, value).reshape(count, length, -1)
        return read @ self.weight(f"{name}.o_proj").T

    @torch.no_grad()
    def forward(self, tokens, layers=()):
        """The residual stream that enters each of `layers`, and the state after the final norm,
        of tokens [sequences, length]."""
        x = self.weight("model.embed_tokens")[tokens]
        entering = []
        for layer in range(self.config["num_hidden_layers"]):
            entering.append(x)
            name = f"model.layers.{layer}."
            x = x + self._attention(name + "self_attn", self._norm(name + "input_layernorm", x))
            n = self._norm(name + "post_attention_layernorm", x)
            gate = functional.silu(n @ self.weight(name + "mlp.gate_proj").T)
            x = x + (gate * (n @ self.weight(name + "mlp.up_proj").T)) @ self.weight(
                name + "mlp.down_proj").T
        entering.append(x)
        return [entering[layer] for layer in layers], self._norm("model.norm", x)

    def logits(self, final):
        tied = self.config["tie_word_embeddings"]
        return final @ self.weight("model.embed_tokens" if tied else "lm_head").T

    def answers(self, prompts, count, temperature, generator):
        """Prompts [sequences, length] with `count` tokens more."""
        tokens = prompts
        for _ in range(count):
            logits = self.logits(self.forward(tokens)[1][:, -1])
            if temperature == 0:
                new = logits.argmax(-1, keepdim=True)
            else:
                new = torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)
            tokens = torch.cat([tokens, new], 1)
        return tokens


def write_capture(target, tokens, prompt, path, layers=(2, 3, 3)):
    """Writes tokens [sequences, length], whose first `prompt` are the prompts, as one shard."""
    taps, final = target.forward(tokens, layers)
    count, length = tokens.shape
    answer = torch.zeros(count, length, dtype=torch.uint8)
    answer[:, prompt:] = 1
    write_safetensors(path, {
        "tokens": tokens.reshape(-1).int(), "answer": answer.reshape(-1),
        "starts": torch.arange(0, count * length + 1, length),
        "taps": torch.cat(taps, -1).reshape(count * length, -1).to(torch.bfloat16),
        "final": final.reshape(count * length, -1).to(torch.bfloat16)},
        {"format": "1", "layers": ",".join(str(layer) for layer in layers),
         "tokenizer": TOKENIZER})
