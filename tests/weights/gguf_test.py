#!/usr/bin/env python3
"""GGUF files as models, from the outside: gguf_test.py PROGRAM SOURCE_DIRECTORY BUILD_FOLDER
[TEST]... The files are the bundled pair, written with the Python package `gguf`."""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path += [str(SOURCE.parent), str(SOURCE.parent / "e2e")]
from python_packages import run_with

run_with(pathlib.Path(sys.argv[3]), SOURCE / "requirements.txt")
sys.argv.pop(3)

from command_line import MODELS, CliTest, foretoken
from gguf_pair import Kind, Model

TARGET = MODELS / "demo-target"
DRAFT = MODELS / "demo-draft"
STORY = ("run", "Once upon a time, in a forest", "-n", 48, "--logprobs", 5, "--json")
KINDS = {
    "bf16": {"": Kind.BF16},
    "f32": {"": Kind.F32},
    "f16": {"": Kind.F16},
    "q8_0": {"": Kind.Q8_0},
    "q4_0": {"": Kind.Q4_0},
    "mxfp4": {"": Kind.MXFP4},
    # Mixed types in one file are the normal case. q, k and v differ, as they do in such files.
    "mixed": {"embed": Kind.Q8_0, "q_proj": Kind.Q4_0, "k_proj": Kind.Q5_1, "v_proj": Kind.Q6_K,
              "o_proj": Kind.Q4_1, "gate": Kind.Q5_0, "up": Kind.Q4_K, "down": Kind.F16},
}


