#!/usr/bin/env python3
"""`foretoken perplexity`: perplexity_test.py PROGRAM SOURCE_DIRECTORY [TEST]...

Runs on the bundled models.
"""

import json
import math
import os
import unittest

from command_line import MODELS, CliTest

STORY = ("Once upon a time, there was a little girl named Lily. She had a red ball and a small dog. "
         "One day, the dog ran into the forest. Lily was sad, but her mom said, \"Let us look for "
         "him together!\"\n\n")
TIMES = ("seconds", "tokens_per_s")


class Perplexity(CliTest):
    def setUp(self):
        super().setUp()
        self.text = self.folder / "story.txt"
        self.text.write_text(STORY * 30)

    def score(self, *options):
        return json.loads(self.succeed("perplexity", "--json", *options).stdout)

    def test_is_that_of_the_tokens_that_run_emits(self):
        prompt = "Once upon a time, there was a little girl"
        run = json.loads(self.succeed("run", prompt, "-n", 100, "--mode", "ar", "--logprobs", 0,
                                      "--json").stdout)
        whole = prompt + run["text"]
        ids = json.loads(self.succeed("tokenize", "--json", whole).stdout)
        self.assertEqual(ids[-100:], run["tokens"])  # Else other tokens would be scored.
        self.text.write_text(whole)
        report = self.score("--text", self.text, "--stride", 100)
        self.assertEqual((report["windows"], report["context"], report["scored_tokens"]),
                         (1, len(ids), 100))
        nats = -sum(entry["logprob"] for entry in run["logprobs"]) / 100
        self.assertAlmostEqual(report["nats_per_token"], nats, places=6)
        self.assertAlmostEqual(report["perplexity"], math.exp(nats), places=5)
        self.assertEqual(report["scored_bytes"], len(run["text"].encode()))
        self.assertAlmostEqual(report["bits_per_byte"],
                               nats * 100 / math.log(2) / report["scored_bytes"], places=5)

    def test_is_the_same_on_any_cores_and_from_standard_input(self):
        cores = sorted(os.sched_getaffinity(0))
        report = self.score("-f", self.text, "--target-cores", cores[0])
        tokens = report["text_tokens"]
        self.assertEqual((report["context"], report["windows"], report["scored_tokens"]),
                         (512, tokens // 512, tokens // 512 * 255))
        self.assertGreater(report["perplexity"], 1)
        self.assertGreater(report["standard_error"], 0)
        self.assertGreater(report["tokens_per_s"], 0)
        reports = [self.score("-f", self.text, "--target-cores", ",".join(map(str, cores[:2]))),
                   json.loads(self.succeed("perplexity", "--text", "-", "--json",
                                           stdin=STORY * 30).stdout)]
        for other in reports:
            for key in report.keys() - {*TIMES, "text"}:
                self.assertEqual(report[key], other[key], key)

    def test_windows(self):
        tokens = self.score("-f", self.text)["text_tokens"]
        report = self.score("-f", self.text, "-c", 64, "--stride", 16, "--limit", 9)
        self.assertEqual((report["context"], report["stride"], report["windows"],
                          report["scored_tokens"]), (64, 16, 9, 9 * 16))
        self.assertEqual(self.score("-f", self.text, "-c", 64)["windows"], tokens // 64)
        # With more before them, tokens of a text that repeats itself are easier.
        self.assertLess(self.score("-f", self.text, "-c", 256)["perplexity"],
                        self.score("-f", self.text, "-c", 16)["perplexity"])

    def test_against_another_model(self):
        draft = self.score("-f", self.text, "-m", MODELS / "demo-draft")
        report = self.score("-f", self.text, "-m", MODELS / "demo-draft",
                            "--against", MODELS / "demo-target")
        target = report["against"]
        self.assertEqual(report["perplexity"], draft["perplexity"])
        self.assertEqual(target["perplexity"], self.score("-f", self.text)["perplexity"])
        self.assertAlmostEqual(target["ratio"], report["perplexity"] / target["perplexity"])
        self.assertGreater(target["divergence"], 0.05)
        self.assertLess(target["same_likeliest"], 0.99)
        # Rounding to BF16 costs something, but far less than a model of a twentieth of the size.
        rounded = self.score("-f", self.text, "--against-precision", "f32")["against"]
        self.assertEqual((rounded["model"], rounded["precision"]), ("demo-target", "f32"))
        self.assertGreater(rounded["divergence"], 0)
        self.assertLess(rounded["divergence"], target["divergence"] / 100)
        self.assertGreater(rounded["same_likeliest"], 0.95)

    def test_formats_of_keys_and_values(self):
        report = self.score("-f", self.text, "--kv", "q8_0", "--against-kv", "f32")
        other = report["against"]
        self.assertEqual((report["kv"], other["kv"], other["precision"]), ("q8_0", "f32", "bf16"))
        self.assertGreater(other["divergence"], 0)
        self.assertLess(other["divergence"], 0.01)
        self.assertGreater(other["same_likeliest"], 0.95)
        text = self.succeed("perplexity", "-f", self.text, "--kv", "q8_0", "--against-kv",
                            "bf16").stdout
        self.assertIn("demo-target in bf16 with KV in q8_0: ", text)
        self.assertIn("against demo-target in bf16\n", text)

    def test_is_shown_to_people(self):
        text = self.succeed("perplexity", "-f", self.text, "--against", MODELS / "demo-draft").stdout
        report = self.score("-f", self.text, "--against", MODELS / "demo-draft")
        self.assertIn(f"  perplexity        {report['perplexity']:.4f} +/- "
                      f"{report['standard_error']:.4f}\n", text)
        self.assertIn(f"  its perplexity    {report['against']['perplexity']:.4f} +/- ", text)

    def test_progress_shows_on_a_terminal_only(self):
        command = ("perplexity", "-f", self.text, "-c", 64, "--stride", 4)
        self.assertEqual(self.succeed(*command).stderr, "")
        shown = self.shown_on_a_terminal(*command)
        self.assertRegex(shown, rb"\] +\d+%  perplexity \d+\.\d{4}")

    def test_bad_input(self):
        self.refuse("perplexity", saying="--text")
        self.refuse("perplexity", "-f", self.folder / "none.txt", saying="none.txt: No such file")
        self.refuse("perplexity", "-f", self.folder, saying="Is a directory")
        self.refuse("perplexity", "-f", "-", saying="the text has 1 token,")
        file = ("perplexity", "-f", self.text)
        self.refuse(*file, "-c", 513, saying="--context 513 is more than the model's limit of 512")
        self.refuse(*file, "-c", 1, saying="--context")
        self.refuse(*file, "-c", 64, "--stride", 64, saying="a stride of 64 leaves nothing before")
        self.refuse(*file, "-m", self.folder / "none", saying="none")
        self.refuse(*file, "--against", self.folder / "none", saying="none")
        draft = self.copy_model("demo-draft")
        pieces = (draft / "tokenizer.model").read_bytes()
        (draft / "tokenizer.model").write_bytes(pieces.replace(b"dragon", b"wyvern"))
        self.refuse(*file, "--against", draft, saying="a model of the same vocabulary")

    def test_weights_that_are_no_numbers(self):
        model = self.copy_model("demo-draft")
        weights = (model / "model.safetensors").read_bytes()
        begin = 8 + int.from_bytes(weights[:8], "little")
        (model / "model.safetensors").write_bytes(
            weights[:begin] + b"\xc0\x7f" * ((len(weights) - begin) // 2))
        self.refuse("perplexity", "-f", self.text, "-m", model,
                    saying="weight 0 of tensor model.embed_tokens.weight is infinite or NaN")


if __name__ == "__main__":
    unittest.main(verbosity=2)
