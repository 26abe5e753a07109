#!/usr/bin/env python3
"""`foretoken rollout`: rollout_test.py PROGRAM SOURCE_DIRECTORY [TEST]...

Runs on the bundled models.
"""

import json
import signal
import subprocess
import time
import unittest

from command_line import CLEAN_ENVIRONMENT, MODELS, PROGRAM, CliTest

CAT = ("Tell me a story about a cat and a dog who live in a house near a big green park and like to "
       "play with a red ball until the sun goes down and it is time to go to bed.")
# What depends on how samples were decoded; all else is the same in every mode.
OF_THE_MODE = ("rounds", "proposed", "accepted")


def read(path):
    """The header, and each sample by prompt and number, without what depends on the mode."""
    header, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    samples = {}
    for line in lines:
        for key in OF_THE_MODE:
            del line[key]
        samples[line["prompt"], line["sample"]] = line
    assert len(samples) == len(lines), "a sample was written twice"
    return header, samples


class Rollout(CliTest):
    def setUp(self):
        super().setUp()
        self.prompts = self.folder / "prompts.jsonl"
        self.prompts.write_text("".join(json.dumps(line) + "\n" for line in (
            {"id": "cat", "prompt": CAT},
            {"id": 7, "messages": [{"role": "user", "content": "Tell me a story."}]},
            {"prompt": "What did the old bear do?"})))

    def rollout(self, name, *options, samples=6, batch=5):
        out = self.folder / name
        report = json.loads(self.succeed(
            "rollout", "--prompts", self.prompts, "-n", samples, "-o", out, "--max-tokens", 60,
            "--batch", batch, "--seed", 3, "--json", *options).stdout)
        return report, *read(out)

    def test_is_the_same_in_every_mode_and_batch(self):
        report, header, truth = self.rollout("ar", "--mode", "ar", batch=1)
        self.assertEqual(report["samples"], 18)
        self.assertEqual(report["left"], 0)
        self.assertEqual(set(truth), {(prompt, sample) for prompt in ("cat", 7, 3)
                                      for sample in range(6)})
        self.assertEqual(report["output_tokens"], sum(len(s["tokens"]) for s in truth.values()))
        self.assertEqual(report["rounds"], report["output_tokens"])
        for sample in truth.values():
            self.assertEqual(len(sample["logprobs"]), len(sample["tokens"]))
            self.assertAlmostEqual(sample["logprob"], sum(sample["logprobs"]), places=4)
            self.assertTrue(header["weights"].startswith(sample["weights"]))
        self.assertEqual(len({sample["seed"] for sample in truth.values()}), 18)
        self.assertGreater(len({sample["text"] for sample in truth.values()}), 15)
        for number, options in enumerate((
                (), ("--mode", "sd"), ("--mode", "ssd"), ("--mode", "trie"),
                ("--mode", "lookahead"), ("--mode", "ssd", "--fanout", "4,3,3,2,2,1,1"),
                ("--mode", "sd", "-k", 2),
                ("--mode", "ar", "--tail-mode", "sd"),
                ("--mode", "sssd", "--datastore", self.folder / "store", "--learn"))):
            with self.subTest(options=options):
                report, head, samples = self.rollout(f"{number}", *options)
                self.assertEqual(report["samples"], 18)
                self.assertEqual(samples, truth)
                self.assertEqual(head, header)
        self.assertGreater(report["cached_prompt_tokens"], 0)  # Siblings share the prompt.

    def test_is_what_run_gives(self):
        _, _, samples = self.rollout("out")
        sample = samples["cat", 4]
        run = json.loads(self.succeed(
            "run", "--chat", CAT, "-n", 60, "--temp", 1, "--seed", sample["seed"], "--json", "--logprobs", 0).stdout)
        self.assertEqual(sample["tokens"], run["tokens"])
        self.assertEqual(sample["text"], run["text"])
        self.assertEqual(sample["finish_reason"], run["finish_reason"])
        for ours, theirs in zip(sample["logprobs"], run["logprobs"]):
            self.assertAlmostEqual(ours, theirs["logprob"], places=6)

    def test_goes_on_with_what_is_there(self):
        _, header, truth = self.rollout("whole")
        lines = (self.folder / "whole").read_text().splitlines(keepends=True)
        part = self.folder / "part"
        part.write_text("".join(lines[:8]) + lines[8][:40])
        report, head, samples = self.rollout("part", "--mode", "ar")
        self.assertEqual((report["skipped"], report["samples"]), (7, 11))
        self.assertEqual((head, samples), (header, truth))
        report, _, samples = self.rollout("part")
        self.assertEqual((report["skipped"], report["samples"]), (18, 0))
        self.assertEqual(samples, truth)
        report, _, samples = self.rollout("part", samples=8)  # More of each.
        self.assertEqual((report["skipped"], report["samples"]), (18, 6))
        self.assertEqual({key: samples[key] for key in truth}, truth)

    def test_writes_what_is_done_when_interrupted(self):
        _, _, truth = self.rollout("whole", samples=64)
        out = self.folder / "part"
        command = [PROGRAM, "rollout", "--prompts", self.prompts, "-n", "64", "-o", out,
                   "--max-tokens", "60", "--batch", "5", "--seed", "3"]
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True,
                              env=CLEAN_ENVIRONMENT) as process:
            while not out.exists() or out.read_text().count("\n") < 4:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            said = process.communicate()[0]
        _, samples = read(out)
        self.assertTrue(samples.items() <= truth.items())
        if len(samples) < len(truth):  # Else it was too late.
            self.assertEqual(process.returncode, 1)
            self.assertIn(f"interrupted with {len(truth) - len(samples)} samples left", said)
        _, _, samples = self.rollout("part", samples=64)
        self.assertEqual(samples, truth)

    def test_prints_samples_where_no_file_is_named(self):
        lines = self.succeed("rollout", "--prompts", self.prompts, "-n", 2, "--max-tokens", 5)
        self.assertEqual(len(lines.stdout.splitlines()), 7)
        self.assertIn("6 samples of 3 prompts by demo-target", lines.stderr)

    def test_takes_jobs_with_other_weights(self):
        other = self.copy_model("demo-target")
        tuned = other / "model.safetensors"
        data = bytearray(tuned.read_bytes())
        data[-2000:] = bytes(2000)  # As if it had been trained.
        tuned.write_bytes(data)
        single = {}
        for name, target in (("old", MODELS / "demo-target"), ("new", other)):
            _, header, single[name] = self.rollout(name, "-m", target, "-md",
                                                   MODELS / "demo-draft", samples=2)
        jobs = [{"prompts": str(self.prompts), "out": str(self.folder / "1"), "samples": 2},
                {"prompts": str(self.prompts), "out": str(self.folder / "2"), "samples": 2,
                 "target": str(other)},
                {"prompts": "/nowhere", "out": str(self.folder / "3")},
                {"prompts": str(self.prompts), "out": str(self.folder / "4"), "samples": 2},
                {"prompts": str(self.prompts), "out": str(self.folder / "5"), "samples": 2,
                 "target": str(MODELS / "demo-target")}]
        with subprocess.Popen(
                [PROGRAM, "rollout", "--serve-jobs", "--max-tokens", "60", "--batch", "5",
                 "--seed", "3", "-m", MODELS / "demo-target", "-md", MODELS / "demo-draft"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=CLEAN_ENVIRONMENT) as process:
            answers = []
            for job in jobs:
                process.stdin.write(json.dumps(job) + "\n")
                process.stdin.flush()
                answers.append(json.loads(process.stdout.readline()))
            process.stdin.close()
        self.assertEqual(process.returncode, 1)  # A job failed.
        self.assertEqual([answer["job"] for answer in answers], [1, 2, 3, 4, 5])
        self.assertIn("cannot read the prompt file '/nowhere'", answers[2]["error"])
        for name, expected in (("1", "old"), ("2", "new"), ("4", "new"), ("5", "old")):
            self.assertEqual(read(self.folder / name)[1], single[expected], name)
        self.assertNotEqual(answers[0]["weights"], answers[1]["weights"])
        self.assertEqual(answers[0]["weights"], answers[4]["weights"])
        for answer in (answers[0], answers[1]):
            header, samples = read(self.folder / answer["out"])
            self.assertEqual(header["weights"], answer["weights"])
            self.assertTrue(all(answer["weights"].startswith(sample["weights"])
                                for sample in samples.values()))

    def test_refuses(self):
        out = self.folder / "out"
        self.rollout("out", samples=1)
        before = out.read_text()
        options = ("rollout", "--prompts", self.prompts, "-o", out, "--max-tokens", 60)
        self.refuse(*options, "--seed", 4, saying="holds samples made with seed 3 rather than 4")
        self.refuse(*options, "--seed", 3, "--temp", 0.5, saying="with temperature 1.0 rather")
        self.assertEqual(out.read_text(), before)
        notes = self.folder / "notes.txt"
        notes.write_text("mine\n")
        self.refuse("rollout", "-o", notes, saying="was not written by rollout")
        self.assertEqual(notes.read_text(), "mine\n")
        self.refuse("rollout", "--json", saying="give a file for them, -o")
        self.refuse("rollout", "--tail-mode", "warp", saying="'warp' is not a mode")
        self.refuse("rollout", "--tail-mode", "sd3", "--mode", "ar", saying="needs 3 draft models")
        self.refuse("rollout", "--lossy", "typical", saying="--lossy is not for rollout")
        self.refuse("rollout", "--prompts", self.folder / "none", saying="cannot read the prompt")


if __name__ == "__main__":
    unittest.main()
