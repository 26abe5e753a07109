#!/usr/bin/env python3
"""`foretoken capture`: capture_test.py PROGRAM SOURCE_DIRECTORY [TEST]...

Runs on the bundled models: of the target 256 numbers wide, 6 layers.
"""

import array
import json
import struct
import unittest

from command_line import CliTest

HIDDEN = 256


class CaptureFile:
    def __init__(self, path):
        data = path.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + length])
        self.metadata = header.pop("__metadata__")
        self.shapes = {name: tuple(entry["shape"]) for name, entry in header.items()}
        self.dtypes = {name: entry["dtype"] for name, entry in header.items()}
        self.raw = {name: data[8 + length + entry["data_offsets"][0]:
                               8 + length + entry["data_offsets"][1]]
                    for name, entry in header.items()}
        self.tokens = array.array("i", self.raw["tokens"]).tolist()
        self.answer = list(self.raw["answer"])
        self.starts = array.array("q", self.raw["starts"]).tolist()

    def sequences(self):
        for begin, end in zip(self.starts, self.starts[1:]):
            yield self.tokens[begin:end], self.answer[begin:end]


class Capture(CliTest):
    def capture(self, out, *options):
        report = json.loads(self.succeed("capture", "-o", self.folder / out, "--json",
                                         *options).stdout)
        files = [CaptureFile(path) for path in sorted((self.folder / out).iterdir())]
        self.assertEqual(report["files"], len(files))
        self.assertEqual(report["tokens"], sum(len(file.tokens) for file in files))
        self.assertEqual(report["answer_tokens"], sum(sum(file.answer) for file in files))
        return files

    def test_given_texts_are_read_as_they_are(self):
        text = self.folder / "prompt.txt"
        text.write_text("Once upon a time, there was a little girl")
        answered, = self.capture("answered", "--prompts", text, "-n", 40, "--temp", 0)
        lines = self.folder / "texts.jsonl"
        lines.write_text(json.dumps({"tokens": answered.tokens}) + "\n" +
                         json.dumps({"tokens": answered.tokens[:5]}) + "\n")
        given, = self.capture("given", "--given", "--prompts", lines)
        count = len(answered.tokens)
        self.assertEqual(given.tokens, answered.tokens + answered.tokens[:5])
        self.assertEqual(given.starts, [0, count, count + 5])
        self.assertEqual(given.answer, [0] * (count + 5))
        for name, width in (("taps", 3 * HIDDEN), ("final", HIDDEN)):
            self.assertEqual(given.raw[name][:2 * width * count], answered.raw[name])
            self.assertEqual(given.raw[name][2 * width * count:],
                             answered.raw[name][:2 * width * 5])
        self.refuse("capture", "-o", self.folder / "none", "--given", "--unprompted", 2,
                    saying="give one of them")

    def test_has_the_answers_that_run_gives_and_a_row_for_each_token(self):
        text = self.folder / "prompt.txt"
        text.write_text("Once upon a time, there was a little girl")
        file, = self.capture("out", "--prompts", text, "--samples", 3, "-n", 40, "--seed", 7)
        tokenizer = file.metadata.pop("tokenizer")
        self.assertRegex(tokenizer, r"\A[0-9a-f]{64}\Z")
        self.assertEqual(file.metadata, {"format": "1", "layers": "2,3,3"})
        count = len(file.tokens)
        self.assertEqual(file.shapes["taps"], (count, 3 * HIDDEN))
        self.assertEqual(file.shapes["final"], (count, HIDDEN))
        self.assertEqual(file.dtypes, {"tokens": "I32", "answer": "U8", "starts": "I64",
                                       "taps": "BF16", "final": "BF16"})
        prompt = json.loads(self.succeed("tokenize", "--json", text.read_text()).stdout)
        for index, (tokens, answer) in enumerate(file.sequences()):
            run = json.loads(self.succeed("run", text.read_text(), "-n", 40, "--temp", 1, "--seed",
                                          7 + index, "--json").stdout)
            self.assertEqual(tokens, prompt + run["tokens"])
            self.assertEqual(answer, [0] * len(prompt) + [1] * len(run["tokens"]))
        self.assertEqual(index, 2)
        rows = struct.iter_unpack(f"{6 * HIDDEN}s", file.raw["taps"])
        for (row,) in rows:  # The second and third taps are of the same layer, the first is not.
            self.assertEqual(row[2 * HIDDEN:4 * HIDDEN], row[4 * HIDDEN:])
            self.assertNotEqual(row[:2 * HIDDEN], row[4 * HIDDEN:])

    def test_is_the_same_in_every_mode_and_batch(self):
        options = ("--unprompted", 5, "-n", 60, "--layers", "0,6")
        truth, = self.capture("ar", "--mode", "ar", "--batch", 1, *options)
        self.assertEqual(len(list(truth.sequences())), 5)
        self.assertEqual({tokens[0] for tokens, _ in truth.sequences()}, {1})
        for mode in ("sd", "ssd"):
            file, = self.capture(mode, "--mode", mode, "--batch", 4, *options)
            self.assertEqual(file.raw, truth.raw)

    def test_begins_a_new_file_where_one_is_full(self):
        files = self.capture("out", "--unprompted", 12, "-n", 300, "--ignore-eos", "--file-mb", 2)
        self.assertEqual(len(files), 3)  # 301 tokens of 2 kB each are 0.6 MB.
        whole, = self.capture("whole", "--unprompted", 12, "-n", 300, "--ignore-eos")
        self.assertEqual([sequence for file in files for sequence in file.sequences()],
                         list(whole.sequences()))
        self.assertEqual(b"".join(file.raw["taps"] for file in files), whole.raw["taps"])

    def test_refuses(self):
        out = self.folder / "out"
        self.refuse("capture", "-o", out, "--layers", "2,7", "--unprompted", 1,
                    saying="'7' is none of the target's 0 to 6")
        self.refuse("capture", "-o", out, "--layers", "x", "--unprompted", 1,
                    saying="'x' is none of the target's 0 to 6")
        self.assertFalse(out.exists())
        self.succeed("capture", "-o", out, "--unprompted", 1, "-n", 4)
        self.refuse("capture", "-o", out, "--unprompted", 1,
                    saying="holds captures already, such as capture-00000.safetensors")
        (self.folder / "file").write_text("")
        self.refuse("capture", "-o", self.folder / "file" / "out", "--unprompted", 1,
                    saying="cannot be made")


if __name__ == "__main__":
    unittest.main()
