#!/usr/bin/env python3
"""Drafters that read their target's states change no token: learned_drafters_test.py PROGRAM
SOURCE_DIRECTORY [TEST]...

The drafters are those of tests/golden/drafters, in every form in which they are published."""

import json
import os
import pathlib
import shutil
import sys
import unittest

from command_line import MODELS, CliTest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from letter_tokenizer import write_tokenizer

DRAFTERS = MODELS.parent / "tests/golden/drafters"
# Programs decode on the first of two cores, by default, and draft on the other. This long test has
# them the other way round, so that it and one that runs beside it keep both busy.
CORES = ("--target-cores", 1, "--draft-cores", 0) if os.sched_getaffinity(0) == {0, 1} else ()
PREFIX = "it was a cold day and all of them sat by the fire to hear the old tale of the sea; "
PROMPTS = [PREFIX + end for end in ("then", "one of them", "no")] + ["a b c d e f g a b c d e f g"]


def joined(*files):
    """A safetensors file with the tensors of several, each with what its names are to begin with."""
    header, data = {}, b""
    for path, prefix in files:
        file = path.read_bytes()
        length = 8 + int.from_bytes(file[:8], "little")
        for name, tensor in json.loads(file[8:length]).items():
            if name != "__metadata__":
                begin, end = tensor["data_offsets"]
                header[prefix + name] = tensor | {"data_offsets": [len(data) + begin, len(data) + end]}
        data += file[length:]
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


