#!/usr/bin/env python3
"""Drafters that read their target's states change no token: learned_drafters_test.py PROGRAM
SOURCE_DIRECTORY [TEST]...

The drafters are those of tests/golden/drafters, in every form in which they are published."""

import json
import pathlib
import shutil
import sys
import unittest

from command_line import MODELS, CliTest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from letter_tokenizer import write_tokenizer

DRAFTERS = MODELS.parent / "tests/golden/drafters"
PREFIX = "it was a cold day and all of them sat by the fire to hear the old tale of the sea; "
PROMPTS = [PREFIX + end for end in ("then", "one of them", "no")] + ["a b c d e f g a b c d e f g"]


class LearnedDrafters(CliTest):
    def setUp(self):
        super().setUp()
        self.prompts = self.folder / "prompts.jsonl"
        self.prompts.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in PROMPTS))

    def target(self, drafter):
        """The drafter's own folder where that holds the target too, else the target they share."""
        own = (drafter / "golden.json").exists() and drafter.name.startswith("mtp")
        source = drafter if own else DRAFTERS / "target"
        folder = self.folder / f"target-{source.name}"
        if not folder.exists():
            shutil.copytree(source, folder)
            write_tokenizer(folder)
        return folder

    def verify(self, drafter):
        shared = ("verify", "-m", self.target(drafter), "-md", drafter, "--prompts", self.prompts,
                  "--raw", "--ignore-eos", "-n", 60, "--temps", "0,0.7,1.3", "--sampler-sets",
                  "none", "--preempt", 0.05, "--json", "-")
        for options in (("--modes", "sd,ssd,sssd", "--prefix-cache", "on,off", "--batches", "1,3"),
                        ("--modes", "sd,ssd", "--tree-width", 3, "--batches", "1,16"),
                        ("--modes", "ssd", "--draft-process", "--batches", "2")):
            report = json.loads(self.succeed(*shared, *options).stdout)
            self.assertTrue(report["identical"], (drafter.name, options))
            self.assertGreater(report["forced_preemptions"], 0)


for path in sorted(DRAFTERS.iterdir()):
    if (path / "golden.json").exists():
        setattr(LearnedDrafters, f"test_{path.name}".replace("-", "_"),
                lambda self, path=path: self.verify(path))


if __name__ == "__main__":
    unittest.main()
