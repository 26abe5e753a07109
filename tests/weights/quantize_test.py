#!/usr/bin/env python3
"""Models written with weights of other types, and loaded so: quantize_test.py PROGRAM
SOURCE_DIRECTORY BUILD_FOLDER [TEST]... What is written is read with the Python package `gguf`."""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path += [str(SOURCE.parent), str(SOURCE.parent / "e2e")]
from python_packages import run_with

run_with(pathlib.Path(sys.argv[3]), SOURCE / "requirements.txt")
sys.argv.pop(3)

import gguf
import numpy as np

from command_line import MODELS, CliTest
from gguf_pair import Kind, Model, apart, gguf_name, interleaved

TARGET = MODELS / "demo-target"
DRAFT = MODELS / "demo-draft"
STORY = ("run", "Once upon a time, in a forest", "-n", 48, "--logprobs", 5, "--json")
# Each type: what most tensors, the lm head, and v_proj and down_proj of the last layer become; and
# the most that weights change, relative and root mean square.
TYPES = {
    "q8_0": ("Q8_0", "Q8_0", "Q8_0", "Q8_0", 0.01), "q4_0": ("Q4_0", "Q6_K", "Q4_0", "Q4_0", 0.12),
    "q4_1": ("Q4_1", "Q6_K", "Q4_1", "Q4_1", 0.11), "q5_0": ("Q5_0", "Q6_K", "Q5_0", "Q5_0", 0.06),
    "q5_1": ("Q5_1", "Q6_K", "Q5_1", "Q5_1", 0.05),
    "q4_k_m": ("Q4_K", "Q6_K", "Q6_K", "Q6_K", 0.1),
    "q4_k_s": ("Q4_K", "Q6_K", "Q4_K", "Q4_K", 0.1),
    "q5_k_m": ("Q5_K", "Q6_K", "Q6_K", "Q6_K", 0.05),
    "q6_k": ("Q6_K", "Q6_K", "Q6_K", "Q6_K", 0.03), "q2_k": ("Q2_K", "Q6_K", "Q3_K", "Q3_K", 0.35),
    "q3_k_m": ("Q3_K", "Q6_K", "Q4_K", "Q4_K", 0.2),
    "iq4_nl": ("IQ4_NL", "Q6_K", "IQ4_NL", "IQ4_NL", 0.09),
    "mxfp4": ("MXFP4", "Q6_K", "MXFP4", "MXFP4", 0.13), "bf16": ("BF16", "BF16", "BF16", "BF16", 0),
    "f16": ("F16", "F16", "F16", "F16", 1e-3), "f32": ("F32", "F32", "F32", "F32", 0),
}
# What the demo draft, 64 wide, gets where a type has blocks of 256.
NARROW = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}


