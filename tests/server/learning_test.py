"""`foretoken serve --learn-draft`: texts become captures, and a better draft is used while the server
goes on. The trainer is played by this test: the target itself drafts its texts best.

Usage: learning_test.py PROGRAM
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from serving import Serving

PROGRAM = None
MODELS = pathlib.Path(__file__).parents[2] / "models"


def tensors(path):
    with open(path, "rb") as file:
        return json.loads(file.read(int.from_bytes(file.read(8), "little")))


class Learning(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def serve(self, *options):
        return Serving(PROGRAM, "--mode", "sd", "--modes", "sd", "--learn-draft", self.folder,
                       *options)

    def offer(self, name, model):
        part = self.folder / "candidates" / f"{name}.part"
        shutil.copytree(model, part)
        part.rename(part.with_suffix(""))

    def decode_until(self, server, done, **pace):
        return server.complete_until_learned(done, 120, "Story:", max_tokens=24, temperature=0.8,
                                             **pace)

    def test_uses_what_drafts_better(self):
        asked = {"max_tokens": 60, "temperature": 0.7, "seed": 5, "ignore_eos": True}
        with self.serve() as server:
            status, _, first = server.complete(**asked)
            self.assertEqual(status, 200, first)
            self.decode_until(server, lambda now: now["held_back"] >= 8)
            self.offer("00001", MODELS / "demo-target")
            stats = self.decode_until(server, lambda now: now["kept"] == 1, at_once=1,
                                      pause=0.2)
            self.assertEqual(stats["draft"], "00001")
            self.assertGreater(stats["tokens_per_round"], 1)
            self.assertIsNone(stats["failure"])
            again = server.complete(**asked)[2]
            self.assertEqual(again["choices"][0]["text"], first["choices"][0]["text"])
            self.assertLess(again["usage"]["rounds"], first["usage"]["rounds"])
            self.offer("00002", MODELS / "demo-draft")
            stats = self.decode_until(server, lambda now: now["judged"] == 2, at_once=1,
                                      pause=0.2)
            self.assertEqual((stats["kept"], stats["draft"]), (1, "00001"))
            text = server.get("/metrics")[2]
            self.assertRegex(text, r'foretoken_draft_learning_kept_total\{model="[^"]+"\} 1')
        self.assertIn("draft 00001", server.errors)
        self.assertIn("written to", server.errors)
        lines = (self.folder / "verdicts.jsonl").read_text().splitlines()
        verdicts = [json.loads(line) for line in lines]
        self.assertEqual([verdict["kept"] for verdict in verdicts], [True, False])
        captures = sorted((self.folder / "captures").iterdir())
        header = tensors(captures[0])
        self.assertEqual(header["__metadata__"]["layers"], "")
        self.assertEqual(header["final"]["shape"], [header["tokens"]["shape"][0], 256])
        # The next start begins with what was learned, and goes on behind the captures.
        with self.serve() as server:
            self.assertEqual(server.get("/stats")[2]["draft_learning"]["draft"], "00001")
            self.assertEqual(server.complete(**asked)[2]["usage"]["rounds"],
                             again["usage"]["rounds"])
        self.assertGreater(len(list((self.folder / "captures").iterdir())), len(captures))

    def test_leaves_out_what_is_asked_to_stay_out(self):
        with self.serve() as server:
            for _ in range(8):
                self.assertEqual(server.complete(max_tokens=8, datastore={"learn": False})[0], 200)
            stats = server.get("/stats")[2]["draft_learning"]
            self.assertEqual((stats["held_back"], stats["left_out"]), (0, 0))
        self.assertEqual(list((self.folder / "captures").iterdir()), [])

    def test_needs_a_draft(self):
        ended = subprocess.run([PROGRAM, "serve", "--mode", "ar", "--modes", "ar", "--learn-draft",
                                self.folder], capture_output=True, text=True, timeout=60)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("--learn-draft trains a draft that is in use", ended.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
