#!/usr/bin/env python3
"""The foretoken program as its users meet it: cli_test.py PROGRAM SOURCE_DIRECTORY [TEST]...

Runs on the bundled models.
"""

import json
import os
import pty
import signal
import subprocess
import time
import unittest

from command_line import MODELS, PROGRAM, CliTest

ESCAPE = "\x1b"


class GoodInput(CliTest):
    def test_help_of_every_command(self):
        top = self.succeed("--help").stdout
        for command in ("run", "chat", "demo", "bench", "verify", "inspect", "devices", "plan",
                        "calibrate"):
            self.assertIn(f"  {command} ", top)
            self.assertIn("Usage: foretoken " + command, self.succeed(command, "--help").stdout)
        self.assertNotIn("speculator", top)

    def test_run_gives_the_same_text_in_every_mode(self):
        for options in ([], ["--temp", "0.9", "--seed", "5"], ["--chat", "--temp", "0.7"]):
            texts = set()
            for mode in (["ar"], ["sd"], ["ssd"], ["ssd", "--draft-process"],
                         ["ssd", "--fallback", "ngram"], ["ssd", "--fallback", "none"],
                         ["ssd", "--fallback", "retrieval"], ["ssd", "--fallback", "auto"],
                         ["ssd", "--fanout", "planned", "--cache-budget", 14],
                         ["ssd", "--fanout", "geometric", "--fallback", "random"],
                         ["ssd", "-k", 2, "--fanout", "4,2,3", "--fanout-after-fallback", 2],
                         ["auto"], ["auto", "--fanout", "uniform:2", "-k", 3]):
                result = self.succeed("run", "Once upon a time", "-n", 48, *options,
                                      "--mode", *mode)
                self.assertRegex(result.stderr, r"(?m)^(ar|sd|ssd|auto): \d+ tokens, [\d.]+ tokens/s")
                texts.add(result.stdout)
            self.assertEqual(len(texts), 1, texts)
            self.assertGreater(len(texts.pop()), 40)

    def test_run_continues_raw_text_where_it_stopped(self):
        out = self.succeed("run", "Once upon a time, there was a little", "-n", 4).stdout
        self.assertTrue(out.startswith(" "), out)

    def test_run_reads_standard_input_and_writes_json(self):
        result = self.succeed("run", "--json", "--logprobs", 2, "-n", 16, stdin="Lily had a\n")
        report = json.loads(result.stdout)
        self.assertEqual(len(report["tokens"]), 16)
        self.assertEqual(report["finish_reason"], "max_tokens")
        self.assertEqual(report["stats"]["output_tokens"], 16)
        self.assertEqual(len(report["logprobs"]), 16)
        for token, entry in zip(report["tokens"], report["logprobs"]):
            self.assertEqual(entry["token"], token)
            self.assertEqual(entry["top"][0]["token"], token)  # Greedy.

    def test_stop_strings_never_show(self):
        full = self.succeed("run", "Once upon a time", "-n", 60).stdout
        self.assertIn("Lily", full)
        cut = self.succeed("run", "Once upon a time", "-n", 60, "--stop", "Lily").stdout
        self.assertEqual(cut.strip(), full[:full.index("Lily")].strip())

    def test_demo_agrees_in_every_mode(self):
        report = json.loads(self.succeed("demo", "--json", "-n", 64).stdout)
        self.assertEqual([mode["mode"] for mode in report["modes"]], ["ar", "sd", "ssd"])
        self.assertTrue(all(mode["identical"] for mode in report["modes"]))
        self.assertTrue(all(mode["tokens_per_s"] > 0 for mode in report["modes"]))
        self.assertTrue(all(text["text"] for text in report["texts"]))

    def test_demo_colours_only_where_it_may(self):
        self.assertNotIn(ESCAPE, self.succeed("demo", "-n", 8).stdout)
        self.assertIn(ESCAPE, self.succeed("demo", "-n", 8, "--color", "always").stdout)

    def test_inspect(self):
        target = MODELS / "demo-target"
        text = self.succeed("inspect", target, "-md", MODELS / "demo-draft").stdout
        self.assertIn("LlamaForCausalLM", text)
        self.assertIn("The draft has the target's vocabulary.", text)
        report = json.loads(self.succeed("inspect", target, "--json").stdout)
        config = json.loads((target / "config.json").read_text())
        self.assertEqual(report["layers"], config["num_hidden_layers"])
        self.assertEqual(report["memory"]["kv_bytes_per_sequence"],
                         report["memory"]["kv_bytes_per_token"] * report["context"])
        self.assertEqual(report["tokenizer"]["kind"], "SentencePiece")
        self.assertEqual(len(report["tokenizer"]["fingerprint"]), 64)

    def test_auto_is_the_default(self):
        story = ("run", "Once upon a time", "-n", 32, "--temp", 1, "--seed", 3)
        plain = self.succeed(*story, "--mode", "ar").stdout
        for options in ([], ["-m", MODELS / "demo-target"]):  # Without a draft too.
            result = self.succeed(*story, *options)
            self.assertEqual(result.stdout, plain)
            self.assertIn("auto: ", result.stderr)

    def test_run_learns_into_a_datastore(self):
        store = self.folder / "store"
        story = ("run", "-n", 48, "--mode", "sssd", "--json", "-p", "Once upon a time,")
        first = json.loads(self.succeed(*story, "--datastore", store, "--learn").stdout)
        second = json.loads(self.succeed(*story, "--datastore", store).stdout)
        plain = json.loads(self.succeed(*story[:4], "ar", *story[5:]).stdout)
        self.assertEqual(first["text"], plain["text"])
        self.assertEqual(second["text"], plain["text"])
        # What was learned is proposed again: a repeat takes far fewer rounds.
        self.assertLess(second["stats"]["rounds"], first["stats"]["rounds"] / 2)
        self.refuse(*story, "--learn", saying="--datastore")

    def test_every_command_takes_a_datastore(self):
        store = ("--datastore", self.folder / "store", "--learn")
        prompts = self.folder / "prompts.txt"
        prompts.write_text("Once upon a time\n\nOne day, a small dragon\n\nOnce upon a time\n")
        report = json.loads(self.succeed(
            "bench", "--prompts", prompts, "-n", 40, "--modes", "ar,sssd,rest,trie,ssd",
            "--only-target-cores", "--fallback", "retrieval", "--speculation-length", 16,
            "--json", "-", *store).stdout)
        modes = {mode["mode"]: mode for mode in report["sets"][0]["modes"]}
        for name in ("sssd", "rest", "trie", "ssd"):
            self.assertTrue(modes[name]["identical"], name)
        # The third prompt is the first one again, whose output has been learned since.
        self.assertGreater(modes["rest"]["acceptance_length"], 1.2)

        report = json.loads(self.succeed("bench", "--prompts", prompts, "--limit", 1, "-n", 4,
                                         "--modes", "sssd", "--speculation-length", "auto",
                                         "--json", "-").stdout)
        self.assertGreaterEqual(report["meta"]["knee_rows"]["sssd"], 1)

        report = json.loads(self.succeed(
            "bench", "--prompts", prompts, "-n", 24, "--modes", "ar,ssd", "--only-target-cores",
            "--compare-fallbacks", "none,retrieval,jit", "-b", 2, "--json", "-", *store).stdout)
        modes = {mode["mode"]: mode for mode in report["sets"][0]["modes"]}
        self.assertEqual(set(modes), {"ar", "ssd/none", "ssd/retrieval", "ssd/jit"})
        self.assertTrue(all(mode["identical"] for name, mode in modes.items() if name != "ar"))
        self.assertEqual(modes["ssd/none"]["fallbacks"], 0)
        self.refuse("bench", "--modes", "ar", "--compare-fallbacks", "none", saying="mode ssd")
        self.refuse("bench", "--compare-fallbacks", "none,magic", saying="'magic' is not a fallback")

        verified = json.loads(self.succeed(
            "verify", "--prompts", prompts, "-n", 32, "--modes", "sssd,rest,trie,ssd", "--batches",
            "1,3", "--temps", "0,0.8", "--sampler-sets", "none", "--speculation-length", 12,
            "--json", "-", *store).stdout)
        self.assertTrue(verified["identical"])

        chat = self.succeed("chat", "--temp", 0, "-n", 24, "--mode", "sssd", *store,
                            stdin="Tell me a story.\n/mode rest\n/reset\nTell me a story.\n").stdout
        self.assertIn("mode rest", chat)
        refusals = [("--mode", "rest"), ("--namespace", "alice"), ("--learn",)]
        for command in ("chat", "run"):
            for arguments in refusals:
                self.refuse(command, *arguments, saying="--datastore DIR")
        self.refuse("bench", "--modes", "rest", saying="--datastore DIR")
        self.refuse("verify", "--learn", saying="--datastore DIR")
        for length in ("1", "65", "many"):
            self.refuse("run", "--speculation-length", length, "-p", "x", saying="from 2 to 64")

    def test_bench_reports_every_mode(self):
        prompts = self.folder / "prompts.jsonl"
        prompts.write_text('{"prompt": "Tell me a story about a dragon."}\n'
                           '{"turns": ["Tell me a story about a cat."]}\n'
                           '{"question": "Tell me a story about the sea."}\n')
        page = self.folder / "report.html"
        data = self.folder / "report.json"
        table = self.succeed("bench", "--prompts", prompts, "-n", 24, "--batch", 2,
                             "--html", page, "--json", data).stdout
        self.assertIn("speed-up [95% CI]", table)
        self.assertIn("<svg", page.read_text())
        report = json.loads(data.read_text())
        self.assertEqual(report["meta"]["acceptance"], "real")
        modes = {mode["mode"]: mode for mode in report["sets"][0]["modes"]}
        self.assertTrue({"ar", "sd", "ssd"} <= set(modes))
        for name, mode in modes.items():
            self.assertEqual(mode["requests"], 3)
            self.assertGreater(mode["tokens_per_s"]["median"], 0)
            self.assertEqual(mode["identical"], None if name == "ar" else True)
        self.assertGreater(modes["sd"]["acceptance_length"], 1)
        self.assertIsNotNone(modes["ssd"]["hit_rate"]["at_k"])

    def test_bench_claims_no_equality_under_rejection(self):
        table = self.succeed("bench", "--limit", 2, "-n", 24, "--temp", 1, "--verify", "rejection",
                             "--modes", "ar,sd", "--only-target-cores").stdout
        self.assertIn("n/a", table)

    def test_bench_labels_scripts(self):
        result = self.succeed("bench", "--synthetic", "draft-12m", "--draft-synthetic",
                              "draft-12m", "--scripted-acceptance", "0.8,0.9", "--limit", 2,
                              "--prompt-tokens", 16, "-n", 12, "--json", "-")
        report = json.loads(result.stdout)
        self.assertEqual(report["meta"]["acceptance"], "scripted")
        self.assertEqual(report["meta"]["weights"], "random")
        self.assertTrue(all(mode["identical"] is None for mode in report["sets"][0]["modes"]))

    def test_verify_finds_no_difference(self):
        data = self.folder / "report.json"
        text = self.succeed("verify", "--limit", 2, "-n", 32, "--batches", "1,3", "--temps",
                            "0,1.0", "--prefix-cache", "on,off", "--preempt", "0.05",
                            "--speculator-delay-us", 50, "--json", data).stdout
        self.assertIn("forced preemptions", text)
        report = json.loads(data.read_text())
        self.assertTrue(report["identical"])
        self.assertEqual(len(report["configurations"]), 3 * 2 * 2 * 2 * 3)
        self.assertTrue(all(row["identical"] == row["of"] for row in report["configurations"]))

    def test_verify_survives_killed_speculators(self):
        result = self.succeed("verify", "--modes", "ssd", "--kill-speculator", "--limit", 4,
                              "-n", 96, "--batches", "1", "--temps", "0.7", "--sampler-sets",
                              "none", "--json", "-")
        report = json.loads(result.stdout)
        self.assertTrue(report["identical"])
        self.assertGreater(report["speculators_killed"], 0)
        self.assertIn("warning", result.stderr)

    def test_chat_through_a_pipe(self):
        out = self.succeed("chat", "--temp", 0, "-n", 40,
                           stdin="/help\nTell me a story about a dragon.\n/stats\n/mode ar\n"
                                 "/set temp 0.5\n/set temp warm\nAnd then?\n/what\n/quit\n").stdout
        for part in ("/reset", "tokens/s", "1 replies", "mode ar", "temp is now 0.5",
                     "write it like", "no command /what"):
            self.assertIn(part, out)

    def test_chat_outlives_ctrl_c(self):
        master, slave = pty.openpty()
        process = subprocess.Popen([PROGRAM, "chat", "--color", "never"], stdin=slave,
                                   stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        seen = b""

        def wait_for(text):
            nonlocal seen
            while text not in seen:
                seen += os.read(master, 4096)
            seen = seen[seen.index(text) + len(text):]

        wait_for(b"> ")
        process.send_signal(signal.SIGINT)
        wait_for(b"leaves)")
        wait_for(b"> ")
        os.write(master, b"Tell me a story about a dragon.\n")
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        wait_for(b"> ")
        os.write(master, b"/quit\n")
        self.assertEqual(process.wait(timeout=30), 0)
        os.close(master)


if __name__ == "__main__":
    unittest.main(verbosity=2)
