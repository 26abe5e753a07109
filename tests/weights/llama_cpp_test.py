#!/usr/bin/env python3
"""Files that `quantize` writes, read by llama.cpp (the package xllamacpp):
llama_cpp_test.py PROGRAM SOURCE_DIRECTORY MODEL_LOGITS BUILD_FOLDER [TEST]... It must continue a
prompt with the tokens that the folder behind the file gives the largest logits."""

import json
import pathlib
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path += [str(SOURCE.parent), str(SOURCE.parent / "e2e")]
from python_packages import run_with

run_with(pathlib.Path(sys.argv[4]), SOURCE / "llama_cpp_requirements.txt")
MODEL_LOGITS = sys.argv.pop(3)
sys.argv.pop(3)

import numpy as np
import xllamacpp

from command_line import CliTest
from golden_folders import SAYABLE, logits_of, make_folder

COUNT = 64  # Tokens behind a prompt.
# The others are left out: llama.cpp computes some otherwise (yarn of gpt-oss with whole
# dimensions), or has no room for sizes or vocabularies that no published model has.
READ = ("cohere", "deepseek_v2-groups", "deepseek_v3", "gemma2", "gemma3", "gemma4", "gemma4-moe",
        "gemma4-small", "glm4", "granite", "granitemoe", "granitemoehybrid",
        "granitemoehybrid-nope", "granitemoeshared", "llama", "llama-bias", "llama-dynamic",
        "llama-linear", "llama-yarn", "ministral3", "mistral", "mixtral", "olmo2", "olmoe", "qwen2",
        "qwen3", "qwen3_5_moe", "smollm3", "stablelm", "stablelm-parallel")


def continued(file, prompt, count):
    """The most likely tokens behind a prompt, up to one that ends the text."""
    options = xllamacpp.CommonParams()
    options.model.path = str(file)
    options.n_ctx, options.n_parallel, options.n_gpu_layers, options.warmup = 256, 1, 0, False
    options.cpuparams.n_threads = 1
    options.cache_type_k = options.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    reply = xllamacpp.Server(options).handle_completions(
        {"prompt": prompt, "n_predict": count, "samplers": ["top_k"], "top_k": 1, "n_probs": 1})
    reply = json.loads(reply) if isinstance(reply, str) else reply
    return [token["id"] for token in reply["choices"][0]["logprobs"]["content"]]


class LlamaCpp(CliTest):
    def check(self, name):
        folder = make_folder(name, self.folder, **SAYABLE.get(name, {}))
        file = self.folder / f"{name}.gguf"
        self.succeed("quantize", folder, file, "--type", "f32")
        prompt = json.loads((folder / "golden.json").read_text())["prompt_ids"]
        tokens = continued(file, prompt, COUNT)
        end = json.loads((folder / "config.json").read_text())["eos_token_id"]
        self.assertTrue(len(tokens) == COUNT or tokens[-1] == end)
        logits = logits_of(MODEL_LOGITS, folder, prompt + tokens)[len(prompt) - 1:-1]
        chosen = logits[np.arange(len(tokens)), tokens]
        # Two tokens may be nearly as likely.
        self.assertLess((logits.max(axis=1) - chosen).max(), 0.005 * np.abs(logits).max())

    def test_llama_cpp_continues_as_folders_do(self):
        for name in READ:
            with self.subTest(name):
                self.check(name)


if __name__ == "__main__":
    unittest.main()
