#!/usr/bin/env python3
"""What is trained on answers of the bundled target, the engine drafts with: engine_test.py PROGRAM
SOURCE_DIRECTORY [TEST]... Exits with 77 where torch is missing."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

try:
    import torch  # pylint: disable=unused-import
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/e2e"))
from command_line import MODELS, PROGRAM, CliTest

TARGET = MODELS / "demo-target"
SMALL = ["--steps-ahead", "2", "--intermediate", "32", "--heads", "2", "--key-value-heads", "1"]


class Engine(CliTest):
    def setUp(self):
        super().setUp()
        self.succeed("capture", "-m", TARGET, "-o", self.folder / "data", "--unprompted", 24, "-n",
                     40, "--mode", "ar", "--seed", 3)

    def train(self, kind, *options):
        out = self.folder / kind
        subprocess.run(
            [sys.executable, "-B", "-m", "foretoken_train", kind, "--target", TARGET, "--data",
             self.folder / "data", "--out", out, "--steps", "12", "--rate", "8e-3", "--warmup",
             "2", "--context", "41", "--rows", "4", *options],
            check=True, capture_output=True, cwd=ROOT / "training",
            env={**os.environ, "OMP_NUM_THREADS": "1"})
        return out

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
                           "--engine", PROGRAM)
        card = (draft / "README.md").read_text()
        for temperature in (0, 1):
            self.assertRegex(card, rf"story openings \| {temperature} \| [1-9]\.\d\d \| 0\.\d")
        self.drafts(draft, "--draft-vocab", draft / "ranking.txt")

    def test_what_the_engine_does_not_take_is_said(self):
        with self.assertRaises(subprocess.CalledProcessError) as raised:
            self.train("medusa", "--engine", "/bin/false")
        self.assertIn("/bin/false does not draft with", raised.exception.stderr.decode())

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
        self.succeed("capture", "-m", TARGET, "-o", self.folder / "states", "--unprompted", 24,
                     "-n", 40, "--layers", 3, "--mode", "ar", "--seed", 3)
        shutil.rmtree(self.folder / "data")
        (self.folder / "states").rename(self.folder / "data")
        trained = self.train("exit", "--engine", PROGRAM)
        self.assertIn("story openings", (trained / "README.md").read_text())
        self.drafts(f"self:exit={trained}")

    def test_mtp(self):
        self.drafts(self.train("mtp", *SMALL))


if __name__ == "__main__":
    unittest.main(verbosity=2)
