#!/usr/bin/env python3
"""A drafter that is trained beside the server that drafts with it: online_test.py PROGRAM
SOURCE_DIRECTORY [TEST]... Exits with 77 where torch is missing."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

try:
    import torch  # pylint: disable=unused-import
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/e2e"), str(ROOT / "tests/server")]
from command_line import MODELS, PROGRAM, CliTest
from serving import Serving

TARGET = MODELS / "demo-target"
DRAFTERS = ROOT / "tests/golden/drafters"
SMALL = ["--intermediate", "32", "--heads", "2", "--key-value-heads", "1"]
FRESH = 2000  # Tokens that it trains on.
COMMON = ["--context", "60", "--rows", "4", "--steps-ahead", "2", "--warmup", "2", "--rate", "8e-3"]


class Online(CliTest):
    def command(self, kind, *options):
        return [sys.executable, "-B", "-m", "foretoken_train", kind, "--target", TARGET, *COMMON,
                *map(str, options)]

    def environment(self):
        return {**os.environ, "OMP_NUM_THREADS": "1"}

    def train(self, kind, *options):
        """A drafter that has learned next to nothing."""
        self.succeed("capture", "-m", TARGET, "-o", self.folder / "data", "--unprompted", 24, "-n",
                     40, "--mode", "ar", "--seed", 3)
        out = self.folder / kind
        subprocess.run(self.command(kind, "--data", self.folder / "data", "--out", out, "--steps",
                                    2, *([] if kind == "medusa" else SMALL), *options),
                       check=True, capture_output=True, cwd=ROOT / "training",
                       env=self.environment())
        return out

    def follow(self, draft):
        """Serves while it trains, until a draft that was trained on the traffic is in use."""
        learn = self.folder / "learn"
        with Serving(PROGRAM, "-m", TARGET, "-md", draft, "--mode", "sd", "--modes", "sd",
                     "--learn-draft", learn) as server:
            asked = {"max_tokens": 60, "seed": 5, "temperature": 0.7, "ignore_eos": True}
            first = server.complete(**asked)[2]
            trainer = subprocess.Popen(
                self.command("online", "--learn", learn, "--draft", draft, "--fresh-tokens", FRESH,
                             "--steps", 40, "--look-every", 0.2), cwd=ROOT / "training",
                env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                # Enough to train on and to judge by; then little, as the trainer needs a core, too.
                self.decode_until(server, trainer, lambda now: now["held_back"] >= 8)
                self.decode_until(server, trainer, lambda now: now["tokens"] >= FRESH, 0)
                stats = self.decode_until(server, trainer, lambda now: now["kept"] >= 1, 1, 0.5)
                self.assertIsNone(stats["failure"])
                again = server.complete(**asked)[2]
                self.assertEqual(again["choices"][0]["text"], first["choices"][0]["text"])
                self.assertLess(again["usage"]["rounds"], first["usage"]["rounds"])
            finally:
                trainer.send_signal(signal.SIGTERM)
                said, errors = trainer.communicate(timeout=60)
            # It ends by itself when it is asked to, and the server goes on without it.
            self.assertEqual(trainer.returncode, 0, errors)
            self.assertIn("tokens a pass at T = 0", said)
            self.assertEqual(server.complete(**asked)[0], 200)
        cards = list((learn / "candidates").glob("*/README.md"))
        self.assertTrue(cards)
        self.assertEqual(list((learn / "candidates").glob("*.part")), [])

    def decode_until(self, server, trainer, done, at_once=8, pause=0.01):
        return server.complete_until_learned(
            done, 250, "Once upon a time",
            lambda: self.assertIsNone(trainer.poll(), "the trainer has ended"),
            at_once=at_once, pause=pause, max_tokens=40, temperature=1, ignore_eos=True)

    def test_eagle3(self):
        self.follow(self.train("eagle3", "--draft-vocab", 512))

    def test_mtp(self):
        self.follow(self.train("mtp"))

    def test_dflash(self):
        self.follow(self.train("dflash", "--layers", 1, "--places", 30))

    def test_medusa(self):
        self.follow(self.train("medusa"))

    def test_draft_model(self):
        self.follow(self.train("draft-model", "--hidden", 32, "--layers", 1))

    def test_refuses_what_it_cannot_train_further(self):
        ended = subprocess.run(self.command("online", "--learn", self.folder / "learn", "--draft",
                                            DRAFTERS / "eagle3"),
                               capture_output=True, text=True, cwd=ROOT / "training",
                               env=self.environment())
        self.assertEqual(ended.returncode, 1)
        self.assertIn("is no drafter for demo-target", ended.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
