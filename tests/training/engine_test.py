#!/usr/bin/env python3
"""What is trained on answers of the bundled target, the engine drafts with: engine_test.py PROGRAM
SOURCE_DIRECTORY [TEST]... Exits with 77 where torch is missing."""

import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest
from unittest import mock

try:
    import torch
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/e2e"), str(ROOT / "training")]
from command_line import MODELS, PROGRAM, CliTest, foretoken
from foretoken_train import __main__ as program

TARGET = MODELS / "demo-target"
SMALL = ["--steps-ahead", "2", "--intermediate", "32", "--heads", "2", "--key-value-heads", "1"]


class Engine(CliTest):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.captures = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_training."))
        cls.addClassCleanup(shutil.rmtree, cls.captures)
        cls.data = cls.capture("data")

    @classmethod
    def capture(cls, name, *options):
        captured = foretoken("capture", "-m", TARGET, "-o", cls.captures / name, "--unprompted", 24,
                             "-n", 40, "--mode", "ar", "--seed", 3, *options)
        assert captured.returncode == 0, captured.stderr
        return cls.captures / name

    def run_training(self, kind, *options, data=None):
        """How it ends, what it says of errors, and its folder. In this process: torch is there."""
        out, errors = self.folder / kind, io.StringIO()
        words = ("foretoken_train", kind, "--target", TARGET, "--data", data or self.data, "--out",
                 out, "--steps", 12, "--rate", "8e-3", "--warmup", 2, "--context", 41, "--rows", 2,
                 *options)
        with mock.patch.object(sys, "argv", list(map(str, words))), \
                contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            return program.main(), errors.getvalue(), out

    def train(self, kind, *options, **others):
        code, said, out = self.run_training(kind, *options, **others)
        self.assertEqual(code, 0, said)
        return out

    def bench_of_few(self):
        """The program, with so few prompts that a card is written soon."""
        path = self.folder / "few"
        path.write_text(f'#!/bin/sh\nexec {PROGRAM} "$@" --limit 1 -n 40\n')
        path.chmod(0o755)
        return path

    def drafts(self, draft, *options):
        """Drafts are accepted, and the tokens are those of the target by itself."""
        prompt = "Once upon a time, there was a little girl"
        reports = [json.loads(self.succeed("run", prompt, "-m", TARGET, "-n", 80, "--temp", 0.8,
                                           "--seed", 5, "--json", *more).stdout)
                   for more in (["--mode", "ar"], ["--mode", "sd", "-md", draft, *options],
                                ["--mode", "ssd", "-md", draft, *options])]
        for report in reports[1:]:
            self.assertEqual(report["tokens"], reports[0]["tokens"])
            self.assertGreater(report["stats"]["accepted"], 0)

    def test_eagle3(self):
        self.drafts(self.train("eagle3", "--draft-vocab", "512", *SMALL))

    def test_draft_model(self):
        self.drafts(self.train("draft-model", "--begin-with", MODELS / "demo-draft"))

    def test_fr_head(self):
        draft = self.train("fr-head", "--draft", MODELS / "demo-draft", "--draft-vocab", "128",
                           "--engine", self.bench_of_few())
        card = (draft / "README.md").read_text()
        for temperature in (0, 1):
            self.assertRegex(card, rf"story openings \| {temperature} \| [1-9]\.\d\d \| 0\.\d")
        self.drafts(draft, "--draft-vocab", draft / "ranking.txt")

    def test_what_the_engine_does_not_take_is_said(self):
        code, said, _ = self.run_training("medusa", "--steps", 1, "--engine", "/bin/false")
        self.assertEqual(code, 1)
        self.assertIn("/bin/false does not draft with", said)

    def test_dflash(self):
        self.drafts(self.train("dflash", "--layers", "1", "--places", "30", *SMALL))

    def test_dspark(self):
        self.drafts(self.train("dspark", "--layers", "1", "--places", "30", "--markov-rank", "16",
                               *SMALL))

    def test_medusa(self):
        self.drafts(self.train("medusa", "--steps-ahead", "3"))

    def test_hydra(self):
        self.drafts(self.train("hydra", "--steps-ahead", "3"))

    def test_exit(self):
        states = self.capture("states", "--layers", 3)
        trained = self.train("exit", "--engine", self.bench_of_few(), data=states)
        self.assertIn("story openings", (trained / "README.md").read_text())
        self.drafts(f"self:exit={trained}")

    def test_mtp(self):
        self.drafts(self.train("mtp", *SMALL))


if __name__ == "__main__":
    unittest.main(verbosity=2)
