#!/usr/bin/env python3
"""The foretoken program as its users meet it: cli_test.py PROGRAM SOURCE_DIRECTORY [TEST]...

Runs on the bundled models. Whatever is wrong with the input must end in exit code 2 and one
sentence on standard error.
"""

import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = ""
MODELS = pathlib.Path()
ESCAPE = "\x1b"


def foretoken(*arguments, stdin="", environment=None, timeout=120):
    return subprocess.run([PROGRAM, *map(str, arguments)], input=stdin, text=True,
                          capture_output=True, timeout=timeout,
                          env={**os.environ, "NO_COLOR": "", **(environment or {})})


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_e2e."))
        self.addCleanup(shutil.rmtree, self.folder)

    def succeed(self, *arguments, **options):
        result = foretoken(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refuse(self, *arguments, saying, **options):
        result = foretoken(*arguments, **options)
        self.assertEqual(result.returncode, 2, (arguments, result.stdout, result.stderr))
        self.assertEqual(result.stdout, "", arguments)
        self.assertRegex(result.stderr, r"\Aforetoken: [^\n]+\n\Z", arguments)
        self.assertIn(saying, result.stderr, arguments)

    def copy_model(self, name):
        copy = self.folder / name
        shutil.copytree(MODELS / name, copy)
        return copy


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

    def test_calibrate_feeds_plan(self):
        measured = self.folder / "calibration.json"
        page = self.folder / "page.html"
        table = self.succeed("calibrate", "--limit", 1, "-n", 24, "-k", 3, "--temps", "0.7",
                             "--saguaro-cs", "0.3,1", "-o", measured, "--html", page).stdout
        self.assertIn("0.7", table)
        calibration = json.loads(measured.read_text())
        self.assertEqual([(setting["verifier"], setting["saguaro_c"])
                          for setting in calibration["settings"]],
                         [("shared-noise", 1), ("rejection", 1), ("rejection", 0.3)])
        setting = calibration["settings"][0]
        self.assertEqual(len(calibration["settings"][2]["draft"]["hit_partial"]), 3)
        hits = setting["draft"]["hit_partial"]
        self.assertEqual(hits, sorted(hits))
        self.assertTrue(0 < setting["draft"]["acceptance"][0] < 1)
        self.assertIn("Figure 4", page.read_text())
        self.assertIn("b* ", self.succeed("plan", "--calibration", measured).stdout)
        plan = json.loads(self.succeed("plan", "--calibration", measured, "--verify", "rejection",
                                       "--json", "-").stdout)
        self.assertEqual({plan["saguaro_c"] for plan in plan["tables"][0]["plans"]
                          if plan["mode"] == "ssd"}, {0.3, 1})
        again = self.folder / "again.json"
        self.succeed("calibrate", "--limit", 1, "-n", 24, "-k", 3, "--rates-of", measured,
                     "-o", again)
        self.assertEqual(json.loads(again.read_text())["settings"], calibration["settings"])
        self.refuse("calibrate", "--rates-of", measured, "--temps", "1", saying="--rates-of")
        self.refuse("calibrate", "--rates-of", page, "--limit", 1, saying=str(page))
        self.refuse("calibrate", "--saguaro-cs", "1.5", saying="is not a C from 0 to 1")
        self.refuse("calibrate", "--temps", "warm", saying="is not a temperature")

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

    def test_plan_simulates_the_papers_setting(self):
        page = self.folder / "plan.html"
        options = ["plan", "--simulate", "--lookahead", 6, "--fanout", 3, "--fallback", "jit",
                   "--sweep", "devices", "--batch", 1, "--rounds", 2000]
        report = json.loads(self.succeed(*options, "--json", "-", "--html", page).stdout)
        speed = {mode["mode"]: mode["tokens_per_s"] for mode in report["modes"]}
        self.assertAlmostEqual(speed["ar"], 54.7, delta=0.5)
        self.assertAlmostEqual(speed["sd"], 161.8, delta=10)
        self.assertAlmostEqual(speed["ssd, whole cache"], 255.8, delta=20)
        self.assertEqual([run["draft_devices"] for run in report["devices"]],
                         2 * [1, 2, 3, 4, 6, 8])
        html = page.read_text()
        self.assertIn("<svg", html)
        self.assertNotIn("http", html)
        self.assertEqual(report, json.loads(self.succeed(*options, "--json", "-").stdout))
        self.assertIn("ssd, anytime", self.succeed(*options).stdout)

    def test_plan_simulates_given_numbers(self):
        options = ["plan", "--simulate", "--target-ms", "1:10,8:10,64:20", "--draft-ms", 1,
                   "--acceptance", "0.8,0.7", "--hit", "0.6,0.7,0.75", "--sweep", "none"]
        report = json.loads(self.succeed(*options, "--json", "-").stdout)
        self.assertAlmostEqual(report["modes"][0]["tokens_per_s"], 100)
        self.assertGreater(report["modes"][3]["tokens_per_s"], report["modes"][1]["tokens_per_s"])
        self.assertEqual(report["devices"] + report["frontier"] + report["pool"], [])

    def test_plan_shows_the_roofline(self):
        page = self.folder / "roofline.html"
        options = ["plan", "--roofline", "--html", page, "--json", "-"]
        report = json.loads(self.succeed(*options).stdout)
        self.assertAlmostEqual(report["meta"]["knee"], 173.7, delta=0.1)  # SSSD, Appendix B.
        self.assertEqual(int(report["meta"]["free_s_q"]), 21)
        self.assertEqual(len(report["ops"]), 8)
        self.assertIn("<svg", page.read_text())
        own = json.loads(self.succeed("plan", "--roofline", "--model-shape",
                                      MODELS / "demo-target", "--flops", 1e12, "--bandwidth",
                                      15e9, "--batch", 1, "--json", "-").stdout)
        self.assertAlmostEqual(own["meta"]["knee"], 66.7, delta=0.1)

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


class BadInput(CliTest):
    def test_plan(self):
        simulate = ["plan", "--simulate", "--sweep", "none"]
        numbers = ["--target-ms", 10, "--draft-ms", 1, "--acceptance", "0.8", "--hit", "0.6"]
        self.refuse(*simulate, "--target-ms", 10, saying="--draft-ms is missing")
        self.refuse(*simulate, "--preset", "paper-7b", saying="paper-70b, paper-32b")
        self.refuse(*simulate, *numbers[:6], "--hit", "1.6", saying="--hit: 1.6 is not in 0 .. 1")
        self.refuse(*simulate, "--target-ms", "1:10,8", *numbers[2:], saying="'8' is not X:VALUE")
        self.refuse(*simulate, "--target-ms", "8:10,1:9", *numbers[2:], saying="ascend")
        self.refuse(*simulate, "--target-ms", "0", *numbers[2:], saying="positive")
        self.refuse(*simulate, *numbers, "--fallback", "ngram", saying="--ngram-acceptance")
        self.refuse(*simulate, *numbers, "--fallback", "retrieval", saying="retrieval")
        self.refuse(*simulate, *numbers, "--fanout", "16", saying="--fanout: 16 is not in 1 .. 15")
        self.refuse(*simulate, *numbers, "--lookahead", "2.5", saying="--lookahead: '2.5'")
        self.refuse(*simulate[:2], "--sweep", "batch", saying="frontier")
        self.refuse("plan", "--simulate", "--roofline", saying="--roofline")
        self.refuse(*simulate, "--cache-budget", 21, saying="--cache-budget is for predictions")
        self.refuse(*simulate, "--ranks", 2, saying="--ranks is for --roofline")
        self.refuse("plan", "--sweep", "none", saying="--sweep is for --simulate")
        self.refuse("plan", "--roofline", "--hit", "0.6", saying="--hit is for predictions")
        roofline = ["plan", "--roofline"]
        self.refuse(*roofline, "--flops", "1e12", saying="give both")
        self.refuse(*roofline, "--device", "abacus", saying="h100")
        self.refuse(*roofline, "--model-shape", "llama-9z", saying="llama-8b")
        self.refuse(*roofline, "--accepted", "8:2,4:1", saying="ascend")

    def test_usage(self):
        self.refuse(saying="A subcommand is required")
        self.refuse("fly", saying="fly")
        self.refuse("run", "--warp", "x", saying="--warp")
        self.refuse("run", "x", "--lookahead", 0, saying="--lookahead")
        self.refuse("run", "x", "--mode", "warp", saying="--mode")
        self.refuse("run", "x", "--fanout", "flat", saying="is not a fan-out")
        self.refuse("run", "x", "--mode", "ssd", "--cache-budget", 6, saying="7 to 105")
        self.refuse("run", "x", "--saguaro-c", "2", "--verify", "rejection", saying="--saguaro-c")
        self.refuse("run", "x", "--cache-order", "noise", saying="--verify rejection")
        self.refuse("run", "x", "--mode", "sd", "--fallback", "jit", saying="modes ssd and auto")
        self.refuse("run", "x", "-n", "many", saying="--max-tokens")
        self.refuse("run", "x", "--temp=-1", saying="temperature")
        self.refuse("run", "x", "--top-p", "2", saying="top")
        self.refuse("run", "x", "--logit-bias", "3", saying="ID:VALUE")
        self.refuse("run", "x", "--logit-bias", "99999:1", saying="99999")
        self.refuse("run", "x", "--target-cores", "4000", saying="4000")
        self.refuse("run", "x", "--context", "100000", saying="limit of 512")
        self.refuse("run", saying="the prompt is empty")
        self.refuse("run", "-f", self.folder / "none.txt", saying="none.txt")
        self.refuse("verify", "--temps", "hot", saying="hot")
        self.refuse("verify", "--sampler-sets", "top-q=1", saying="top-q")
        self.refuse("bench", "--synthetic", "llama-9z", saying="llama-135m")
        self.refuse("bench", "--scripted-acceptance", "2", saying="from 0 to 1")

    def test_prompt_files(self):
        self.refuse("bench", "--prompts", self.folder / "none.jsonl", saying="none.jsonl")
        broken = self.folder / "broken.jsonl"
        broken.write_text('{"prompt": "a"}\n{"prompt": \n')
        self.refuse("verify", "--prompts", broken, saying="broken.jsonl:2")
        empty = self.folder / "empty.txt"
        empty.write_text("\n\n")
        self.refuse("bench", "--prompts", empty, saying="holds no prompt")

    def test_prompt_longer_than_the_context(self):
        self.refuse("run", stdin="word " * 600, saying="tokens")
        self.refuse("run", "one two three four five six seven eight", "-c", 4, saying="holds 4")

    def test_missing_folder_and_files(self):
        self.refuse("inspect", self.folder / "none", saying="none")
        self.refuse("run", "x", "-m", self.folder / "none", saying="none")
        self.refuse("inspect", __file__, saying="cli_test.py")
        for name in ("config.json", "model.safetensors", "tokenizer.model"):
            model = self.copy_model("demo-draft")
            (model / name).unlink()
            self.refuse("run", "x", "-m", model, saying="demo-draft")
            self.refuse("inspect", model, saying="demo-draft")
            shutil.rmtree(model)

    def test_no_draft_for_a_mode_that_needs_one(self):
        self.refuse("run", "x", "-m", MODELS / "demo-target", "--mode", "ssd", saying="--draft")
        self.refuse("bench", "-m", MODELS / "demo-target", "--modes", "ar,sd", saying="--draft")

    def test_broken_configuration(self):
        model = self.copy_model("demo-draft")
        config = json.loads((model / "config.json").read_text())
        for change in ({"hidden_size": -1}, {"num_attention_heads": 3}, {"hidden_size": 1 << 40},
                       {"vocab_size": "many"}, {"hidden_act": "tanh"},
                       {"architectures": ["GPT2LMHeadModel"]}, {"num_hidden_layers": 3},
                       {"intermediate_size": 100}):
            (model / "config.json").write_text(json.dumps({**config, **change}))
            self.refuse("run", "x", "-m", model, saying="")
        for text in ("", "{", "[]", "\x00"):
            (model / "config.json").write_text(text)
            self.refuse("inspect", model, saying="config.json")

    def test_truncated_weights(self):
        model = self.copy_model("demo-draft")
        weights = (model / "model.safetensors").read_bytes()
        header = int.from_bytes(weights[:8], "little")
        for size in (0, 4, 8, 100, 8 + header, len(weights) // 2, len(weights) - 1):
            (model / "model.safetensors").write_bytes(weights[:size])
            self.refuse("inspect", model, saying="model.safetensors")
            self.refuse("run", "x", "-m", model, saying="model.safetensors")
        for length in (0, header // 2, 1 << 63, (1 << 64) - 1):
            (model / "model.safetensors").write_bytes(length.to_bytes(8, "little") + weights[8:])
            self.refuse("run", "x", "-m", model, saying="model.safetensors")

    def test_broken_tokenizer(self):
        model = self.copy_model("demo-draft")
        pieces = (model / "tokenizer.model").read_bytes()
        for content in (b"", b"nonsense", pieces[:1000]):
            (model / "tokenizer.model").write_bytes(content)
            self.refuse("run", "x", "-m", model, saying="")

    def test_draft_of_another_vocabulary(self):
        draft = self.copy_model("demo-draft")
        pieces = (draft / "tokenizer.model").read_bytes()
        self.assertEqual(pieces.count(b"dragon"), 1)
        (draft / "tokenizer.model").write_bytes(pieces.replace(b"dragon", b"wyvern"))
        for mode in ("sd", "ssd"):
            self.refuse("run", "x", "-m", MODELS / "demo-target", "-md", draft, "--mode", mode,
                        saying="wyvern")
        result = foretoken("inspect", MODELS / "demo-target", "--draft", draft)
        self.assertEqual(result.returncode, 2)
        self.assertIn("wyvern", result.stderr)


class Plan(CliTest):
    NUMBERS = ("--target-ms", "1:10,8:10.5,16:12", "--draft-ms", "1:1,32:1.5",
               "--acceptance", "0.8,0.75", "--hit", "0.6,0.7,0.75", "--hit-at-end", "0.8,0.9")

    def calibration(self):
        """A calibration file that holds for this machine, as text for JSON."""
        machine = json.loads(self.succeed("devices", "--json", "--no-measuring").stdout)

        def count(cores):
            bounds = [part.split("-") for part in cores.split(",")]
            return sum(int(part[-1]) - int(part[0]) + 1 for part in bounds)

        table = {"rows": [1, 8], "contexts": [128], "us": [10000, 10500]}
        draft = {"rows": [1, 32], "contexts": [128], "us": [1000, 1500]}
        rates = {"rounds": 1000, "acceptance": [0.8], "hit_partial": [0.6, 0.7],
                 "hit_full": [0.8, 0.9], "coverage": 1, "mean_rows": 0, "us": 0}
        return {
            "format": "foretoken-calibration", "version": 1,
            "machine": {"cpu": machine["machine"], "cores": count(machine["logical_cores"]),
                        "isa": machine["instruction_sets"][-1],
                        "target_cores": count(machine["default_target_cores"]),
                        "draft_cores": count(machine["default_draft_cores"])},
            "models": {"target": "a" * 64, "draft": "b" * 64, "tokenizer": "c" * 64,
                       "precision": "bf16"},
            "times": {"target": table, "draft": draft, "draft_on_target": draft, "host_us": 20,
                      "host_row_us": 5, "sequence_token_us": 0, "target_contention": 1,
                      "draft_contention": 1},
            "settings": [{"temperature": 0, "verifier": "shared-noise", "saguaro_c": 1,
                          "draft": rates},
                         {"temperature": 1, "verifier": "rejection", "saguaro_c": 1,
                          "draft": rates},
                         {"temperature": 1, "verifier": "rejection", "saguaro_c": 0.5,
                          "draft": {**rates, "acceptance": [0.7], "hit_partial": [0.9, 0.95]}}]}

    def write(self, calibration):
        path = self.folder / "calibration.json"
        path.write_text(json.dumps(calibration))
        return path

    def test_numbers_give_a_ranked_table(self):
        out = self.succeed("plan", *self.NUMBERS, "--batches", "1,4").stdout
        for batch in (1, 4):
            self.assertIn(f"\nBatch {batch}\n", out)
        self.assertEqual(len(re.findall(r"(?m)^  Choice: ssd \(K = \d+, B = \d+, fallback \w+\), "
                                        r"[\d.]+ tokens/s: .*Its cache answers", out)), 2, out)
        report = json.loads(self.succeed("plan", *self.NUMBERS, "--json", "-").stdout)
        plans = report["tables"][0]["plans"]
        speeds = [plan["tokens_per_second"] for plan in plans]
        self.assertEqual(speeds, sorted(speeds, reverse=True))
        self.assertEqual({plan["mode"] for plan in plans}, {"ar", "sd", "ssd"})
        for plan in plans:
            if plan["mode"] == "ssd":
                self.assertEqual(sum(plan["fanout"]), plan["cache_budget"])
                self.assertEqual(len(plan["fanout"]), plan["lookahead"] + 1)
            elif plan["mode"] == "ar":
                self.assertAlmostEqual(plan["tokens_per_second"], 100)

    def test_limits_are_kept(self):
        report = json.loads(self.succeed(
            "plan", *self.NUMBERS, "--lookahead", "3-4", "--cache-budget", 9, "--modes", "ssd",
            "--fallback", "jit", "--all", "--json", "-").stdout)
        plans = report["tables"][0]["plans"]
        self.assertEqual({(plan["lookahead"], plan["cache_budget"], plan["fallback"])
                          for plan in plans}, {(3, 9, "jit"), (4, 9, "jit")})

    def test_calibration_of_this_machine(self):
        path = self.write(self.calibration())
        out = self.succeed("plan", "--calibration", path).stdout
        self.assertIn("shared-noise at T = 0.", out)
        self.assertIn("Choice: ssd", out)
        out = self.succeed("plan", "--calibration", path, "--verify", "rejection",
                           "--temp", 0.8).stdout
        self.assertIn("at T = 1, the closest to 0.8 that was measured", out)
        self.assertRegex(out, r"mode +K +B +fallback +C ")

    def test_simulation_of_a_calibration(self):
        path = self.write(self.calibration())
        options = ["--calibration", path, "-k", 3, "--fallback", "jit", "--json", "-"]
        report = json.loads(self.succeed("plan", "--simulate", "--sweep", "none", "--fanout", 1,
                                         *options).stdout)
        self.assertIn(str(path), report["meta"]["numbers"])
        simulated = {mode["mode"]: mode["tokens_per_s"] for mode in report["modes"]}
        predicted = {plan["mode"]: plan["tokens_per_second"] for plan in json.loads(self.succeed(
            "plan", "--cache-budget", 4, *options).stdout)["tables"][0]["plans"]}
        self.assertAlmostEqual(simulated["ar"], 1e6 / (10000 + 20 + 5), delta=0.1)
        self.assertAlmostEqual(simulated["sd"] / predicted["sd"], 1, delta=0.05)
        self.assertAlmostEqual(simulated["ssd, anytime"] / predicted["ssd"], 1, delta=0.05)
        rejection = self.succeed("plan", "--simulate", "--sweep", "none", "--rounds", 200,
                                 "--calibration", path, "--verify", "rejection").stdout
        self.assertIn("rejection at T = 1, the closest to 0 that was measured", rejection)
        self.refuse("plan", "--roofline", "--calibration", path,
                    saying="--calibration is for predictions and --simulate")
        without_draft = self.calibration()
        del without_draft["models"]["draft"]
        for table in ("draft", "draft_on_target"):
            del without_draft["times"][table]
        for setting in without_draft["settings"]:
            setting["ngram"] = setting.pop("draft")
        self.refuse("plan", "--simulate", "--calibration", self.write(without_draft),
                    saying="--simulate needs a draft, and --calibration has measured none")

    def test_refuses_what_it_cannot_plan_from(self):
        for arguments, saying in (
                (["--target-ms", 10, "--draft-ms", 1], "--acceptance is missing"),
                ([*self.NUMBERS, "-k", 0], "from 1 to 63"),
                ([*self.NUMBERS, "-k", 6, "--cache-budget", 5], "below K + 1 = 7"),
                ([*self.NUMBERS, "--modes", "trie"], "cannot be predicted"),
                ([*self.NUMBERS, "--fallback", "luck"], "'luck' is not a fallback"),
                ([*self.NUMBERS, "--batches", "0"], "from 1 to 4096"),
                ([*self.NUMBERS, "--html", "x.html"], "--html needs"),
                (["--calibration", self.folder / "none.json"], "none.json"),
                (["--calibration", self.folder], "")):
            self.refuse("plan", *arguments, saying=saying)

    def test_refuses_a_calibration_of_something_else(self):
        calibration = self.calibration()
        calibration["machine"]["isa"] = "abacus"
        self.refuse("plan", "--calibration", self.write(calibration),
                    saying="its instruction set is abacus, here it is ")
        path = self.write(self.calibration())
        self.refuse("plan", "--calibration", path, "--target", MODELS / "demo-target", "--draft",
                    MODELS / "demo-draft", saying="another target: its fingerprint is aaaaaaaaaaaa")
        self.refuse("plan", "--calibration", path, "--verify", "rejection", "--target-ms", 3,
                    saying="--calibration")
        calibration["settings"][0]["draft"]["acceptance"] = [80]
        self.refuse("plan", "--calibration", self.write(calibration),
                    saying="settings[0]: draft: acceptance is 80 but must be a number from 0 to 1")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    MODELS = pathlib.Path(sys.argv.pop(1)).resolve() / "models"
    unittest.main(verbosity=2)
