#!/usr/bin/env python3
"""Every family of models decodes the same tokens in every mode: verify_families_test.py PROGRAM
SOURCE_DIRECTORY [TEST]...

The models are those of tests/golden/families, with a tokenizer of letters; the draft is the target
with its weights shaken a little, so that some of its tokens are taken and some are not."""

import json
import pathlib
import random
import sys
import unittest

from command_line import MODELS, CliTest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from letter_tokenizer import write_tokenizer

FAMILIES = MODELS.parent / "tests/golden/families"
# Adapters of families' models.
ADAPTERS = {}
for golden in sorted((MODELS.parent / "tests/golden/adapters").glob("*/golden.json")):
    ADAPTERS.setdefault(json.loads(golden.read_text())["model"], []).append(golden.parent)
PREFIX = "it was a cold day and all of them sat by the fire to hear the old tale of the sea; "
PROMPTS = [PREFIX + end for end in ("then", "one of them", "no")] + ["a b c d e f g a b c d e f g"]


def shaken(weights, seed):
    """A safetensors file whose BF16 numbers are each changed by at most a few percent."""
    length = 8 + int.from_bytes(weights[:8], "little")
    data = bytearray(weights[length:])
    noise = random.Random(seed).randbytes(len(data) // 2)
    for tensor in json.loads(weights[8:length]).values():
        if tensor.get("dtype") != "BF16":
            continue
        begin, end = tensor["data_offsets"]
        changes = noise[begin // 2:end // 2]
        data[begin:end:2] = bytes(low ^ (change & 7)
                                  for low, change in zip(data[begin:end:2], changes))
    return weights[:length] + bytes(data)


class VerifyFamilies(CliTest):
    def model(self, family, name, change=lambda weights: weights, **other):
        folder = self.folder / name
        folder.mkdir()
        config = json.loads((FAMILIES / family / "config.json").read_text()) | other
        (folder / "config.json").write_text(json.dumps(config))
        weights = (FAMILIES / family / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(change(weights))
        write_tokenizer(folder)
        return folder

    def verify(self, family):
        target = self.model(family, "target")
        draft = self.model(family, "draft", lambda weights: shaken(weights, 7))
        models = ("-m", target, "--draft", draft)
        config = json.loads((target / "config.json").read_text())
        length = min(72, config.get("max_position_embeddings", 256) - len(PROMPTS[0]))
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

    def test_contexts_of_many_windows(self):
        """Here the KV of layers with windows is given back on the way, the draft's too."""
        longer = {"max_position_embeddings": 2048}
        models = ("-m", self.model("gpt_oss", "target", **longer),
                  "--draft", self.model("gpt_oss", "draft", lambda all: shaken(all, 7), **longer))
        letters = random.Random(3)
        text = "".join(letters.choice("abcde fghi jklm nop qrstu") for _ in range(800))
        prompts = self.folder / "prompts.jsonl"
        prompts.write_text("".join(json.dumps({"prompt": text[:length] + end}) + "\n" for length, end
                                   in ((800, "one"), (800, "or two"), (500, "no"), (30, "so"))))
        shared = ("verify", *models, "--prompts", prompts, "--raw", "--ignore-eos", "-n", 80,
                  "--temps", "0.8", "--sampler-sets", "none", "--batches", "1,4",
                  "--preempt", 0.05, "--json", "-")
        for options in (("--modes", "sd,ssd", "--prefix-cache", "on,off"),
                        ("--modes", "sd,ssd", "--tree-width", 3)):
            report = json.loads(self.succeed(*shared, *options).stdout)
            self.assertTrue(report["identical"])
            self.assertGreater(report["forced_preemptions"], 0)

    def test_drafts_that_say_several_positions_in_a_pass(self):
        """As PARD's: with windows, states, latent attention."""
        prompts = self.folder / "prompts.jsonl"
        prompts.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in PROMPTS))
        for family in ("gpt_oss", "qwen3_next", "deepseek_v3"):
            models = ("-m", self.model(family, family), "--draft",
                      self.model(family, f"{family}_draft", lambda all: shaken(all, 7),
                                 pard_token=9))
            for options in (("--modes", "sd,ssd"), ("--modes", "sd,ssd", "--tree-width", 3)):
                report = json.loads(self.succeed(
                    "verify", *models, "--prompts", prompts, "--raw", "--ignore-eos", "-n", 60,
                    "--temps", "0,0.8", "--sampler-sets", "none", "--batches", "1,3", "--preempt",
                    0.05, "--json", "-", *options).stdout)
                self.assertTrue(report["identical"], family)

    @classmethod
    def add(cls, family):
        setattr(cls, "test_" + family.replace("-", "_"), lambda self: self.verify(family))


for folder in sorted(FAMILIES.iterdir()):
    VerifyFamilies.add(folder.name)


if __name__ == "__main__":
    unittest.main()
