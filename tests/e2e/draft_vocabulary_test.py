#!/usr/bin/env python3
"""Drafts with other tokens than the target's: draft_vocabulary_test.py PROGRAM SOURCE_DIRECTORY
[TEST]..."""

import json
import unittest

from command_line import MODELS, CliTest

TARGET = MODELS / "demo-target"
DRAFT = MODELS / "demo-draft"
WORDS = 261  # The first token that is a word: before them lie special tokens and bytes.


def varint(number):
    encoded = b""
    while number > 127:
        encoded += bytes([number & 127 | 128])
        number >>= 7
    return encoded + bytes([number])


def take_field(message):
    """The first field of a protocol buffer, all of whose fields here have a length, as it is written
    and what it holds; and the rest."""
    at, length, shift = 1, 0, 0
    while True:
        length |= (message[at] & 127) << shift
        shift += 7
        at += 1
        if message[at - 1] < 128:
            break
    return message[:at + length], message[at:at + length], message[at + length:]


def with_pieces(model, change):
    """A SentencePiece model whose list of pieces, (spelling, the rest of it), has been changed."""
    pieces, others = [], b""
    while model:
        whole, content, model = take_field(model)
        if whole[0] == 0x0A:
            _, spelling, rest = take_field(content)
            pieces.append((spelling, rest))
        else:
            others += whole
    written = b""
    for spelling, rest in change(pieces):
        piece = b"\x0A" + varint(len(spelling)) + spelling + rest
        written += b"\x0A" + varint(len(piece)) + piece
    return written + others