class LearnedDrafters(CliTest):
    def setUp(self):
        super().setUp()
        self.prompts = self.folder / "prompts.jsonl"
        self.prompts.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in PROMPTS))

    def models(self, drafter):
        """What `-m` and `-md` are for it: a layer that guesses further tokens lies with its target."""
        golden = json.loads((drafter / "golden.json").read_text())
        source = DRAFTERS.parent / golden["target"]
        draft = "self:mtp" if drafter.name.startswith("mtp-") else drafter
        if (drafter / "drafter.gguf").exists():
            draft = drafter / "drafter.gguf"
        folder = self.folder / "target"
        shutil.copytree(source, folder)
        write_tokenizer(folder)
        if draft == "self:mtp":
            both = joined(*((path / "model.safetensors", "") for path in (source, drafter)))
            (folder / "model.safetensors").write_bytes(both)
        return folder, draft

    def verify(self, drafter):
        self.verify_pair(drafter.name, *self.models(drafter))

    def verify_pair(self, name, target, draft):
        shared = ("verify", *CORES, "-m", target, "-md", draft, "--prompts", self.prompts,
                  "--raw", "--ignore-eos", "-n", 40, "--temps", "0,1", "--sampler-sets", "none",
                  "--preempt", 0.05, "--json", "-")
        for options in (("--modes", "sd,ssd", "--prefix-cache", "on,off", "--batches", "1,3"),
                        ("--modes", "sd,ssd", "--tree-width", 3, "--batches", "1,16"),
                        ("--modes", "ssd", "--draft-process", "--batches", "2")):
            report = json.loads(self.succeed(*shared, *options).stdout)
            self.assertTrue(report["identical"], (name, options))
            self.assertGreater(report["forced_preemptions"], 0)

    def test_pickled_tensors_are_read(self):
        target, draft = self.models(DRAFTERS / "eagle1")
        pickled = self.folder / "pickled"
        pickled.mkdir()
        shutil.copy(draft / "config.json", pickled)
        shutil.copy(DRAFTERS.parent / "torch/eagle1.bin", pickled / "pytorch_model.bin")
        self.verify_pair("pickled", target, pickled)
        said = [self.succeed("run", "a b c d", "-m", target, "-md", each, "--mode", "sd", "-n", 40,
                             "--ignore-eos", "--json").stdout for each in (draft, pickled)]
        rounds = [json.loads(each)["stats"]["rounds"] for each in said]
        self.assertEqual(rounds[0], rounds[1])

    def test_heads_among_the_tensors_of_a_model(self):
        target, draft = self.models(DRAFTERS / "medusa-two-blocks")
        weights = target / "model.safetensors"
        weights.write_bytes(joined((weights, ""), (draft / "medusa_lm_head.safetensors",
                                                   "medusa_head.")))
        self.verify_pair("medusa-2", target, "self:medusa")
        shown = json.loads(self.succeed("inspect", target, "-md", "self:medusa", "--no-measuring",
                                        "--json").stdout)
        self.assertEqual(shown["draft"]["heads"], 5)
        self.assertIn("may draft for it", shown["not_used"][0])
        said = [json.loads(self.succeed("run", "a b c d", "-m", target, "-md", each, "--mode", "sd",
                                        "-n", 40, "--ignore-eos", "--json").stdout)["stats"]["rounds"]
                for each in (draft, "self:medusa")]
        self.assertEqual(said[0], said[1])

    def test_heads_in_a_file_beside_a_model(self):
        target, draft = self.models(DRAFTERS / "medusa")
        self.refuse("run", "a", "-m", target, "-md", "self:medusa", "-n", 2, "--mode", "sd",
                    saying="has no heads of Medusa beside the model")
        shutil.copy(draft / "medusa_lm_head.pt", target)
        self.verify_pair("medusa beside a model", target, "self:medusa")

    def test_a_model_that_reads_masks(self):
        target, draft = self.folder / "target", self.folder / "draft"
        shutil.copytree(DRAFTERS / "target", target)
        shutil.copytree(DRAFTERS.parent / "parallel/pard", draft)
        write_tokenizer(target)
        write_tokenizer(draft)
        self.verify_pair("pard", target, draft)
        texts = {self.succeed("run", "a b", "-m", target, "-md", draft, "--mode", mode, "-n", 40,
                              "--ignore-eos").stdout for mode in ("ar", "auto")}
        self.assertEqual(len(texts), 1)

    def test_sampler_options_and_grammars_hold_for_every_node(self):
        grammar = self.folder / "words.gbnf"
        grammar.write_text('root ::= word (" " word)*\nword ::= [a-m] [a-z]? [n-z]\n')
        options = ("none,top-k=5+top-p=0.9,repeat-penalty=1.3+frequency-penalty=0.4",
                   ("--grammar", grammar))
        for name in ("eagle1", "eagle3", "mtp-qwen3_5", "dflash", "dspark-speculators",
                     "peagle-speculators", "medusa", "hydra"):
            shutil.rmtree(self.folder / "target", ignore_errors=True)
            target, draft = self.models(DRAFTERS / name)
            for sets, more in ((options[0], ("--ignore-eos",)), ("none", options[1])):
                report = json.loads(self.succeed(
                    "verify", *CORES, "-m", target, "-md", draft, "--prompts", self.prompts,
                    "--raw", "-n", 40, "--temps", "0,0.8", "--sampler-sets", sets, "--modes",
                    "sd,ssd", "--tree-width", 3, "--batches", "1,3", "--preempt", 0.05,
                    "--prefix-cache", "on", "--json", "-", *more).stdout)
                self.assertTrue(report["identical"], (name, sets, more))

    def test_inspect_shows_them(self):
        target, draft = self.models(DRAFTERS / "eagle3")
        shown = json.loads(self.succeed("inspect", target, "-md", draft, "--no-measuring",
                                        "--json").stdout)["draft"]
        config = json.loads((draft / "config.json").read_text())
        self.assertEqual(shown["drafted_tokens"], config["draft_vocab_size"])
        self.assertEqual(shown["target_tokens"], config["vocab_size"])
        self.assertEqual(shown["tap_bytes_per_token"], 3 * 32 * 2)
        self.assertEqual(shown["shared"], ["embeddings"])
        text = self.succeed("inspect", target, "-md", draft, "--no-measuring").stdout
        self.assertIn("192 bytes a token", text)

    def test_inspect_shows_heads(self):
        target, draft = self.models(DRAFTERS / "medusa")
        shown = json.loads(self.succeed("inspect", target, "-md", draft, "--no-measuring",
                                        "--json").stdout)["draft"]
        self.assertEqual((shown["layers"], shown["positions_per_pass"], shown["shared"]), (0, 5, []))
        self.assertEqual(shown["parameters"], 5 * 32 * (33 + 128))
        self.assertIn("medusa_num_heads is 2, but the tensors have 5", shown["notes"][0])
        self.refuse("run", "a", "-m", MODELS / "demo-target", "-md", draft, "-n", 2, "--mode", "sd",
                    saying="tensor 0.1.weight is [128, 32], but of heads for this target [2048, 256]")

    def test_inspect_shows_what_the_token_before_adds(self):
        target, draft = self.models(DRAFTERS / "dspark")
        shown = json.loads(self.succeed("inspect", target, "-md", draft, "--no-measuring",
                                        "--json").stdout)["draft"]
        self.assertEqual((shown["markov_rank"], shown["says_confidence"], shown["shared"]),
                         (12, True, []))
        text = self.succeed("inspect", target, "-md", draft, "--no-measuring").stdout
        self.assertIn("adds to logits, by 12 numbers", text)
        self.assertIn("says how likely tokens are to be accepted", text)
    def test_inspect_shows_heads_in_sequence(self):
        target, draft = self.models(DRAFTERS / "hydra-prefix")
        shown = json.loads(self.succeed("inspect", target, "-md", draft, "--no-measuring",
                                        "--json").stdout)["draft"]
        self.assertEqual((shown["kind"], shown["layers"], shown["heads"], shown["shared"]),
                         ("heads of Hydra behind a layer", 1, 6, ["embeddings"]))
        self.refuse("run", "a", "-m", MODELS / "demo-target", "-md", draft, "-n", 2, "--mode", "sd",
                    saying="hydra_lm_head.0.1.weight is [128, 32], but of heads for this target")

    def test_say_the_most_frequent_tokens_only(self):
        text = self.folder / "text.txt"
        text.write_text(" ".join(PROMPTS))
        for name in ("eagle1", "eagle3-whole", "mtp-qwen3_5", "medusa", "hydra-prefix", "dspark"):
            shutil.rmtree(self.folder / "target", ignore_errors=True)
            target, draft = self.models(DRAFTERS / name)
            ranking = self.folder / "ranking.txt"
            self.succeed("datastore", "rank", "-m", target, text, "-o", ranking)
            report = json.loads(self.succeed(
                "verify", "-m", target, "-md", draft, "--draft-vocab", f"{ranking}:12", "--prompts",
                self.prompts, "--raw", "--ignore-eos", "-n", 40, "--temps", "0,1", "--sampler-sets",
                "none", "--modes", "sd,ssd", "--batches", "2", "--json", "-").stdout)
            self.assertTrue(report["identical"], name)
        shutil.rmtree(self.folder / "target")
        target, draft = self.models(DRAFTERS / "eagle3")
        self.refuse("run", "a", "-m", target, "-md", draft, "--draft-vocab", f"{ranking}:12",
                    "--mode", "sd", "-n", 2, saying="is not limited further")

    def test_wrong_pairs_are_refused(self):
        target, draft = self.models(DRAFTERS / "eagle3")
        self.refuse("run", "a", "-m", draft, "-n", 2,
                    saying="is no model but a drafter that reads the states of one")
        self.refuse("run", "a", "-m", DRAFTERS / "eagle3-gguf/drafter.gguf", "-n", 2,
                    saying="is no model but a drafter that reads the states of one")
        self.refuse("run", "a", "-m", MODELS / "demo-target", "-md", draft, "-n", 2, "--mode", "sd",
                    saying="is for a target whose hidden_size is 32, but this one's is 256")
        self.refuse("run", "a", "-m", target, "-md", "self:mtp", "-n", 2, "--mode", "sd",
                    saying="has no layer that guesses further tokens")
        self.refuse("bench", "--synthetic", "llama-135m", "--draft", draft, "--modes", "sd",
                    saying="the target has random weights")


for path in sorted(DRAFTERS.iterdir()):
    if (path / "golden.json").exists():
        setattr(LearnedDrafters, f"test_{path.name}".replace("-", "_"),
                lambda self, path=path: self.verify(path))


if __name__ == "__main__":
    unittest.main()