class Quantized(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.files = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_quantize."))
        cls.addClassCleanup(shutil.rmtree, cls.files)
        cls.target, cls.draft = Model(TARGET), Model(DRAFT)

    def file_of(self, folder, kind):
        """The model of a folder as a file of that type, written once."""
        path = self.files / f"{folder.name}-{kind}.gguf"
        if not path.exists():
            self.succeed("quantize", folder, path, "--type", kind)
        return path

    def story(self, *options):
        report = json.loads(self.succeed(*STORY, *options).stdout)
        return report["tokens"], report["text"], report["logprobs"]

    def check_file(self, model, kind, narrow):
        most, head, value, down, error = TYPES[kind]
        reader = gguf.GGUFReader(self.file_of(model.folder, kind))
        tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.assertEqual(set(tensors), {gguf_name(name) for name in model.tensors})
        last = f".{model.config['num_hidden_layers'] - 1}."
        for name, values in model.tensors.items():
            tensor = tensors[gguf_name(name)]
            mixed = any(part in name for part in ("v_proj", "down_proj", "o_proj"))
            wanted = head if "embed" in name else "F32" if values.ndim == 1 else most
            if mixed and not narrow and last in name and "o_proj" not in name:
                wanted = value if "v_proj" in name else down
            elif mixed:
                wanted = tensor.tensor_type.name
            if values.shape[-1] % 256 != 0:
                wanted = NARROW.get(wanted, wanted)
            self.assertEqual(tensor.tensor_type.name, wanted, (kind, name))
            read = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
            read = read.reshape(values.shape)
            if model.heads(name):
                read = apart(read, model.heads(name))
            change = np.sqrt(np.mean((read - values) ** 2) / np.mean(values ** 2))
            self.assertLessEqual(change, error, (kind, name))
        return reader, tensors

    def test_files_of_every_type_are_read_by_others(self):
        for kind in TYPES:
            self.check_file(self.target, kind, narrow=False)
        for kind in ("q4_k_m", "q5_k_m", "q6_k", "q2_k", "q3_k_m", "q8_0"):
            self.check_file(self.draft, kind, narrow=True)
        out = self.succeed("quantize", DRAFT, self.folder / "out.gguf", "--type", "q4_k_m").stdout
        self.assertIn("tensors have a width that is no multiple of q4_k_m's blocks", out)
        out = self.succeed("quantize", TARGET, self.folder / "wide.gguf", "--type", "q4_k_m").stdout
        self.assertNotIn("blocks", out)

    def test_blocks_of_one_scale_are_those_that_others_write(self):
        for kind in ("q8_0", "q4_0", "q5_1"):
            _, tensors = self.check_file(self.target, kind, narrow=False)
            for name, values in self.target.tensors.items():
                tensor = tensors[gguf_name(name)]
                if tensor.tensor_type.name.lower() != kind:
                    continue
                if self.target.heads(name):
                    values = interleaved(values, self.target.heads(name))
                wanted = gguf.quants.quantize(values, tensor.tensor_type)
                self.assertTrue(np.array_equal(tensor.data, wanted), (kind, name))

    def test_unchanged_weights_give_the_same_logits(self):
        for precision in ("bf16", "f32"):
            options = ("--mode", "ar", "--precision", precision)
            expected = self.story("-m", TARGET, *options)
            for kind in ("bf16", "f32"):
                self.assertEqual(self.story("-m", self.file_of(TARGET, kind), *options), expected)

    def test_the_tokenizer_stays_what_it_is(self):
        for folder in (TARGET, DRAFT):
            path = self.file_of(folder, "q8_0")
            reports = [json.loads(self.succeed("inspect", model, "--json").stdout)
                       for model in (path, folder)]
            self.assertEqual(reports[0]["tokenizer"], reports[1]["tokenizer"])
            text = "Once <|im_start|> upon</s> a  time\n"
            for options in ((), ("--literal",), ("--chat",), ("--no-bos",)):
                self.assertEqual(self.succeed("tokenize", "-m", path, *options, text).stdout,
                                 self.succeed("tokenize", "-m", folder, *options, text).stdout)

    def test_every_mode_gives_the_same_tokens(self):
        for target, draft in (("q4_k_m", "q4_k_m"), ("q2_k", "q4_0"), ("q5_1", "q6_k")):
            report = json.loads(self.succeed(
                "verify", "-m", self.file_of(TARGET, target), "-md", self.file_of(DRAFT, draft),
                "--limit", 1, "-n", 24, "--batches", "1,3", "--temps", "0,1.0", "--sampler-sets",
                "none", "--json", "-").stdout)
            self.assertTrue(report["identical"], (target, draft))

    def test_a_files_keys_are_carried_over(self):
        def extra(writer):
            writer.add_string("general.license", "apache-2.0")
            writer.add_array("some.list", [3, 1, 2])
            writer.add_int8("some.small", -5)
            writer.add_float64("some.wide", 0.1)

        source = self.target.write_gguf(self.folder / "in.gguf", {"": Kind.F16}, change=extra)
        out = self.folder / "out.gguf"
        self.succeed("quantize", source, out, "--type", "q8_0")
        own = ("general.file_type", "general.quantization_version")
        contents = []
        for path in (source, out):
            fields = gguf.GGUFReader(path).fields
            contents.append({name: (field.types, field.contents()) for name, field in fields.items()
                             if not name.startswith("GGUF.") and name not in own})
        self.assertEqual(contents[0], contents[1])
        field = gguf.GGUFReader(out).fields["general.file_type"]
        self.assertEqual(field.contents(), gguf.LlamaFileType.MOSTLY_Q8_0)
        # From blocks to others, and a file onto itself.
        self.succeed("quantize", out, out, "--type", "q4_0", "--force")
        self.assertIn("Q4_0", self.succeed("inspect", out).stdout)
        self.story("-m", out, "--mode", "ar")

    def test_the_parts_of_a_model_become_one_file(self):
        self.target.write_gguf(self.folder / "split.gguf", {"": Kind.F16}, split_max_tensors=20)
        out = self.folder / "whole.gguf"
        self.succeed("quantize", sorted(self.folder.glob("split-*"))[0], out, "--type", "f16")
        reader = gguf.GGUFReader(out)
        self.assertEqual(len(reader.tensors), len(self.target.tensors))
        self.assertEqual([name for name in reader.fields if name.startswith("split.")], [])

    def test_weights_may_be_converted_as_they_are_loaded(self):
        for kind in ("q4_0", "q4_k", "q6_k", "f32"):
            path = self.file_of(TARGET, {"q4_k": "q4_k_m"}.get(kind, kind))
            self.assertEqual(self.story("-m", TARGET, "--weights", kind, "--mode", "ar"),
                             self.story("-m", path, "--mode", "ar"), kind)
        # A file is converted too, and the draft's weights apart from the target's.
        path = self.file_of(TARGET, "bf16")
        expected = self.story("-m", path, "--weights", "q8_0", "--mode", "ar")[0]
        for mode in ("sd", "ssd", "auto"):
            self.assertEqual(self.story("-m", path, "--weights", "q8_0", "-md", DRAFT,
                                        "--draft-weights", "q4_0", "--mode", mode)[0], expected)
        report = json.loads(self.succeed("inspect", TARGET, "--weights", "q4_0", "--json").stdout)
        self.assertEqual(set(report["stored"]["types"]), {"F32", "Q4_0", "Q6_K"})
        self.assertEqual(report["memory"]["precision"], "portable")

    def test_a_model_drafts_for_itself(self):
        expected = self.story("-m", TARGET, "--mode", "ar")[0]
        for options in (("--mode", "sd"), ("--mode", "ssd"),
                        ("--mode", "ssd", "--draft-process")):
            report = json.loads(self.succeed(*STORY, "-m", TARGET, "-md", "self:q4_0",
                                             *options).stdout)
            self.assertEqual(report["tokens"], expected, options)
        report = json.loads(self.succeed(*STORY, "-m", TARGET, "-md", "self:q8_0", "-k", 6,
                                         "--mode", "sd").stdout)
        self.assertLess(report["stats"]["rounds"], 48 / 4)  # It hardly ever differs.

    def test_calibrations_tell_conversions_apart(self):
        measured = self.folder / "measured.json"
        common = ("--limit", 1, "-n", 16, "-k", 2, "--temps", "0.7")
        self.succeed("calibrate", *common, "-m", TARGET, "--weights", "q4_0", "-md", DRAFT, "-o",
                     measured)
        models = json.loads(measured.read_text())["models"]
        self.succeed("calibrate", *common, "-m", TARGET, "-md", DRAFT, "-o", measured)
        self.assertNotEqual(models["target"],
                            json.loads(measured.read_text())["models"]["target"])


class BadInput(CliTest):
    """Whatever is wrong ends in exit code 2 and one sentence, and leaves no file."""

    def refuse_quantizing(self, source, saying, *options):
        out = self.folder / "out.gguf"
        self.refuse("quantize", source, out, *(options or ("--type", "q8_0")), saying=saying)
        self.assertEqual(list(self.folder.glob("out*")), [])

    def test_quantize(self):
        self.refuse_quantizing(DRAFT, "q9", "--type", "q9")
        self.refuse_quantizing(self.folder / "none", "there is no such model folder or GGUF file")
        self.refuse_quantizing(TARGET / "config.json", "is not a GGUF file")
        self.refuse("quantize", DRAFT, self.folder / "no" / "out.gguf", "--type", "q8_0",
                    saying="cannot write")
        self.refuse("quantize", DRAFT, self.folder, "--type", "q8_0", saying="cannot write")
        present = self.folder / "present.gguf"
        present.write_text("mine")
        self.refuse("quantize", DRAFT, present, "--type", "q8_0",
                    saying="is there already; --force replaces it")
        self.assertEqual(present.read_text(), "mine")
        copy = self.copy_model("demo-draft")
        weights = copy / "model.safetensors"
        data = bytearray(weights.read_bytes())
        data[-2:] = b"\xc0\x7f"  # A NaN of BF16.
        weights.write_bytes(data)
        self.refuse_quantizing(copy, "but must be a finite number")
        (copy / "tokenizer.model").unlink()
        self.refuse_quantizing(copy, "holds no tokenizer")

    def test_conversion_as_models_are_loaded(self):
        self.refuse("run", "x", "--weights", "q9", saying="'q9' is no type of weights; there are")
        self.refuse("run", "x", "--mode", "sd", "--draft-weights", "q9",
                    saying="'q9' is no type of weights")
        self.refuse("run", "x", "--mode", "sd", "-md", "self:", saying="write self:TYPE")
        self.refuse("run", "x", "--mode", "sd", "-md", "self:q9", saying="is no type of weights")
        self.refuse("run", "x", "-m", TARGET, "--mode", "ar", "--draft-weights", "q8_0",
                    saying="--draft-weights converts the weights of a draft in files")


if __name__ == "__main__":
    unittest.main()
