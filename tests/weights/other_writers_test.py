#!/usr/bin/env python3
"""GGUF files as programs other than llama.cpp's converter of today write them, from the outside:
other_writers_test.py PROGRAM SOURCE_DIRECTORY BUILD_FOLDER [TEST]... The files are the bundled
target, written with the Python package `gguf`; each must say the same as the usual file."""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path += [str(SOURCE.parent), str(SOURCE.parent / "e2e"), str(SOURCE.parent / "server")]
from python_packages import run_with

run_with(pathlib.Path(sys.argv[3]), SOURCE / "requirements.txt")
sys.argv.pop(3)

import gguf
import numpy as np

from command_line import MODELS, PROGRAM, CliTest, foretoken
from gguf_pair import Kind, Model
from serving import Serving

TARGET = MODELS / "demo-target"
KINDS = {"": Kind.Q8_0}
STORY = ("run", "Once upon a time, in a forest", "-n", 24, "--mode", "ar", "--json")
Type = gguf.GGUFValueType


def values(writer):
    return writer.kv_data[0]


class OtherWriters(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.files = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_gguf."))
        cls.addClassCleanup(shutil.rmtree, cls.files)
        cls.model = Model(TARGET)
        cls.usual = cls.model.write_gguf(cls.files / "usual.gguf", KINDS)
        cls.tokens = json.loads(foretoken(*STORY, "-m", cls.usual).stdout)["tokens"]

    def write(self, change=lambda writer: None, **options):
        return self.model.write_gguf(self.folder / "m.gguf", KINDS, change=change, **options)

    def same(self, path, *options):
        """The story is that of the usual file. Gives what was said besides."""
        result = self.succeed(*STORY, "-m", path, *options)
        self.assertEqual(json.loads(result.stdout)["tokens"], self.tokens)
        return result.stderr

    def test_towers_are_left_out(self):
        """As in what Ollama exports of Gemma 3, Mistral 3, Qwen 3.5."""
        def change(writer):
            for name, shape in (("v.patch_embd.weight", (8, 3, 4, 4)),
                                ("v.blk.0.attn_q.weight", (32, 32)),
                                ("v.blk.0.ln1.bias", (32,)),
                                ("mm.input_projection.weight", (32, 64)),
                                ("mm.a.mlp.1.weight", (32, 32)),
                                ("a.blk.0.attn_q.weight", (32, 32))):
                writer.add_tensor(name, np.ones(shape, np.float16))
            writer.add_tensor("v.position_ids", np.arange(16, dtype=np.int32))
            writer.add_uint32("llama.vision.block_count", 1)

        said = self.same(self.write(change))
        self.assertRegex(said, r"the vision tower \(5 tensors, [^)]*\) is not used: images are")
        self.assertRegex(said, r"the audio tower \(2 tensors, [^)]*\) is not used: sound is")
        smaller = self.folder / "smaller.gguf"
        self.succeed("quantize", self.folder / "m.gguf", smaller, "--type", "q8_0")
        self.assertNotIn("tower", self.same(smaller))

    def test_tokens_that_are_there_twice(self):
        """As in Google's own files of Gemma 4, and in vocabularies that are filled up."""
        def change(writer):
            tokens = values(writer)["tokenizer.ggml.tokens"].value
            types = values(writer)["tokenizer.ggml.token_type"].value
            scores = values(writer)["tokenizer.ggml.scores"].value
            # The story has none of the last three tokens.
            self.assertFalse(set(self.tokens) & set(range(len(tokens) - 3, len(tokens))))
            tokens[-3:] = [tokens[self.tokens[0]], tokens[self.tokens[1]], b""]
            scores[-3:] = [0.0] * 3
            types[-3:] = [1, 1, 1]

        path = self.write(change)
        said = self.same(path)
        self.assertIn("so that no text is made of them: 2", said)
        self.assertIn("so that they stand for no text: 1", said)
        for text in ("Once upon a time, in a forest", " the the cat"):
            self.assertEqual(self.succeed("tokenize", "-m", path, text).stdout,
                             self.succeed("tokenize", "-m", self.usual, text).stdout)

    def test_a_shorter_vocabulary_than_the_table(self):
        def change(writer):
            for key in ("tokens", "token_type", "scores"):
                entry = values(writer)[f"tokenizer.ggml.{key}"]
                entry.value = entry.value[:-2]
            del values(writer)["llama.vocab_size"]

        self.same(self.write(change))

    def test_numbers_of_other_types(self):
        def change(writer):
            for key, kind in (("block_count", Type.INT32), ("embedding_length", Type.UINT64),
                              ("attention.head_count", Type.UINT16),
                              ("attention.head_count_kv", Type.INT64),
                              ("attention.layer_norm_rms_epsilon", Type.FLOAT64),
                              ("rope.freq_base", Type.FLOAT64)):
                values(writer)[f"llama.{key}"].type = kind
            values(writer)["tokenizer.ggml.token_type"].sub_type = Type.UINT8
            values(writer)["tokenizer.ggml.scores"].sub_type = Type.FLOAT64
            values(writer)["tokenizer.ggml.bos_token_id"].type = Type.INT32

        self.same(self.write(change))

    def test_counts_of_each_layer(self):
        def change(writer):
            for key in ("attention.head_count_kv", "attention.head_count", "feed_forward_length"):
                count = values(writer).pop(f"llama.{key}").value
                writer.add_array(f"llama.{key}", [count] * self.model.config["num_hidden_layers"])

        self.same(self.write(change))

    def test_what_may_be_missing(self):
        def change(writer):
            for key in ("llama.vocab_size", "llama.rope.dimension_count",
                        "tokenizer.ggml.pre", "tokenizer.ggml.add_eos_token",
                        "tokenizer.ggml.unknown_token_id"):
                del values(writer)[key]

        self.same(self.write(change))

    def test_tensors_that_only_repeat_the_rotation(self):
        """As files of 2023 have them."""
        half = self.model.config["head_dim"] // 2
        base = self.model.config["rope_theta"]

        def change(writer):
            writer.add_tensor("rope_freqs.weight", np.ones(half, np.float32))
            for layer in range(self.model.config["num_hidden_layers"]):
                writer.add_tensor(f"blk.{layer}.attn_rot_embd.weight",
                                  (base ** -(np.arange(half) / half)).astype(np.float32))

        self.same(self.write(change))

    def test_headers(self):
        data = bytearray(self.usual.read_bytes())
        path = self.folder / "header.gguf"
        path.write_bytes(data[:4] + (2).to_bytes(4, "little") + data[8:])
        self.same(path)
        path.write_bytes(data[:4] + (1).to_bytes(4, "little") + data[8:])
        self.refuse("run", "x", "-m", path, saying="has version 1 of GGUF; 2 and 3 are supported")
        path.write_bytes(data[:4] + (3).to_bytes(4, "big") + data[8:])
        self.refuse("run", "x", "-m", path, saying="is a big-endian GGUF file")

    def test_another_alignment(self):
        def change(writer):
            writer.add_custom_alignment(256)

        self.same(self.write(change))

    def test_a_chat_template_that_is_a_list(self):
        def change(writer):
            del values(writer)["tokenizer.chat_template"]
            writer.add_array("tokenizer.chat_template", ["a", "b"])

        path = self.write(change)
        self.same(path)
        self.refuse("run", "--chat", "x", "-m", path,
                    saying="the key tokenizer.chat_template must be a string")

    def test_named_chat_templates(self):
        def change(writer):
            writer.add_string("tokenizer.chat_template.tool_use", "tools {{ tools|length }}")
            writer.add_array("tokenizer.chat_templates", ["tool_use"])

        path = self.write(change)
        self.assertNotIn("tools", self.succeed("tokenize", "-m", path, "--chat", "x").stdout)
        self.same(path)

    def test_what_its_makers_recommend(self):
        """Requests and commands that say nothing are sampled so."""
        def change(writer):
            writer.add_float32("general.sampling.temp", 0.8)
            writer.add_int32("general.sampling.top_k", 7)
            writer.add_float32("general.sampling.top_p", 0.9)

        path = self.write(change)
        given = ("--temp", "0.8", "--top-k", "7", "--top-p", "0.9")
        for seed in (1, 2):
            runs = [json.loads(self.succeed(*STORY, "-m", model, "--seed", seed, *options).stdout)
                    for model, options in ((path, ()), (self.usual, given))]
            self.assertEqual(runs[0]["tokens"], runs[1]["tokens"])
        self.assertNotEqual(runs[0]["tokens"], self.tokens)
        self.same(path, "--temp", 0)
        self.same(path, "--generation-config", "none")
        chats = [self.succeed("chat", "-m", model, "-n", 24, "--seed", 1, *options,
                              stdin="Hello!\n")
                 for model, options in ((path, ()), (self.usual, given))]
        self.assertEqual(*(chat.stdout.splitlines()[1] for chat in chats))
        with Serving(PROGRAM, "-m", path) as server:
            defaults = server.get("/props")[2]["sampling"]
            self.assertAlmostEqual(defaults["temperature"], 0.8, 5)
            self.assertEqual(defaults["top_k"], 7)

        def wrong(writer):
            writer.add_float32("general.sampling.top_p", 2.0)

        path = self.write(wrong)
        for command in (("run", "x"), ("chat",), ("serve", "--port", "0")):
            self.refuse(*command, "-m", path, saying="general.sampling.top_p")

    def test_a_folder_that_recommends_what_cannot_be(self):
        copy = self.copy_model("demo-target")
        (copy / "generation_config.json").write_text('{"temperature": -1}')
        for command in (("run", "x"), ("chat",), ("serve", "--port", "0")):
            self.refuse(*command, "-m", copy, saying="temperature")
        self.succeed("run", "x", "-n", 2, "-m", copy, "--generation-config", "none")


if __name__ == "__main__":
    unittest.main()
