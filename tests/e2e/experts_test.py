#!/usr/bin/env python3
"""Experts that stay in the model's file: experts_test.py PROGRAM SOURCE_DIRECTORY [TEST]..."""

import json
import math
import pathlib
import random
import re
import subprocess
import sys
import unittest

from command_line import CLEAN_ENVIRONMENT, PROGRAM, CliTest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from letter_tokenizer import VOCABULARY, write_tokenizer

HIDDEN = 256
LAYERS = 3
EXPERTS = 64
EXPERT_BYTES = LAYERS * EXPERTS * 3 * HIDDEN * HIDDEN * 2
PROMPT = "it was a cold day and all of them sat by the fire to hear the old tale of the sea"
SMALL = bytes(byte & 0x80 | 0x3C for byte in range(256))  # Sign and exponent of a BF16 number.


def numbers(generator, count):
    """BF16, of either sign, around a hundredth."""
    data = bytearray(generator.randbytes(2 * count))
    data[1::2] = data[1::2].translate(SMALL)
    return bytes(data)


class Experts(CliTest):
    def setUp(self):
        super().setUp()
        generator = random.Random(3)
        header, data = {}, []

        def add(name, *shape, gain=False):
            begin = sum(map(len, data))
            data.append(b"\x80\x3f" * shape[0] if gain else numbers(generator, math.prod(shape)))
            header[name + ".weight"] = {"dtype": "BF16", "shape": shape,
                                        "data_offsets": [begin, begin + len(data[-1])]}

        add("model.embed_tokens", VOCABULARY, HIDDEN)
        add("model.norm", HIDDEN, gain=True)
        for layer in range(LAYERS):
            at = f"model.layers.{layer}."
            for norm in ("input_layernorm", "post_attention_layernorm"):
                add(at + norm, HIDDEN, gain=True)
            for name in "qkvo":
                add(f"{at}self_attn.{name}_proj", HIDDEN, HIDDEN)
            for name in "qk":
                add(f"{at}self_attn.{name}_norm", 64, gain=True)
            add(at + "mlp.gate", EXPERTS, HIDDEN)
            for expert in range(EXPERTS):
                for name in ("gate", "up", "down"):
                    add(f"{at}mlp.experts.{expert}.{name}_proj", HIDDEN, HIDDEN)
        text = json.dumps(header).encode()
        self.model = self.folder / "model"
        self.model.mkdir()
        (self.model / "model.safetensors").write_bytes(
            len(text).to_bytes(8, "little") + text + b"".join(data))
        (self.model / "config.json").write_text(json.dumps({
            "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
            "hidden_size": HIDDEN, "intermediate_size": HIDDEN, "moe_intermediate_size": HIDDEN,
            "num_experts": EXPERTS, "num_experts_per_tok": 8, "norm_topk_prob": True,
            "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 64,
            "num_hidden_layers": LAYERS, "hidden_act": "silu", "rms_norm_eps": 1e-6,
            "rope_theta": 1e4, "max_position_embeddings": 512, "tie_word_embeddings": True,
            "vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2}))
        write_tokenizer(self.model)

    def memory_while_decoding(self, experts):
        """RssAnon and RssFile, in bytes, once there is output."""
        command = [PROGRAM, "run", PROMPT, "-m", self.model, "--experts", experts, "--mode", "ar",
                   "--ignore-eos", "-n", "400", "--temp", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=CLEAN_ENVIRONMENT) as process:
            self.assertTrue(process.stdout.read(1))
            with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                sizes = dict(re.findall(r"(Rss\w+):\s+(\d+) kB", status.read()))
            process.stdout.read()
        self.assertEqual(process.returncode, 0)
        return int(sizes["RssAnon"]) * 1024, int(sizes["RssFile"]) * 1024

    def test_experts_stay_in_the_file(self):
        packed_anonymous, packed_file = self.memory_while_decoding("memory")
        anonymous, file = self.memory_while_decoding("mmap")
        self.assertGreater(packed_anonymous - anonymous, 0.8 * EXPERT_BYTES)
        self.assertGreater(file - packed_file, 0.3 * EXPERT_BYTES)

    def test_tokens_are_those_of_packed_experts(self):
        outputs = set()
        for experts in ("memory", "mmap"):
            for options in (("--precision", "bf16"), ("--precision", "bf16", "--mode", "sssd")):
                outputs.add(self.succeed("run", PROMPT, "-m", self.model, "--experts", experts,
                                         "-n", 100, "--ignore-eos", "--temp", 0.8, *options).stdout)
        self.assertEqual(len(outputs), 1)

    def test_verify_and_bench_take_them_too(self):
        shared = ("-m", self.model, "--experts", "mmap", "-n", 40, "--json", "-")
        prompts = self.folder / "prompts.jsonl"
        prompts.write_text(json.dumps({"prompt": PROMPT}) + "\n")
        report = self.succeed("verify", *shared, "--prompts", prompts, "--raw", "--modes",
                              "sssd,ngram", "--temps", "0.8", "--sampler-sets", "none",
                              "--batches", "1")
        self.assertTrue(json.loads(report.stdout)["identical"])
        self.succeed("bench", *shared, "--prompts", prompts, "--raw", "--modes", "ar,ngram")

    def test_inspect_says_what_stays(self):
        memory = {}
        for experts in ("memory", "mmap"):
            shown = self.succeed("inspect", self.model, "--experts", experts, "--json",
                                 "--no-measuring")
            memory[experts] = json.loads(shown.stdout)["memory"]
        self.assertEqual(memory["memory"]["mapped_expert_bytes"], 0)
        self.assertEqual(memory["mmap"]["mapped_expert_bytes"], EXPERT_BYTES)
        self.assertEqual(memory["memory"]["weight_bytes"] - memory["mmap"]["weight_bytes"],
                         EXPERT_BYTES)
        self.assertEqual(memory["memory"]["weight_bytes_per_token"],
                         memory["mmap"]["weight_bytes_per_token"])
        self.assertIn("of experts in the file", self.succeed(
            "inspect", self.model, "--experts", "mmap", "--no-measuring").stdout)

    def test_what_cannot_stay_is_refused(self):
        run = ("run", "hello", "-m", self.model, "--experts", "mmap")
        self.refuse(*run, "--weights", "q8_0", saying="is to be converted as it is loaded")
        self.refuse("run", "hello", "--experts", "mmap", saying="has no experts")
        self.refuse("bench", "--synthetic", "moe-669m", "--experts", "mmap", saying="in no file")


if __name__ == "__main__":
    unittest.main()
