#!/usr/bin/env python3
"""Models of every family as GGUF files, which must give the logits that their folders give:
families_test.py MODEL_LOGITS BUILD_FOLDER [TEST]..."""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(SOURCE.parent))
from python_packages import run_with

run_with(pathlib.Path(sys.argv[2]), SOURCE / "requirements.txt")
MODEL_LOGITS = sys.argv.pop(1)
sys.argv.pop(1)

import numpy as np

from attention_gguf import family_of
from gguf_pair import Kind
from golden_folders import logits_of

FOLDERS = SOURCE.parent / "golden" / "families"
ADAPTER_FOLDERS = SOURCE.parent / "golden" / "adapters"
# Models whose files say all that their folders do, with one scale for all tensors.
ADAPTERS = ("llama", "qwen2", "qwen3", "phi3", "glm4", "cohere", "granite", "olmo2", "smollm3")
# What files do not say: the folder that a file is compared with has this in its config.json.
UNSAID = {"mistral": {"sliding_window": None}, "gemma2": {"query_pre_attn_scalar": 16},
          "gemma3": {"query_pre_attn_scalar": 16}}
# Whose files have other numbers than their folders: factors of frequencies as float32, rates of
# forgetting by another exp.
ROUNDED = ("llama", "phi3", "phi3-long", "ministral3", "deepseek_v2", "deepseek_v2-groups",
           "deepseek_v3", "qwen3_next", "qwen3_5", "qwen3_5_moe")
# The context that a model is used for where that is not its own.
CONTEXTS = {"phi3": 128}
EXACT = ("llama-bias", "llama-linear", "llama-yarn", "llama-dynamic", "mistral", "mimo", "qwen2",
         "qwen3",
         "gemma2", "gemma3", "gemma4", "gemma4-moe", "gemma4-small", "olmo2", "granite",
         "granitemoehybrid", "granitemoehybrid-nope", "smollm3", "glm", "glm4", "glm4_moe", "cohere",
         "cohere-qk-norm", "cohere2", "stablelm", "stablelm-parallel", "mixtral", "qwen3_moe",
         "qwen2_moe", "granitemoe", "granitemoeshared", "olmoe", "gpt_oss")


class Families(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_families."))
        self.addCleanup(shutil.rmtree, self.folder)

    def logits(self, model, context, tokens, adapter=""):
        return logits_of(MODEL_LOGITS, model, tokens, context, adapter)

    def compare(self, name):
        golden = json.loads((FOLDERS / name / "golden.json").read_text())
        tokens = golden["prompt_ids"]
        folder = shutil.copytree(FOLDERS / name, self.folder / name)
        family = family_of(folder)
        file = family.write_gguf(self.folder / f"{name}.gguf")
        config = {**family.config, **UNSAID.get(name, {})}
        (folder / "config.json").write_text(json.dumps(config))
        context = CONTEXTS.get(name, 0)
        of_folder = self.logits(folder, context, tokens)
        of_file = self.logits(file, context, tokens)
        if name in EXACT:
            np.testing.assert_array_equal(of_file, of_folder)
        else:
            np.testing.assert_allclose(of_file, of_folder, atol=1e-5 * np.abs(of_folder).max())
        if name not in UNSAID:
            expected = np.array(golden["last_logits"], np.float32)
            np.testing.assert_allclose(of_file[-1], expected, atol=1e-4 * np.abs(expected).max())

    def test_files_give_the_logits_of_folders(self):
        for name in (*EXACT, *ROUNDED):
            with self.subTest(name):
                self.compare(name)

    def test_experts_in_blocks_are_the_numbers_that_these_stand_for(self):
        for name in ("mixtral", "qwen2_moe", "granitemoe", "gpt_oss"):
            family = family_of(FOLDERS / name)
            tokens = json.loads((FOLDERS / name / "golden.json").read_text())["prompt_ids"]
            for kind in (Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q8_0, Kind.MXFP4,
                         Kind.BF16, Kind.F16):
                with self.subTest(name, kind=kind.name):
                    blocks, floats = self.folder / "blocks.gguf", self.folder / "floats.gguf"
                    family.write_gguf(blocks, experts=kind)
                    family.write_gguf(floats, experts=kind, as_floats=True)
                    np.testing.assert_array_equal(self.logits(blocks, 0, tokens),
                                                  self.logits(floats, 0, tokens))

    def test_adapters_of_both_forms_go_with_models_of_both(self):
        for name in ADAPTERS:
            with self.subTest(name):
                self.compare_adapter(name)

    def compare_adapter(self, name):
        adapter = ADAPTER_FOLDERS / name
        golden = json.loads((adapter / "golden.json").read_text())
        tokens = golden["prompt_ids"]
        family = family_of(FOLDERS / golden["model"])
        file = family.write_gguf(self.folder / f"{name}.gguf")
        adapter_file = family.write_adapter(adapter, self.folder / f"{name}-lora.gguf")
        expected = np.array(golden["last_logits"], np.float32)
        folder = FOLDERS / golden["model"]
        plain = self.logits(folder, 0, tokens)
        for model in (folder, file):
            for form in (adapter, adapter_file):
                logits = self.logits(model, 0, tokens, form)[-1]
                np.testing.assert_allclose(logits, expected, atol=2e-4 * np.abs(expected).max())
        self.assertGreater(np.abs(plain[-1] - expected).max(), 0.1 * np.abs(expected).max())


if __name__ == "__main__":
    unittest.main()
