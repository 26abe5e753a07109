#!/usr/bin/env python3
"""Every family of models decodes the same tokens in every mode: verify_families_test.py PROGRAM
SOURCE_DIRECTORY [TEST]...

The models are those of tests/golden/families, with a tokenizer of letters; the draft is the target
with its weights shaken a little, so that some of its tokens are taken and some are not."""

import json
import random
import shutil
import unittest

from command_line import MODELS, CliTest

FAMILIES = MODELS.parent / "tests/golden/families"
# Adapters of families' models.
ADAPTERS = {}
for golden in sorted((MODELS.parent / "tests/golden/adapters").glob("*/golden.json")):
    ADAPTERS.setdefault(json.loads(golden.read_text())["model"], []).append(golden.parent)
VOCABULARY = 128
PREFIX = "it was a cold day and all of them sat by the fire to hear the old tale of the sea; "
PROMPTS = [PREFIX + end for end in ("then", "one of them", "no")] + ["a b c d e f g a b c d e f g"]


def tokenizer():
    """Three special tokens, then one token for each character that text is made of."""
    letters = [chr(code) for code in range(33, 127)] + ["Ġ", "Ċ"]
    special = ["<pad>", "<s>", "</s>"]
    words = special + letters
    words += [a + b for a in "aeiou" for b in "nrstlm"][:VOCABULARY - len(words)]
    merges = [list(word) for word in words[len(special) + len(letters):]]
    return {
        "version": "1.0", "added_tokens": [
            {"id": i, "content": word, "special": True, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False} for i, word in enumerate(special)],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "post_processor": None, "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {word: i for i, word in enumerate(words)},
                  "merges": merges}}


def shaken(weights, seed):
    """A safetensors file of BF16 numbers, each changed by at most a few percent."""
    length = 8 + int.from_bytes(weights[:8], "little")
    data = bytearray(weights[length:])
    noise = random.Random(seed).randbytes(len(data) // 2)
    data[::2] = bytes(low ^ (change & 7) for low, change in zip(data[::2], noise))
    return weights[:length] + bytes(data)


class VerifyFamilies(CliTest):
    def model(self, family, name, change=lambda weights: weights):
        folder = self.folder / name
        folder.mkdir()
        shutil.copy(FAMILIES / family / "config.json", folder)
        weights = (FAMILIES / family / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(change(weights))
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
        (folder / "tokenizer_config.json").write_text(json.dumps(
            {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>",
             "eos_token": "</s>"}))
        return folder

    def verify(self, family):
        target = self.model(family, "target")
        draft = self.model(family, "draft", lambda weights: shaken(weights, 7))
        models = ("-m", target, "--draft", draft)
        config = json.loads((target / "config.json").read_text())
        length = min(120, config.get("max_position_embeddings", 256) - len(PROMPTS[0]))
        prompts = self.folder / "prompts.jsonl"
        prompts.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in PROMPTS))
        shared = ("verify", *models, "--prompts", prompts, "--raw", "--ignore-eos", "-n", length,
                  "--temps", "0,0.8", "--sampler-sets", "none", "--batches", "1,3",
                  "--preempt", 0.05, "--json", "-")
        for options in (("--modes", "sd,ssd,sssd", "--prefix-cache", "on,off"),
                        ("--modes", "sd,ssd", "--tree-width", 3)):
            report = json.loads(self.succeed(*shared, *options).stdout)
            self.assertTrue(report["identical"])
            self.assertGreater(report["forced_preemptions"], 0)
        for adapter in ADAPTERS.get(family, ()):
            report = json.loads(self.succeed(*shared, "--modes", "sd,ssd", "--lora",
                                             adapter).stdout)
            self.assertTrue(report["identical"])
        run = self.succeed("run", PROMPTS[0], *models, "--ignore-eos", "-n", length, "--mode",
                           "sd", "--temp", "0.8", "--json")
        stats = json.loads(run.stdout)["stats"]
        self.assertGreater(stats["accepted"], length // 4)
        self.assertLess(stats["accepted"], stats["proposed"])

    @classmethod
    def add(cls, family):
        setattr(cls, "test_" + family.replace("-", "_"), lambda self: self.verify(family))


for folder in sorted(FAMILIES.iterdir()):
    VerifyFamilies.add(folder.name)


if __name__ == "__main__":
    unittest.main()
