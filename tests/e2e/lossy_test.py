#!/usr/bin/env python3
"""Lossy rules of verification, and `bench --modes all`: lossy_test.py PROGRAM SOURCE_DIRECTORY [TEST]...

Runs on the bundled models.
"""

import json
import unittest

from command_line import CliTest

PROMPT = ("run", "Once upon a time", "-n", 96, "--json")


class Lossy(CliTest):
    def run_json(self, *options):
        return json.loads(self.succeed(*PROMPT, *options).stdout)

    def test_a_rule_accepts_more_and_says_so(self):
        for sampling in ([], ["--temp", "1", "--seed", "3"]):
            exact = self.run_json("--mode", "sd", *sampling)
            self.assertNotIn("lossy", exact["stats"])
            for rule in ("typical", "top-k-relaxed"):
                for mode in ("sd", "ssd", "ngram"):
                    lossy = self.run_json("--mode", mode, "--lossy", rule, *sampling)["stats"]
                    self.assertEqual(lossy["lossy"], rule)
                    self.assertLessEqual(lossy["lossy_tokens"], lossy["accepted"])
                relaxed = self.run_json("--mode", "sd", "--lossy", rule, *sampling)
                self.assertGreater(relaxed["stats"]["lossy_tokens"], 0)
                self.assertGreater(relaxed["stats"]["acceptance_length"],
                                   exact["stats"]["acceptance_length"])
                self.assertNotEqual(relaxed["tokens"], exact["tokens"])
        line = self.succeed("run", "Once upon a time", "-n", 48, "--mode", "sd", "--lossy",
                            "typical").stderr
        self.assertRegex(line, r"LOSSY \(typical\): \d+ tokens are not what the model chose")

    def test_a_rule_that_accepts_nothing_is_exact(self):
        exact = self.run_json("--mode", "ar")
        strict = self.run_json("--mode", "sd", "--lossy", "top-k-relaxed", "--lossy-top-k", 1)
        self.assertEqual(strict["tokens"], exact["tokens"])
        self.assertEqual(strict["stats"]["lossy_tokens"], 0)

    def test_what_does_not_go_with_it_is_refused(self):
        lossy = ("--lossy", "typical")
        self.refuse(*PROMPT, "--mode", "ar", *lossy, saying="mode ar proposes nothing")
        self.refuse(*PROMPT, "--mode", "sd", *lossy, "--verify", "rejection",
                    saying="keeps the model's distribution")
        self.refuse("run", "Hello", *lossy, "--receipt", self.folder / "r", saying="a receipt says")
        self.refuse("verify", *lossy, saying="leave it out")
        self.refuse(*PROMPT, "--mode", "sd", *lossy, "--lossy-top-k", 3,
                    saying="--lossy-top-k and --lossy-margin are of --lossy top-k-relaxed")

    def test_bench_says_what_is_lost(self):
        prompts = self.folder / "sums.jsonl"
        prompts.write_text("".join(json.dumps({"question": f"What is {n} + {n}?",
                                               "answer": f"{n} + {n} = {2 * n}\n#### {2 * n}"}) +
                                   "\n" for n in range(3, 6)))
        shown = self.succeed("bench", "--modes", "ar,sd", "--lossy", "typical", "--prompts",
                             prompts, "-n", 32, "--json", "-").stdout
        modes = json.loads(shown[shown.index("{"):])["sets"][0]["modes"]
        written = {mode["mode"]: mode["written"] for mode in modes}
        self.assertEqual(written["ar"]["lossy_tokens"], 0)
        self.assertGreater(written["sd"]["lossy_tokens"], 0)
        self.assertNotEqual(written["sd"]["perplexity"], written["ar"]["perplexity"])
        self.assertGreater(written["ar"]["perplexity"], 1)
        self.assertLess(written["ar"]["perplexity"], 10)  # It wrote it itself.
        for of_mode in written.values():
            self.assertEqual(of_mode["answers"]["asked"], 3)
        for mode in modes:
            self.assertIsNone(mode["identical"])


class AllModes(CliTest):
    def test_every_mode_that_there_is_everything_for(self):
        text = self.folder / "prompt.txt"
        text.write_text("Once upon a time, there was a little girl")
        corpus = self.folder / "corpus.txt"
        corpus.write_text("Once upon a time, there was a little girl who had a dog. " * 20)
        store = self.folder / "store"
        self.succeed("datastore", "build", "-d", store, corpus)
        shown = self.succeed("bench", "--modes", "all", "--datastore", store, "--prompts", text,
                             "-n", 24, "--json", "-", "-t", 1).stdout
        modes = json.loads(shown[shown.index("{"):])["sets"][0]["modes"]
        names = {mode["mode"] for mode in modes}
        for name in ("ar", "sd", "ngram", "sssd", "rest", "trie", "auto"):
            self.assertIn(name, names)
        self.assertNotIn("sd2", names)
        for mode in modes:
            self.assertIsNot(mode["identical"], False, mode["mode"])


if __name__ == "__main__":
    unittest.main()
