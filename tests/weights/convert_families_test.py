#!/usr/bin/env python3
"""Folders of every family written as GGUF files: convert_families_test.py PROGRAM SOURCE_DIRECTORY
MODEL_LOGITS BUILD_FOLDER [TEST]... They have the tensors and keys that llama.cpp's converter would
give them (family_gguf.py), and read back, in F32 and BF16, they give the logits of the folder."""

import json
import pathlib
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path += [str(SOURCE.parent), str(SOURCE.parent / "e2e")]
from python_packages import run_with

run_with(pathlib.Path(sys.argv[4]), SOURCE / "requirements.txt")
MODEL_LOGITS = sys.argv.pop(3)
sys.argv.pop(3)

import gguf
import numpy as np

from attention_gguf import family_of
from command_line import CliTest
from golden_folders import FAMILIES, SAYABLE, logits_of, make_folder

WRITTEN = ("cohere", "cohere-qk-norm", "cohere2", "deepseek_v2", "deepseek_v2-groups",
           "deepseek_v3", "gemma2", "gemma3", "gemma4", "gemma4-moe", "gemma4-small", "glm", "glm4",
           "glm4_moe",
           "gpt_oss", "gpt_oss-mxfp4", "granite", "granitemoe", "granitemoehybrid",
           "granitemoehybrid-nope", "granitemoeshared", "llama", "llama-bias", "llama-dynamic",
           "llama-linear", "llama-yarn", "mimo", "ministral3", "mistral", "mixtral", "olmo2", "olmoe",
           "phi3", "phi3-long", "qwen2", "qwen2_moe", "qwen3", "qwen3_5", "qwen3_5_moe",
           "qwen3_moe", "qwen3_next", "smollm3", "stablelm", "stablelm-parallel")
# What files do not say, and how that is called.
UNSAID = {"mistral": ({}, "which layers see a window"),
          "mixtral": ({"sliding_window": 16}, "which layers see a window"), "gemma2": ({}, "the scale of its scores"),
          "gemma3": ({}, "the scale of its scores"),
          "qwen2_moe": ({"norm_topk_prob": True}, "how its experts are chosen and weighed"),
          "olmoe": ({"norm_topk_prob": True}, "how its experts are chosen and weighed")}
# Tensors that folders have besides, and what is said of them.
GUESSES = "what guesses further tokens ({}, 0.0 MB) is no part of the model, but may draft for it"
BESIDE = {
    "deepseek_v3": {("model.layers.2.enorm", "model.layers.2.self_attn.o_proj"):
                    GUESSES.format("2 tensors")},
    "qwen3_next": {("mtp.fc",): GUESSES.format("1 tensor")},
    "gemma3": {("vision_tower.encoder.layers.0.mlp", "multi_modal_projector.norm"):
               "the vision tower (2 tensors, 0.0 MB) is not used: images are refused"},
    "gemma4": {("model.vision_tower.patches",):
               "the vision tower (1 tensor, 0.0 MB) is not used: images are refused",
               ("model.embed_audio.projection",):
               "the audio tower (1 tensor, 0.0 MB) is not used: sound is refused",
               ("score",): "what is none of the text model (1 tensor, 0.0 MB, 'score.weight' first)"
                           " is not used"}}
# The context that a model is used for where that is not its own.
CONTEXTS = {"phi3": 128}


def add_tensors(folder, names, dtype="F32"):
    """Tensors that are of no use to the text model."""
    path = folder / "model.safetensors"
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, values = json.loads(data[8:8 + length]), data[8 + length:]
    for name in names:
        header[name + ".weight"] = {"dtype": dtype, "shape": [16 // (8 if dtype == "I64" else 4)],
                                    "data_offsets": [len(values), len(values) + 16]}
        values += bytes(16)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + values)


