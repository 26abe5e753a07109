#!/usr/bin/env python3
"""Files that `quantize` writes, read by llama.cpp (the package xllamacpp): llama_cpp_test.py PROGRAM
SOURCE_DIRECTORY BUILD_FOLDER [TEST]... It must continue a prompt as `transformers` does with the
folder behind the file."""

import json
import os
import pathlib
import shutil
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path += [str(SOURCE.parent), str(SOURCE.parent / "e2e")]
if "LLAMA_CPP_TEST" not in os.environ:
    from python_packages import install
    python = install(pathlib.Path(sys.argv[3]).resolve(), SOURCE / "llama_cpp_requirements.txt")
    os.execve(python, [str(python), *sys.argv], {**os.environ, "LLAMA_CPP_TEST": "1"})
sys.argv.pop(3)

import xllamacpp

from command_line import MODELS, CliTest
from letter_tokenizer import write_tokenizer

FAMILIES = MODELS.parent / "tests" / "golden" / "families"
# Of the others llama.cpp computes some otherwise (windows that it takes for granted, no dynamic
# rotation, yarn with whole dimensions) or has no room for sizes that no published model has (values
# that are wider than keys, heads that are together wider than the stream); of a few that it reads
# as well the tiny models say two tokens that are nearly as likely.
READ = ("cohere", "deepseek_v2-groups", "deepseek_v3", "gemma4", "gemma4-moe", "gemma4-small", "glm4",
        "granite", "granitemoe", "granitemoehybrid", "llama", "llama-bias", "llama-linear",
        "llama-yarn", "ministral3", "mixtral", "olmo2", "olmoe", "qwen2", "qwen3_5_moe",
        "stablelm-parallel")


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
    def test_llama_cpp_continues_as_transformers_does(self):
        for name in READ:
            with self.subTest(name):
                folder = shutil.copytree(FAMILIES / name, self.folder / name)
                write_tokenizer(folder)
                file = self.folder / f"{name}.gguf"
                self.succeed("quantize", folder, file, "--type", "f32")
                golden = json.loads((folder / "golden.json").read_text())
                expected = golden["greedy_ids"]
                tokens = continued(file, golden["prompt_ids"], len(expected))
                self.assertEqual(tokens, expected[:len(tokens)])
                end = json.loads((folder / "config.json").read_text())["eos_token_id"]
                self.assertTrue(len(tokens) == len(expected)
                                or end in expected[len(tokens) - 1:len(tokens) + 1], len(tokens))


if __name__ == "__main__":
    unittest.main()
