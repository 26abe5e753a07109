#!/usr/bin/env python3
"""Lossy rules of verification, and `bench --modes all`: lossy_test.py PROGRAM SOURCE_DIRECTORY [TEST]...

Runs on the bundled models.
"""

import json
import struct
import unittest

from command_line import CliTest

PROMPT = ("run", "Once upon a time", "-n", 96, "--json")


HIDDEN = 256  # The bundled target's.


class Lossy(CliTest):
    def write_judge(self, weight, bias):
        """The folder of a head, as foretoken_train judge writes it."""
        folder = self.folder / "judge"
        folder.mkdir(exist_ok=True)
        header = json.dumps({
            "judge.weight": {"dtype": "F32", "shape": [HIDDEN], "data_offsets": [0, 4 * HIDDEN]},
            "judge.bias": {"dtype": "F32", "shape": [1],
                           "data_offsets": [4 * HIDDEN, 4 * HIDDEN + 4]}}).encode()
        (folder / "model.safetensors").write_bytes(
            struct.pack("<Q", len(header)) + header +
            struct.pack(f"<{HIDDEN + 1}f", *[weight] * HIDDEN, bias))
        (folder / "config.json").write_text(json.dumps({"model_type": "judge",
                                                        "hidden_size": HIDDEN}))
        return folder

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

    def test_a_judge_decides_what_is_accepted(self):
        exact = self.run_json("--mode", "ar")["tokens"]
        lenient = self.write_judge(0, 1)
        for mode in ("sd", "ssd", "ngram"):
            judged = self.run_json("--mode", mode, "--lossy", "judge", "--lossy-judge", lenient)
            self.assertEqual(judged["stats"]["lossy"], "judge")
            self.assertGreater(judged["stats"]["lossy_tokens"], 0)
            self.assertEqual(judged["stats"]["accepted"], judged["stats"]["proposed"])
            self.assertNotEqual(judged["tokens"], exact)
        # sigmoid(1) is 0.73.
        strict = self.run_json("--mode", "sd", "--lossy", "judge", "--lossy-judge", lenient,
                               "--lossy-approval", 0.74)
        self.assertEqual(strict["tokens"], exact)
        self.assertEqual(strict["stats"]["lossy_tokens"], 0)
        # By the state: some tokens are approved and some are not.
        middling = self.run_json("--mode", "sd", "--lossy", "judge", "--lossy-judge",
                                 self.write_judge(0.2, 0))["stats"]
        self.assertGreater(middling["lossy_tokens"], 0)
        self.assertLess(middling["accepted"], middling["proposed"])
        line = self.succeed("run", "Once upon a time", "-n", 48, "--mode", "sd", "--lossy", "judge",
                            "--lossy-judge", lenient).stderr
        self.assertRegex(line, r"LOSSY \(judge\): \d+ tokens are not what the model chose")

    def test_a_judge_that_is_none_is_refused(self):
        rule = ("--mode", "sd", "--lossy", "judge")
        self.refuse(*PROMPT, *rule, saying="--lossy judge needs --lossy-judge FOLDER")
        self.refuse(*PROMPT, "--mode", "sd", "--lossy", "typical", "--lossy-judge", self.folder,
                    saying="--lossy-judge and --lossy-approval are of --lossy judge")
        self.refuse(*PROMPT, *rule, "--lossy-judge", self.folder / "none",
                    saying="a judge's folder has config.json and model.safetensors")
        folder = self.write_judge(0, 1)
        config = {"model_type": "judge", "hidden_size": 64}
        (folder / "config.json").write_text(json.dumps(config))
        self.refuse(*PROMPT, *rule, "--lossy-judge", folder,
                    saying="reads states of 64 numbers, and the target's have 256")

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
