#!/usr/bin/env python3
"""Heads for judge decoding and their data: judge_test.py PROGRAM SOURCE_DIRECTORY. Exits with 77
where torch is missing."""

import contextlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

try:
    import torch
except ImportError:
    sys.exit(77)

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path[:0] = [str(SOURCE / "training")]
from foretoken_train import __main__ as program
from foretoken_train import judge, judge_data
from foretoken_train.failure import Failure
from foretoken_train.labels import read_labels
from foretoken_train.safetensors import SafetensorsFile

TARGET = SOURCE / "models/demo-target"
DRAFT = SOURCE / "models/demo-draft"


class FolderTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_judge."))
        self.addCleanup(shutil.rmtree, self.folder)


class HeadTest(unittest.TestCase):
    def examples(self, count=600):
        """States of which the first number says what is right, mostly; the second one is large and
        says nothing."""
        generator = torch.Generator().manual_seed(3)
        states = torch.randn(count, 4, generator=generator) * torch.tensor([1.0, 50.0, 1.0, 0.0])
        noise = 0.5 * torch.randn(count, generator=generator)
        return states, states[:, 0] + noise > 0.8

    def test_the_border_refuses_the_share_that_is_asked_for(self):
        states, right = self.examples()
        head = judge.fit(states, right, 0.01)
        self.assertGreater(judge.roc_area(head.logits(states), right), 0.9)
        self.assertGreater(float(head.weight[0]), 10 * float(head.weight[1].abs()))
        accepted_before = 1.1
        for recall in (0.5, 0.9, 0.99):
            bordered = judge.with_border(head, states, right, recall)
            refused, accepted = judge.shares(bordered.logits(states), right, 0.5)
            self.assertGreaterEqual(refused, recall)
            self.assertLess(refused, recall + 0.01)
            self.assertLess(accepted, accepted_before)
            accepted_before = accepted

    def test_classes_count_alike_however_many_they_have(self):
        states, right = self.examples(4000)
        few = torch.cat([torch.nonzero(~right)[:, 0], torch.nonzero(right)[:60, 0]])
        head = judge.fit(states[few], right[few], 0.01)
        refused, accepted = judge.shares(head.logits(states), right, 0.5)
        self.assertGreater(accepted, 0.8)  # A class that was a fiftieth is learned.
        self.assertGreater(refused, 0.7)

    def test_area(self):
        right = torch.tensor([True, False, True, False])
        self.assertEqual(judge.roc_area(torch.tensor([3.0, 1.0, 2.0, 0.0]), right), 1.0)
        self.assertEqual(judge.roc_area(torch.tensor([1.0, 1.0, 1.0, 1.0]), right), 0.5)
        self.assertEqual(judge.roc_area(torch.tensor([3.0, 2.0, 1.0, 0.0]), right), 0.75)

    def test_a_group_is_held_back_whole(self):
        groups = [f"answer {number // 3}" for number in range(30)]
        held = judge.hold_back(groups, 0.2, seed=5)
        self.assertEqual(sum(held), 6)
        for first in range(0, 30, 3):
            self.assertEqual(len(set(held[first:first + 3])), 1)
        self.assertNotEqual(held, judge.hold_back(groups, 0.2, seed=6))


class LabelsTest(FolderTest):
    def failure(self, text):
        path = self.folder / "labels.jsonl"
        path.write_text(text)
        with self.assertRaises(Failure) as raised:
            read_labels([path])
        return str(raised.exception)

    def test_lines_of_people(self):
        path = self.folder / "labels.jsonl"
        path.write_text('{"tokens": [1, 5, 7], "positions": [1, 2], "labels": [1, 0]}\n\n'
                        '{"tokens": [1], "positions": [0], "labels": [true], "group": "a\u2028b"}\n')
        first, second = read_labels([path])
        self.assertEqual((first.tokens, first.positions, first.right), ([1, 5, 7], [1, 2],
                                                                        [True, False]))
        self.assertEqual((second.right, second.group), ([True], "a\u2028b"))  # One line.

    def test_what_is_wrong_is_said_with_its_line(self):
        good = '{"tokens": [1, 5], "positions": [1], "labels": [1]}\n'
        for line, said in (("{", "labels.jsonl:2 is not JSON"), ("[]", "not a JSON object"),
                           ('{"tokens": [1, "a"]}', "'tokens' is not a list of whole numbers"),
                           ('{"tokens": [1], "positions": [], "labels": []}', "'positions' is not"),
                           ('{"tokens": [1], "positions": [1], "labels": [1]}', "go beyond its 1"),
                           ('{"tokens": [1], "positions": [0], "labels": [2]}', "0 for a wrong"),
                           ('{"tokens": [1], "positions": [0], "labels": [1, 0]}',
                            "has 1 positions and 2 labels")):
            self.assertIn(said, self.failure(good + line))
        self.assertIn("has no line", self.failure(""))