class DraftVocabulary(CliTest):
    def draft(self, change, order=None):
        """The bundled draft with other pieces, and with rows of its embedding table in an order."""
        folder = self.copy_model("demo-draft")
        pieces = folder / "tokenizer.model"
        pieces.write_bytes(with_pieces(pieces.read_bytes(), change))
        if order is None:
            return folder
        weights = folder / "model.safetensors"
        data = weights.read_bytes()
        length = int.from_bytes(data[:8], "little")
        entry = json.loads(data[8:8 + length])["model.embed_tokens.weight"]
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        size = (end - begin) // entry["shape"][0]
        rows = [data[begin + i * size:begin + (i + 1) * size] for i in range(entry["shape"][0])]
        weights.write_bytes(data[:begin] + b"".join(rows[i] for i in order) + data[end:])
        return folder

    def story(self, *options):
        result = self.succeed("run", "Once upon a time, there was a dragon.", "-n", 64, "--temp",
                              "0.8", "--seed", 7, "--json", *options)
        report = json.loads(result.stdout)
        return report["tokens"], report["stats"], result.stderr

    def test_other_ids(self):
        order = [*range(WORDS), *reversed(range(WORDS, 2048))]
        draft = self.draft(lambda pieces: [pieces[i] for i in order], order)
        truth, plain, _ = self.story("--mode", "sd")
        tokens, stats, said = self.story("--mode", "sd", "-md", draft)
        self.assertEqual(tokens, truth)
        for count in ("rounds", "proposed", "accepted"):
            self.assertEqual(stats[count], plain[count], count)
        self.assertRegex(said, r"the draft has another vocabulary than the target: of the target's "
                               r"(\d+) tokens of several bytes it shares \1\n")
        # The speculator's process fits the draft itself.
        for mode in (("ssd",), ("ssd", "--draft-process"), ("auto",)):
            tokens, stats, _ = self.story("--mode", *mode, "-md", draft)
            self.assertEqual(tokens, truth, mode)
        tokens, stats, _ = self.story("--mode", "ssd", "--draft-process", "--fallback", "none",
                                      "-md", draft)
        self.assertEqual(tokens, truth)
        self.assertGreater(stats["accepted"], 0)
        report = json.loads(self.succeed("inspect", TARGET, "-md", draft, "--json").stdout)
        self.assertFalse(report["same_vocabulary"])
        self.assertEqual(report["shared_tokens"], 1714)

    def test_tokens_that_the_draft_lacks(self):
        def renamed(pieces):
            return [(b"\xE2\x96\x81wyvern" if b"dragon" in spelling else spelling, rest)
                    for spelling, rest in pieces]

        draft = self.draft(renamed)
        truth, _, _ = self.story("--mode", "ar")
        for mode in (("sd",), ("ssd",), ("ssd", "--draft-process")):
            tokens, _, said = self.story("--mode", *mode, "-md", draft)
            self.assertEqual(tokens, truth, mode)
            self.assertIn("of the target's 1714 tokens of several bytes it shares 1713", said)
        text = self.succeed("inspect", TARGET, "-md", draft).stdout
        self.assertIn("of the target's 1714 tokens of several bytes it shares 1713", text)

    def test_a_draft_that_shares_too_little(self):
        draft = self.draft(lambda pieces: pieces[:WORDS] + [
            (spelling + b"~", rest) for spelling, rest in pieces[WORDS:]])
        truth, _, _ = self.story("--mode", "ar")
        for mode in ("sd", "auto"):
            tokens, _, said = self.story("--mode", mode, "-md", draft)
            self.assertEqual(tokens, truth, mode)
            self.assertIn("drafts by text, since it has too few of the target's tokens", said)
        for mode in (("ssd",), ("ssd", "--draft-process")):
            self.refuse("run", "x", "-m", TARGET, "-md", draft, "--mode", *mode,
                        saying="take mode sd, or a draft of the target's family")
        self.assertIn("It drafts by text, since these are too few",
                      self.succeed("inspect", TARGET, "-md", draft).stdout)

    def test_by_text(self):
        """The draft that has the target's tokens guesses as well where it reads and writes texts."""
        truth, plain, _ = self.story("--mode", "sd")
        tokens, stats, said = self.story("--mode", "sd", "--draft-by-text")
        self.assertEqual(tokens, truth)
        self.assertIn("the draft drafts by text, as it was asked to", said)
        self.assertGreater(stats["accepted"], plain["accepted"] / 2)
        report = json.loads(self.succeed("inspect", TARGET, "-md", DRAFT, "--draft-by-text",
                                         "--json").stdout)
        self.assertTrue(report["by_text"])
        self.refuse("run", "x", "--mode", "sd", "--draft-by-text", "--draft-vocab", 16,
                    saying="--draft-vocab")
        self.refuse("run", "x", "-m", TARGET, "--mode", "ar", "--draft-by-text",
                    saying="--draft-by-text is about how a draft reads and writes")

    def test_the_most_frequent_tokens_only(self):
        truth, plain, _ = self.story("--mode", "sd")
        texts = self.folder / "texts.txt"
        texts.write_text(self.succeed("run", "Once upon a time, there was a dragon.", "-n", 64,
                                      "--temp", "0.8", "--seed", 7).stdout * 3)
        ranking = self.folder / "ranking.txt"
        said = self.succeed("datastore", "rank", texts, "-o", ranking).stdout
        self.assertRegex(said, r"ranking.txt: \d+ of 2048 tokens, \d+ times in all")
        lines = ranking.read_text().splitlines()
        self.assertRegex(lines[0], r"\Aforetoken-token-ranking 1 [0-9a-f]{64} 2048\Z")
        counts = [int(line.split()[1]) for line in lines[1:]]
        self.assertEqual(counts, sorted(counts, reverse=True))
        # Ranked by what comes out, the draft may say nearly all that is accepted.
        tokens, stats, _ = self.story("--mode", "sd", "--draft-vocab", ranking)
        self.assertEqual(tokens, truth)
        self.assertGreater(stats["accepted"], plain["accepted"] * 0.8)
        for mode in (("sd",), ("ssd",), ("auto",), ("ssd", "--draft-process")):
            tokens, stats, _ = self.story("--mode", *mode, "--draft-vocab", f"{ranking}:16")
            self.assertEqual(tokens, truth, mode)
        # The process has limited its draft alike, or the engine would not have taken it.
        self.assertIn("accepted", stats)

    def test_the_ranking_of_a_datastore(self):
        texts = self.folder / "texts.txt"
        texts.write_text("Once upon a time there was a little dragon. He liked to play.\n" * 20)
        store = self.folder / "store"
        self.succeed("datastore", "build", "-d", store, texts)
        options = ("--mode", "sd", "--datastore", store, "--draft-vocab", 8)
        self.refuse("run", "x", *options, saying="`foretoken datastore rank -d DIR` finds it out")
        self.succeed("datastore", "rank", "-d", store)
        truth, _, _ = self.story("--mode", "ar")
        tokens, _, _ = self.story(*options)
        self.assertEqual(tokens, truth)
        of_store = (store / "token-ranking.txt").read_text().splitlines()
        self.succeed("datastore", "rank", "-d", store, texts, "-o", self.folder / "both.txt")
        of_both = (self.folder / "both.txt").read_text().splitlines()
        self.assertEqual([2 * int(line.split()[1]) for line in of_store[1:]],
                         [int(line.split()[1]) for line in of_both[1:]])
        # Settings may say so too.
        config = self.folder / "config.toml"
        config.write_text(f'draft-vocab = "{self.folder / "both.txt"}:8"\n')
        tokens, _, _ = self.story("--mode", "sd", "--config", config)
        self.assertEqual(tokens, truth)
        shown = json.loads(self.succeed("inspect", TARGET, "-md", DRAFT, "--no-measuring", "--json",
                                        "--draft-vocab", self.folder / "both.txt").stdout)
        plain = json.loads(self.succeed("inspect", TARGET, "-md", DRAFT, "--no-measuring",
                                        "--json").stdout)
        self.assertLess(shown["draft"]["says"], 40)
        self.assertLess(shown["draft"]["memory"]["weight_bytes"],
                        plain["draft"]["memory"]["weight_bytes"])

    def test_limits_that_make_no_sense(self):
        for mode in (("sd",), ("ssd", "--draft-process")):
            self.refuse("run", "x", "--mode", *mode, "--draft-vocab", "/nowhere",
                        saying="/nowhere: cannot be read: No such file or directory")
        self.refuse("run", "x", "--mode", "sd", "--draft-vocab", "/nowhere:0",
                    saying="the draft must be left at least one token")
        self.refuse("run", "x", "--mode", "ar", "-m", TARGET, "--draft-vocab", "/nowhere",
                    saying="there is no draft")
        self.refuse("datastore", "rank", saying="there is nothing to count")
        self.refuse("datastore", "rank", TARGET / "config.json", saying="where is the ranking to go")


if __name__ == "__main__":
    unittest.main(verbosity=2)