class GgufFiles(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.files = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_gguf."))
        cls.addClassCleanup(shutil.rmtree, cls.files)
        cls.target, cls.draft = Model(TARGET), Model(DRAFT)

    def file_of(self, model, kinds):
        """The model's file with matrices of these kinds, written once."""
        path = self.files / f"{model.folder.name}-{kinds}.gguf"
        return path if path.exists() else model.write_gguf(path, KINDS[kinds])

    def story(self, *options):
        report = json.loads(self.succeed(*STORY, *options).stdout)
        self.assertEqual(len(report["logprobs"]), len(report["tokens"]))
        return report["tokens"], report["text"], report["logprobs"]

    def test_same_weights_give_the_same_logits(self):
        for precision in ("bf16", "f32"):
            options = ("--mode", "ar", "--precision", precision)
            expected = self.story("-m", TARGET, *options)
            for kinds in ("bf16", "f32"):
                path = self.file_of(self.target, kinds)
                self.assertEqual(self.story("-m", path, *options), expected, (precision, kinds))
        for mode in ("sd", "ssd", "auto"):
            tokens, _, _ = self.story("-m", self.file_of(self.target, "bf16"), "-md",
                                      self.file_of(self.draft, "bf16"), "--mode", mode)
            self.assertEqual(tokens, self.story("-m", TARGET, "--mode", "ar")[0], mode)

    def test_quantised_weights_are_the_numbers_they_stand_for(self):
        for kinds in ("f16", "q8_0", "q4_0", "mixed"):
            folder = self.target.write_folder(self.files / kinds, KINDS[kinds])
            for precision in ("bf16", "f32"):
                options = ("--mode", "ar", "--precision", precision)
                self.assertEqual(self.story("-m", self.file_of(self.target, kinds), *options),
                                 self.story("-m", folder, *options), (kinds, precision))

    def test_inputs_of_eight_bits_change_little(self):
        """The portable arithmetic beside float32 with the numbers that the blocks stand for."""
        for kinds in ("bf16", "q8_0", "q4_0", "mxfp4", "mixed"):
            path = self.file_of(self.target, kinds)
            exact = self.story("-m", path, "--mode", "ar", "--precision", "f32")[2]
            portable = self.story("-m", path, "--mode", "ar", "--precision", "portable")[2]
            differences = []
            for here, there in zip(portable, exact):
                expected = {entry["token"]: entry["logprob"] for entry in there["top"]}
                differences += [abs(entry["logprob"] - expected[entry["token"]])
                                for entry in here["top"] if entry["token"] in expected]
                if here["token"] != there["token"]:  # From here on they tell other stories.
                    break
            self.assertGreater(len(differences), 20)
            self.assertLess(sum(differences) / len(differences), 0.05, kinds)
            if kinds != "bf16":
                self.assertGreater(max(differences), 0)

    def test_every_mode_gives_the_same_tokens(self):
        for target, draft in (("q8_0", "q8_0"), ("q4_0", "q4_0"), ("mxfp4", "mxfp4"),
                              ("mixed", "q8_0")):
            report = json.loads(self.succeed(
                "verify", "-m", self.file_of(self.target, target),
                "-md", self.file_of(self.draft, draft), "--limit", 2, "-n", 32,
                "--batches", "1,3", "--temps", "0,1.0", "--json", "-").stdout)
            self.assertTrue(report["identical"], (target, draft))
            self.assertEqual(report["target"], f"demo-target-{target}")

    def test_fewer_bits_lose_more(self):
        story = self.folder / "story.txt"
        story.write_text("Once upon a time, there was a little girl named Lily. She had a red "
                         "ball and a small dog.\n\n" * 40)
        loss = {}
        for kinds in ("bf16", "q8_0", "q4_0"):
            report = json.loads(self.succeed(
                "perplexity", "-f", story, "-m", self.file_of(self.target, kinds), "--against",
                TARGET, "--against-precision", "f32", "--json").stdout)
            self.assertEqual(report["precision"], "bf16" if kinds == "bf16" else "portable")
            loss[kinds] = report["against"]["divergence"]
        self.assertLess(loss["bf16"], loss["q8_0"])
        self.assertLess(10 * loss["q8_0"], loss["q4_0"])
        self.assertLess(loss["q4_0"], 0.5)

    def test_folders_and_files_go_together(self):
        expected, _, _ = self.story("-m", TARGET, "--mode", "ar")
        for options in (("-m", TARGET, "-md", self.file_of(self.draft, "q8_0")),
                        ("-m", self.file_of(self.target, "bf16"), "-md", DRAFT)):
            for mode in ("sd", "ssd"):
                self.assertEqual(self.story(*options, "--mode", mode)[0], expected, options)
        self.assertEqual(
            self.story("-m", TARGET, "-md", self.file_of(self.draft, "q4_0"), "--mode", "ssd",
                       "--draft-process")[0], expected)

    def test_a_speculating_draft_is_good(self):
        report = json.loads(self.succeed(
            "run", "Once upon a time, in a forest", "-n", 64, "--mode", "sd", "--json",
            "-m", self.file_of(self.target, "q8_0"),
            "-md", self.file_of(self.draft, "q8_0")).stdout)
        self.assertLess(report["stats"]["rounds"], 64 / 2)  # Else its heads would be mixed up.

    def test_a_draft_under_other_ids_is_as_good(self):
        order = [*range(261), *reversed(range(261, 2048))]  # Words, last first.

        def reordered(writer):
            for key in ("tokens", "scores", "token_type"):
                entry = writer.kv_data[0][f"tokenizer.ggml.{key}"]
                entry.value = [entry.value[i] for i in order]

        other = Model(DRAFT)
        table = "model.embed_tokens.weight"
        other.tensors[table] = other.tensors[table][order]
        for kinds in ("bf16", "q8_0", "q4_0"):
            path = other.write_gguf(self.folder / f"{kinds}.gguf", KINDS[kinds], change=reordered)
            reports = [json.loads(self.succeed(*STORY, "-m", TARGET, "--mode", "sd", "-md",
                                               draft).stdout)
                       for draft in (path, self.file_of(self.draft, kinds))]
            for count in ("rounds", "proposed", "accepted"):
                self.assertEqual(*(report["stats"][count] for report in reports), (kinds, count))
            self.assertEqual(reports[0]["tokens"], reports[1]["tokens"])

    def test_a_receipt_tells_who_wrote_a_text(self):
        path, draft = self.file_of(self.target, "q4_0"), self.file_of(self.draft, "q8_0")
        receipt = self.folder / "receipt.json"
        self.succeed("run", "Once upon a time", "-n", 80, "--temp", 0.9, "--seed", 5, "-m", path,
                     "-md", draft, "--mode", "ssd", "--receipt", receipt)
        self.assertIn("yes: demo-target-q4_0 wrote these 80 tokens",
                      self.succeed("check", receipt, "-m", path).stdout)
        written = json.loads(receipt.read_text())
        self.assertEqual((written["precision"], written["arithmetic"]), ("portable", 1))
        written["tokens"][7] += 1
        receipt.write_text(json.dumps(written))
        altered = foretoken("check", receipt, "-m", path)
        self.assertEqual(altered.returncode, 1, altered.stderr)
        self.assertIn("no: its hash chain does not fit", altered.stdout)
        self.refuse("check", receipt, "-m", self.file_of(self.target, "q8_0"),
                    saying="the receipt is of a model with fingerprint")
        self.refuse("check", path, "-m", path, saying="is no JSON object")
        self.refuse("check", self.folder / "none", saying="cannot read")
        nowhere = foretoken("run", "x", "-n", 4, "-m", path, "--receipt", self.folder / "no" / "r")
        self.assertNotEqual(nowhere.returncode, 0)
        self.assertIn("no/r", nowhere.stderr)

    def test_every_command_takes_a_file(self):
        path, draft = self.file_of(self.target, "q8_0"), self.file_of(self.draft, "q8_0")
        text = "Once upon a time, <|im_end|> there was.\n"
        for options in ((), ("--literal",), ("--no-bos",), ("--chat",)):
            self.assertEqual(self.succeed("tokenize", "-m", path, *options, text).stdout,
                             self.succeed("tokenize", "-m", TARGET, *options, text).stdout)
        ids = self.succeed("tokenize", "-m", path, "--no-bos", "--json", text).stdout
        self.assertEqual(self.succeed("detokenize", "-m", path, ids).stdout,
                         self.succeed("detokenize", "-m", TARGET, ids).stdout)
        story = self.folder / "story.txt"
        story.write_text(text * 20)
        store = self.folder / "store"
        self.succeed("datastore", "build", "-d", store, "-m", path, story)
        self.succeed("datastore", "info", "-d", store)
        self.succeed("run", "x", "-n", 4, "-m", path, "--datastore", store)
        self.succeed("chat", "-n", 4, "-m", path, stdin="Hello!\n")
        self.succeed("perplexity", "-f", story, "-m", path)
        self.succeed("demo", "-n", 4, "-m", path, "-md", draft)
        self.succeed("bench", "-n", 8, "--limit", 1, "-m", path, "-md", draft)
        measured = self.folder / "measured.json"
        self.succeed("calibrate", "--limit", 1, "-n", 16, "-k", 2, "--temps", "0.7", "-m", path,
                     "-md", draft, "-o", measured)
        self.assertIn("demo-target-q8_0", self.succeed(
            "plan", "--roofline", "--model-shape", path, "--json", "-").stdout)

    def test_a_split_model_is_named_by_its_first_part(self):
        whole = self.story("-m", self.file_of(self.target, "q8_0"), "--mode", "ar")
        path = self.folder / "split.gguf"
        self.target.write_gguf(path, KINDS["q8_0"], split_max_tensors=20)
        parts = sorted(self.folder.glob("split-*.gguf"))
        self.assertEqual(len(parts), 3)
        self.assertEqual(self.story("-m", parts[0], "--mode", "ar"), whole)
        self.refuse("run", "x", "-m", parts[1], saying="name the first part, NAME-00001-of-00003")
        parts[2].unlink()
        self.refuse("inspect", parts[0], saying="split-00003-of-00003.gguf: cannot be opened")

    def test_loading_shows_on_a_terminal_only(self):
        command = ("run", "x", "-n", 1, "--mode", "sd", "-m", self.file_of(self.target, "q8_0"),
                   "-md", self.file_of(self.draft, "q8_0"))
        self.assertNotIn("Loading", self.succeed(*command).stderr)
        shown = self.shown_on_a_terminal(*command)
        for name in (b"demo-target-q8_0", b"demo-draft-q8_0"):
            self.assertIn(b"Loading " + name, shown)

    def test_inspect(self):
        path = self.file_of(self.target, "q8_0")
        report = json.loads(self.succeed("inspect", path, "--json").stdout)
        as_bf16 = json.loads(self.succeed("inspect", path, "--precision", "bf16", "--json").stdout)
        folder = json.loads(self.succeed("inspect", TARGET, "--json").stdout)
        for key in ("layers", "hidden", "heads", "kv_heads", "vocabulary", "context", "rope",
                    "parameters", "memory", "tokenizer"):
            self.assertEqual(as_bf16[key], folder[key], key)
        self.assertEqual(report["memory"]["precision"], "portable")
        self.assertEqual(report["memory"]["weight_bytes"], report["stored"]["bytes"])
        types = report["stored"]["types"]
        self.assertEqual(set(types), {"F32", "Q8_0"})
        self.assertEqual(types["Q8_0"]["bits_per_weight"], 8.5)
        self.assertEqual(types["Q8_0"]["bytes"], types["Q8_0"]["elements"] * 34 // 32)
        self.assertEqual(report["stored"]["elements"], report["parameters"])
        # The embedding table is the lm head as well: all of it is read for a token.
        self.assertEqual(report["memory"]["weight_bytes_per_token"],
                         report["memory"]["weight_bytes"])
        text = self.succeed("inspect", path, "-md", self.file_of(self.draft, "q4_0")).stdout
        self.assertRegex(text, r"Q8_0: 5.24M weights in 43 tensors, 5.57 MB, 8.50 bits per weight")
        self.assertRegex(text, r"of which a token reads 5.58 MB")
        self.assertIn("The draft has the target's vocabulary.", text)


class BadFiles(CliTest):
    """Whatever is wrong with a file must end in exit code 2 and one sentence."""

    def setUp(self):
        super().setUp()
        self.model = Model(DRAFT)

    def write(self, **options):
        return self.model.write_gguf(self.folder / "m.gguf", KINDS["q8_0"], **options)

    def refuse_file(self, path, saying, commands=("run", "inspect")):
        for command in commands:
            prompt = ["x"] if command in ("run", "tokenize") else []
            modes = ["--modes", "trie"] if command in ("verify", "bench") else []
            self.refuse(command, *prompt, *modes, "-m", path, saying=saying)

    def test_damaged_files(self):
        data = self.write().read_bytes()
        path = self.folder / "damaged.gguf"
        every = ("run", "inspect", "tokenize", "bench", "verify", "serve", "chat")
        for length in (0, 3, 10, 100, 5000, len(data) // 2, len(data) - 1):
            path.write_bytes(data[:length])
            self.refuse_file(path, "damaged.gguf", every if length == 5000 else ("run",))
        self.refuse_file(path, "the file is truncated")
        path.write_bytes(b"GGML" + data[4:])
        self.refuse_file(path, "it does not begin with 'GGUF'", every)
        path.write_bytes(data[:4] + (7).to_bytes(4, "little") + data[8:])
        self.refuse_file(path, "has version 7 of GGUF; 2 and 3 are supported")
        # The kind of the last tensor, which stands before its offset at the end of the head.
        name = b"blk.1.ffn_down.weight"
        at = data.index(name) + len(name) + 4 + 2 * 8
        path.write_bytes(data[:at] + (99).to_bytes(4, "little") + data[at + 4:])
        self.refuse_file(path, "'blk.1.ffn_down.weight' is stored as the unknown type 99")
        path.write_bytes(data[:at] + (19).to_bytes(4, "little") + data[at + 4:])
        self.refuse_file(path, "is stored as IQ1_S, which is not supported")

    def test_tensors_and_keys(self):
        self.refuse_file(self.write(leave_out=("blk.1.attn_v.weight",)),
                         "lacks tensor blk.1.attn_v.weight of shape [32, 64]", ("run",))
        self.refuse_file(self.write(leave_out=("token_embd.weight",)),
                         "lacks tensor token_embd.weight")
        self.model.config["intermediate_size"] = 160
        self.refuse_file(self.write(), "tensor blk.0.ffn_gate.weight must have shape [160, 64] by "
                                       "the metadata but has [192, 64]", ("run",))
        self.model.config["intermediate_size"] = 0
        self.refuse_file(self.write(), "intermediate_size")

    def test_tokenizers(self):
        self.refuse_file(self.write(leave_out=("tokenizer",)), "tokenizer.ggml.model",
                         ("run", "inspect", "tokenize"))

        def without_merges(writer):
            writer.kv_data[0].pop("tokenizer.ggml.model")
            writer.add_tokenizer_model("gpt2")
            writer.kv_data[0].pop("tokenizer.ggml.pre")
            writer.add_tokenizer_pre("llama-bpe")

        self.refuse_file(self.write(change=without_merges), "merges",
                         ("run", "inspect", "tokenize"))

    def test_a_draft_of_another_vocabulary(self):
        def renamed(writer):
            tokens = writer.kv_data[0]["tokenizer.ggml.tokens"].value
            tokens[300:] = [b"another%d" % i for i in range(300, len(tokens))]

        draft = self.write(change=renamed)
        said = self.succeed("run", "x", "--mode", "sd", "-md", draft, "-n", 8)
        self.assertEqual(said.stdout, self.succeed("run", "x", "--mode", "ar", "-n", 8).stdout)
        self.assertIn("the draft drafts by text", said.stderr)
        self.refuse("run", "x", "--mode", "ssd", "-md", draft, saying="by text")

    def test_no_model_at_all(self):
        self.refuse_file(self.folder / "none.gguf", "none.gguf")
        self.refuse_file(TARGET / "config.json", "is not a GGUF file")


if __name__ == "__main__":
    unittest.main()