class ConvertFamilies(CliTest):
    def make_folder(self, name, **changes):
        return make_folder(name, self.folder, **changes)

    def logits(self, model, context, tokens, weights=""):
        return logits_of(MODEL_LOGITS, model, tokens, context, weights=weights)

    def check_like_a_converter(self, folder, file):
        """Tensors and keys of a file are those of the converter's."""
        expected = gguf.GGUFReader(family_of(folder).write_gguf(self.folder / "expected.gguf"))
        read = gguf.GGUFReader(file)
        tensors = {tensor.name: tensor for tensor in read.tensors}
        self.assertEqual(set(tensors), {tensor.name for tensor in expected.tensors})
        for tensor in expected.tensors:
            self.assertEqual(list(tensors[tensor.name].shape), list(tensor.shape), tensor.name)
            np.testing.assert_allclose(tensors[tensor.name].data, tensor.data, rtol=1e-6,
                                       err_msg=tensor.name)
        for key, field in expected.fields.items():
            wanted = field.contents()
            # What the tokenizer says, what no norm or MLP of the model has, a window that is none.
            other = (key.startswith(("GGUF.", "tokenizer."))
                     or key.endswith("sliding_window") and wanted == 0
                     or key.endswith(".feed_forward_length")
                     and not any(name.endswith("ffn_up.weight") for name in tensors))
            norms = key.replace("layer_norm_rms_epsilon", "layer_norm_epsilon")
            if other or (norms != key and norms in expected.fields):
                continue
            self.assertIn(key, set(read.fields))
            value = read.fields[key].contents()
            if isinstance(wanted, float):
                self.assertAlmostEqual(value, wanted, delta=2e-6 * abs(wanted), msg=key)
            else:
                self.assertEqual(value, wanted, key)

    def convert(self, name):
        folder = self.make_folder(name, **SAYABLE.get(name, {}))
        file, halves, rounded = (self.folder / f"{name}{of}.gguf" for of in ("", "-bf16", "-q"))
        self.succeed("quantize", folder, file, "--type", "f32")
        self.succeed("quantize", folder, halves, "--type", "bf16")
        tokens = json.loads((folder / "golden.json").read_text())["prompt_ids"]
        context = CONTEXTS.get(name, 0)
        of_folder = self.logits(folder, context, tokens)
        for each in (file, halves):
            np.testing.assert_array_equal(self.logits(each, context, tokens), of_folder)
        for weights in ("q8_0", "q4_k_m"):
            self.succeed("quantize", folder, rounded, "--type", weights, "--force")
            np.testing.assert_array_equal(
                self.logits(rounded, context, tokens),
                self.logits(folder, context, tokens, weights=weights), weights)
        if "quantization_config" in json.loads((folder / "config.json").read_text()):
            return  # Which the package does not convert.
        self.check_like_a_converter(folder, file)

    def test_what_files_do_not_say_is_refused(self):
        for name, (changes, difference) in UNSAID.items():
            with self.subTest(name):
                folder = self.make_folder(name, **changes)
                self.refuse("quantize", folder, self.folder / "no.gguf", "--type", "f32",
                            saying=f"would not say {difference} right")
                self.assertFalse((self.folder / "no.gguf").exists())

    def test_a_yarn_may_have_a_factor_of_its_own(self):
        folder = self.make_folder("llama-yarn", rope_scaling={
            "rope_type": "yarn", "factor": 4.0, "attention_factor": 0.7,
            "original_max_position_embeddings": 64})
        tokens = json.loads((folder / "golden.json").read_text())["prompt_ids"]
        file = self.folder / "yarn.gguf"
        self.succeed("quantize", folder, file, "--type", "f32")
        np.testing.assert_array_equal(self.logits(file, 0, tokens), self.logits(folder, 0, tokens))

    def test_what_is_beside_the_text_model_is_said_and_not_used(self):
        for name, parts in BESIDE.items():
            with self.subTest(name):
                folder = self.make_folder(name)
                tokens = json.loads((folder / "golden.json").read_text())["prompt_ids"]
                plain = self.logits(folder, 0, tokens)
                add_tensors(folder, [tensor for tensors in parts for tensor in tensors])
                np.testing.assert_array_equal(self.logits(folder, 0, tokens), plain)
                inspected = json.loads(
                    self.succeed("inspect", folder, "--no-measuring", "--json").stdout)
                self.assertEqual(inspected["not_used"], list(parts.values()))
                ran = self.succeed("run", "-m", folder, "--mode", "ar", "-p", "ab", "-n", 2)
                for sentence in parts.values():
                    self.assertIn(f"foretoken: warning: {name}: {sentence}\n", ran.stderr)

    def test_integers_are_none_of_weights(self):
        folder = self.make_folder("gemma4")
        add_tensors(folder, ["model.audio_tower.batches"], "I64")
        inspected = self.succeed("inspect", folder, "--no-measuring").stdout
        self.assertIn("the audio tower (1 tensor, 0.0 MB) is not used", inspected)
        add_tensors(folder, ["model.layers.0.mlp.gate"], "I64")
        self.refuse("inspect", folder, saying="mlp.gate.weight' has dtype I64, but only F32")

    def test_what_is_of_a_layer_and_unknown_is_refused(self):
        for tensor in ("model.layers.1.odd", "model.language_model.layers.1.odd"):
            folder = self.make_folder("gemma3")
            add_tensors(folder, [tensor])
            self.refuse("inspect", folder, saying=f"has tensor '{tensor}.weight', which is none of")

    def test_layers_of_files_that_guess_further_tokens_are_not_used(self):
        def change(writer):
            writer.add_nextn_predict_layers(1)
            for tensor in ("attn_norm", "nextn.eh_proj"):
                writer.add_tensor(f"blk.2.{tensor}.weight", np.zeros(4, np.float32))
        family = family_of(FAMILIES / "deepseek_v3")
        tokens = json.loads((FAMILIES / "deepseek_v3" / "golden.json").read_text())["prompt_ids"]
        plain = self.logits(family.write_gguf(self.folder / "plain.gguf"), 0, tokens)
        family.config["num_hidden_layers"] += 1
        more, written = self.folder / "more.gguf", self.folder / "written.gguf"
        family.write_gguf(more, change)
        np.testing.assert_array_equal(self.logits(more, 0, tokens), plain)
        said = self.succeed("quantize", more, written, "--type", "f32").stderr
        self.assertIn(GUESSES.format("2 tensors"), said)
        reader = gguf.GGUFReader(written)
        self.assertEqual(reader.fields["deepseek2.block_count"].contents(), 2)
        self.assertFalse([name for name in reader.fields if "nextn" in name])
        np.testing.assert_array_equal(self.logits(written, 0, tokens), plain)

    def test_blocks_of_folders_stay_what_they_are(self):
        folder = self.make_folder("gpt_oss-mxfp4")
        file = self.folder / "out.gguf"
        self.succeed("quantize", folder, file, "--type", "mxfp4")
        reader = gguf.GGUFReader(file)
        formats = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
        self.assertEqual({formats[name] for name in formats if name.endswith("_exps.weight")},
                         {"MXFP4"})
        self.assertEqual({formats[name] for name in formats if name.endswith("_exps.bias")},
                         {"F32"})
        plain = self.folder / "plain.gguf"
        self.succeed("quantize", folder, plain, "--type", "f32")
        floats = {tensor.name: tensor.data for tensor in gguf.GGUFReader(plain).tensors}
        for tensor in reader.tensors:
            if tensor.name.endswith("_exps.weight"):
                np.testing.assert_array_equal(
                    gguf.quants.dequantize(tensor.data, tensor.tensor_type), floats[tensor.name])

    def test_files_say_all_of_a_folder(self):
        for name in WRITTEN:
            with self.subTest(name):
                self.convert(name)


if __name__ == "__main__":
    unittest.main()
