#!/usr/bin/env python3
"""A target that drafts for itself: self_speculation_test.py PROGRAM SOURCE_DIRECTORY [TEST]..."""

import json
import pathlib
import shutil
import sys
import unittest

from command_line import MODELS, CliTest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from letter_tokenizer import write_tokenizer

TARGET = MODELS / "demo-target"  # It has 6 layers.
FAMILIES = MODELS.parent / "tests/golden/families"


class SelfSpeculation(CliTest):
    def story(self, *options):
        result = self.succeed("run", "Once upon a time, there was a dragon.", "-n", 48, "--temp",
                              "0.8", "--seed", 7, "--json", *options)
        report = json.loads(result.stdout)
        return report["tokens"], report["stats"]

    def test_every_mode_says_the_same(self):
        truth, _ = self.story("--mode", "ar")
        for draft in ("self:exit=3", "self:skip=a2,m3-m4"):
            for mode in (("sd",), ("ssd",), ("ssd", "--draft-process"), ("auto",),
                         ("sd", "--tree-width", 3), ("sd2",)):
                drafts = ("-md", MODELS / "demo-draft", "-md", draft) if mode == ("sd2",) else (
                    "-md", draft)
                tokens, _ = self.story("-m", TARGET, *drafts, "--mode", *mode)
                self.assertEqual(tokens, truth, (draft, mode))
        for options in (("--draft-weights", "q8_0"), ("--draft-window", 16),
                        ("--draft-window", 16, "--draft-anchors", 0),
                        ("--draft-process", "--draft-window", 16),
                        ("--draft-process", "--draft-window", 5, "--draft-anchors", 33)):
            mode = "ssd" if "--draft-process" in options else "sd"
            tokens, stats = self.story("-m", TARGET, "-md", "self:exit=5", "--mode", mode, *options)
            self.assertEqual(tokens, truth, options)
            self.assertGreater(stats["proposed"], 0, options)

    def test_a_target_that_is_converted_drafts_with_what_it_was_converted_to(self):
        truth, _ = self.story("-m", TARGET, "--weights", "q8_0", "--mode", "ar")
        tokens, _ = self.story("-m", TARGET, "--weights", "q8_0", "-md", "self:exit=5", "--mode",
                               "sd")
        self.assertEqual(tokens, truth)
        shown = json.loads(self.succeed("inspect", TARGET, "-md", "self:exit=2", "--no-measuring",
                                        "--json").stdout)["draft"]
        self.assertEqual((shown["attention_layers"], shown["mlps"], shown["layers"]), (2, 2, 6))
        self.assertTrue(shown["shares_weights"])
        text = self.succeed("inspect", TARGET, "-md", "self:skip=a1", "--no-measuring").stdout
        self.assertIn("attention of 5 and the MLPs of 6 of 6 layers", text)

    def test_inspect_says_whose_keys_and_values_it_uses(self):
        hybrid = shutil.copytree(FAMILIES / "qwen3_next", self.folder / "hybrid")
        write_tokenizer(hybrid)
        for target, options, used, said in (
                (TARGET, (), True, "the target's in mode sd; in mode ssd its own"),
                (TARGET, ("--draft-weights", "q8_0"), False, "its own, as its weights are"),
                (hybrid, (), False, "its own, as recurrent layers move one state on")):
            shown = ("inspect", target, "-md", "self:exit=1", "--no-measuring", *options)
            draft = json.loads(self.succeed(*shown, "--json").stdout)["draft"]
            self.assertEqual(draft["on_target_kv"], used, options)
            self.assertIn(f"keys, values    {said}\n", self.succeed(*shown).stdout)

    def test_the_set_that_is_searched_for(self):
        found = self.folder / "skip.json"
        prompts = self.folder / "prompts.txt"
        prompts.write_text("Once upon a time, there was a dragon.\n\nTom had a red ball.\n")
        said = json.loads(self.succeed("skip-search", "-m", TARGET, "--prompts", prompts, "-n", 24,
                                       "--sets", 30, "-o", found, "--json").stdout)
        self.assertEqual(said["sets"], 30)
        self.assertEqual(said["tokens"], 48)
        written = json.loads(found.read_text())
        self.assertEqual(written["agreement"], said["agreement"])
        self.assertNotIn(0, written["attention"] + written["mlp"])
        self.assertNotIn(5, written["attention"] + written["mlp"])
        again = json.loads(self.succeed("skip-search", "-m", TARGET, "--prompts", prompts, "-n", 24,
                                        "--sets", 30, "-o", found, "--json").stdout)
        self.assertEqual(again["skip"], said["skip"])
        text = self.succeed("skip-search", "-m", TARGET, "--prompts", prompts, "--given", "--sets",
                            5, "-o", self.folder / "given.json").stdout
        self.assertIn("Compared 5 sets", text)
        self.assertIn("-md self:skip=", text)

        truth, _ = self.story("--mode", "ar")
        for mode in (("sd",), ("ssd", "--draft-process")):
            tokens, _ = self.story("-m", TARGET, "-md", f"self:skip={found}", "--mode", *mode)
            self.assertEqual(tokens, truth, mode)
        other = self.copy_model("demo-draft")
        self.refuse("run", "x", "-m", other, "-md", f"self:skip={found}", "--mode", "sd",
                    saying="was searched for another model")

    def test_random_weights(self):
        text = self.succeed("bench", "--synthetic", "draft-12m", "-md", "self:exit=1", "--modes",
                            "ar,sd", "--limit", 1, "-n", 8, "--prompt-tokens", 8).stdout
        self.assertIn("exit=1", text)

    def test_what_is_refused(self):
        def refused(draft, saying, *options):
            self.refuse("run", "x", "-m", TARGET, "-md", draft, "--mode", "sd", *options,
                        saying=saying)

        refused("self:exit=6", "so a draft of its first ones has from 1 to 5")
        refused("self:exit=a", "write exit=E")
        refused("self:skip=a6", "the model has layers 0 to 5")
        refused("self:skip=b1", "is no list of sub-layers")
        refused("self:skip=/nowhere/skip.json", "there is no file /nowhere/skip.json")
        refused("self:exist=2", "self:exit=E or self:skip=WHICH")
        self.refuse("run", "x", "-m", TARGET, "--mode", "ar", "--draft-window", 8,
                    saying="there is no draft")
        refused("self:exit=2", "without --draft-window it sees everything", "--draft-anchors", 4)
        refused("self:exit=2", "--draft-anchors: Value -1 not in range",
                "--draft-window", 8, "--draft-anchors", -1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