class RightnessTest(unittest.TestCase):
    def test_likelihood_from_the_place_on(self):
        answer = judge_data.Answer([1, 2, 3, 4, 5], 2, torch.tensor([0, 0, -0.5, -0.1, -0.3]))
        place = judge_data.Place(0, 3, 9, -0.6)  # The answer has -0.2 a token left.
        for after, right in (([-0.2], False), ([-0.1], False), ([0.0], True), ([], False)):
            continued = judge_data.Continuation([7] * len(after), after)
            self.assertEqual(judge_data.is_right(answer, place, continued, 9, 0.1), right, after)
        longer = judge_data.Continuation([7, 7, 7], [0.0, -9.0, -9.0])  # Cut to the same length.
        self.assertTrue(judge_data.is_right(answer, place, longer, 9, 0.1))
        self.assertFalse(judge_data.is_right(answer, place, longer, 9, 0.05))
        self.assertFalse(judge_data.is_right(answer, place, longer, 1, 0.1))  # -0.6 against -0.1.

    def test_the_last_number(self):
        self.assertEqual(judge_data.last_number("2 + 2 = 4, so 1,024.5 it is."), "1024.5")
        self.assertIsNone(judge_data.last_number("none"))

    def test_a_number_that_stays_is_right_whatever_the_likelihood(self):
        answer = judge_data.Answer([1, 2, 3], 1, torch.tensor([0, -0.1, -0.1]))
        places = [judge_data.Place(0, 1, 8, -9.0), judge_data.Place(0, 2, 9, -0.1)]
        after = [judge_data.Continuation([3], [-9.0]), judge_data.Continuation([], [])]
        lines = judge_data.label([answer], places, after, [True, None], 9, 0.1)
        self.assertEqual([line["labels"] for line in lines], [[1], [1]])
        self.assertEqual([line["tokens"] for line in lines], [[1, 8], [1, 2, 9]])
        self.assertEqual([line["positions"] for line in lines], [[1], [2]])
        lines = judge_data.label([answer], places, after, [False, None], 9, 0.1)
        self.assertEqual([line["labels"] for line in lines], [[0], [1]])


class WholeTest(FolderTest):
    """With the bundled pair: labels, a head, and what the engine accepts with it."""

    def train(self, *words):
        errors = io.StringIO()
        with mock.patch.object(sys, "argv", ["foretoken_train", *map(str, words)]), \
                contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            code = program.main()
        return code, errors.getvalue()

    def test_from_prompts_to_accepted_tokens(self):
        prompts = self.folder / "prompts.txt"
        prompts.write_text("\n\n".join(f"One day, a {who} went to" for who in (
            "small dragon", "boy named Tim", "red bird", "little girl", "happy frog", "big dog")))
        data, head = self.folder / "labels.jsonl", self.folder / "head"
        code, said = self.train("judge-data", "--target", TARGET, "--draft", DRAFT, "--prompts",
                                prompts, "--out", data, "--program", PROGRAM, "--max-tokens", 40)
        self.assertEqual(code, 0, said)
        self.assertFalse((self.folder / "labels.jsonl.unfinished").exists())
        labelled = read_labels([data])
        self.assertEqual({len(text.tokens) - 1 for text in labelled} -
                         {text.positions[0] for text in labelled}, set())
        self.assertEqual({each for text in labelled for each in text.right}, {True, False})
        again = self.folder / "again.jsonl"
        self.train("judge-data", "--target", TARGET, "--draft", DRAFT, "--prompts", prompts,
                   "--out", again, "--program", PROGRAM, "--max-tokens", 40, "--result", "number")
        self.assertEqual(again.read_text(), data.read_text())  # No story here has a number.
        code, said = self.train("judge", "--target", TARGET, "--data", data, "--out", head,
                                "--program", PROGRAM, "--hold-back", 0.4, "--recall", 0.5,
                                "--l2", 1)
        self.assertEqual(code, 0, said)
        self.assertEqual(sorted(path.name for path in head.iterdir()),
                         ["README.md", "config.json", "model.safetensors"])
        config = json.loads((head / "config.json").read_text())
        self.assertEqual((config["model_type"], config["hidden_size"]), ("judge", 256))
        weights = SafetensorsFile(head / "model.safetensors")
        self.assertEqual(tuple(weights.tensor("judge.weight").shape), (256,))
        self.assertIn("Area under the ROC curve", (head / "README.md").read_text())
        shown = subprocess.run(
            [PROGRAM, "run", "Once upon a time", "-m", TARGET, "-md", DRAFT, "-n", "48", "--mode",
             "sd", "--lossy", "judge", "--lossy-judge", head, "--lossy-approval", "0.05", "--json"],
            capture_output=True, text=True, check=True).stdout
        self.assertGreater(json.loads(shown)["stats"]["lossy_tokens"], 0)

    def test_what_cannot_be_done_is_said(self):
        data = self.folder / "labels.jsonl"
        data.write_text('{"tokens": [1, 5], "positions": [1], "labels": [1]}\n' * 4)
        out = self.folder / "head"
        code, said = self.train("judge", "--target", TARGET, "--data", data, "--out", out,
                                "--program", PROGRAM)
        self.assertEqual(code, 1)
        self.assertIn("a head needs right ones and wrong ones", said)
        code, said = self.train("judge", "--target", TARGET, "--data", data, "--out", out,
                                "--program", self.folder / "none")
        self.assertIn("cannot be run", said)
        data.write_text('{"tokens": [1, 999999], "positions": [1], "labels": [1]}\n')
        code, said = self.train("judge", "--target", TARGET, "--data", data, "--out", out,
                                "--program", PROGRAM)
        self.assertIn("'tokens' has 999999", said)


if __name__ == "__main__":
    unittest.main()
