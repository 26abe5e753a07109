#!/usr/bin/env python3
"""The foretoken program as its users meet it: cli_test.py PROGRAM SOURCE_DIRECTORY [TEST]...

Runs on the bundled models.
"""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
import unittest

from command_line import CLEAN_ENVIRONMENT, MODELS, PROGRAM, CliTest, foretoken

ESCAPE = "\x1b"


class GoodInput(CliTest):
    def test_help_of_every_command(self):
        top = self.succeed("--help").stdout
        for mode in ("auto", "ar", "sd", "ssd", "ngram", "sssd", "rest", "trie"):
            self.assertRegex(top, rf"\b{mode} \(")
        for command in ("run", "chat", "demo", "bench", "verify", "inspect", "devices", "plan",
                        "calibrate", "serve", "audit", "check", "perplexity", "quantize",
                        "tokenize", "detokenize",
                        "completions", "man"):
            everyday = self.succeed(command, "--help").stdout
            self.assertLess(everyday.count("\n"), 60, command)
            self.assertGreaterEqual(self.succeed(command, "--help-all").stdout.count("\n"),
                                    everyday.count("\n") - 3, command)
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

    def test_several_drafts_give_the_same_text(self):
        drafts = ("-md", "demo-draft", "-md", "self:q4_0")
        texts = set()
        for mode in (["ar"], ["sd"], ["sd2"], ["auto"], ["staged"],
                     ["staged", "--stages", "draft2,draft,retrieval"], ["ensemble"],
                     ["ensemble", "--ensemble", "draft,draft2,ngram", "--speculation-length", 12]):
            result = self.succeed("run", "Once upon a time", "-n", 48, "--temp", "0.7", *drafts,
                                  "--mode", *mode)
            texts.add(result.stdout)
        self.assertEqual(len(texts), 1, texts)
        report = json.loads(self.succeed("run", "Once upon a time", "-n", 96, *drafts,
                                         "--json").stdout)
        self.assertRegex(report["draft"], r"^demo-draft, .+")
        self.assertRegex(report["planner"]["reason"], r"^Choice: .*\bsd2? ")
        self.succeed("verify", "--limit", 2, "-n", 24, *drafts, "--modes",
                     "sd,sd2,auto,staged,ensemble", "--batches", "1,4", "--temps", "0,0.8",
                     "--sampler-sets", "none")

    def test_drafters_that_learn_from_the_target_give_the_same_text(self):
        modes = "jacobi,lookahead,recycle,racer"
        report = json.loads(self.succeed(
            "verify", "--limit", 2, "-n", 32, "--modes", modes, "--temps", "0,0.8",
            "--sampler-sets", "none", "--batches", "1,4", "--lookahead-window", 4,
            "--lookahead-guesses", 3, "--json", "-").stdout)
        self.assertTrue(report["identical"])
        report = json.loads(self.succeed(
            "bench", "--limit", 1, "-n", 48, "--modes", "ar," + modes, "-k", 6,
            "--only-target-cores", "--json", "-").stdout)
        measured = {mode["mode"]: mode for mode in report["sets"][0]["modes"]}
        for name in modes.split(","):
            self.assertTrue(measured[name]["identical"], name)
            self.assertGreater(measured[name]["acceptance_length"], 1, name)
        text = self.succeed("run", "Once upon a time", "-n", 24, "--mode", "ar").stdout
        self.assertEqual(text, self.succeed("run", "Once upon a time", "-n", 24, "--mode",
                                            "lookahead").stdout)
        self.refuse("run", "Once", "--mode", "lookahead", "-k", 12,
                    saying="(5 + 5) x 12 = 120 tokens, more than 63")
        self.refuse("run", "Once", "--mode", "ngram", "--lookahead-window", 4,
                    saying="--lookahead-window is for mode lookahead")

    def test_a_mode_lacks_its_draft(self):
        for mode, said in (("sd2", "mode sd2 needs 2 draft models; name each with a --draft"),
                           ("sd3", "mode sd3 needs 3 draft models")):
            self.refuse("run", "Once", "--mode", mode, saying=said)
        self.refuse("bench", "--modes", "ar,ssd2",
                    saying="in mode ssd; this one drafts before that, in mode sd2")

    def test_drafters_of_drafters_are_refused_where_something_is_missing(self):
        for options, said in ((("--mode", "staged", "--stages", "draft,draft2"),
                               "stages names draft2, and the draft models that are loaded are 1"),
                              (("--mode", "ensemble", "--ensemble", "draft,drift"),
                               "--ensemble: 'drift' is no drafter: choose among draft, "),
                              (("--mode", "ensemble", "--ensemble", "draft", "--verify",
                                "rejection"), "ensemble names draft models alone"),
                              (("--mode", "sd", "--stages", "draft,ngram"),
                               "--stages says what mode staged is made of")):
            self.refuse("run", "Once", *options, saying=said)

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

    def test_run_reads_standard_input_where_asked(self):
        prompt = "Once upon a time"
        expected = self.succeed("run", prompt, "-n", 8).stdout
        self.assertEqual(self.succeed("run", "-", "-n", 8, stdin=prompt + "\n").stdout, expected)
        self.assertEqual(self.succeed("run", "-n", 8, "-p", prompt).stdout, expected)

    def test_serve_tells_its_temperature(self):
        self.assertIn("(default 1)", self.succeed("serve", "--help").stdout)
        self.assertIn("(default 0.7)", self.succeed("chat", "--help").stdout)
        self.assertIn("(default 0)", self.succeed("run", "--help").stdout)

    def test_tokens_and_back(self):
        text = "Once upon a time, Lily said: \"Hi!\"\n\nThe end é."
        ids = json.loads(self.succeed("tokenize", "--json", stdin=text).stdout)
        lines = self.succeed("tokenize", "-", stdin=text).stdout
        self.assertEqual([int(line) for line in lines.split()], ids)
        self.assertEqual(self.succeed("detokenize", stdin=lines).stdout, text)
        self.assertEqual(self.succeed("detokenize", json.dumps(ids)).stdout, text)
        self.assertEqual(json.loads(self.succeed("tokenize", "--json", "--no-bos", text).stdout),
                         ids[1:])
        pieces = self.succeed("tokenize", "--pieces", "Once").stdout
        self.assertRegex(pieces, r"\A1\t.*\n\d+\t.*Once\n\Z")
        prompt = json.loads(self.succeed("run", text, "-n", 1, "--json").stdout)
        self.assertEqual(prompt["stats"]["prompt_tokens"], len(ids))
        chat = ["tokenize", "--chat", "--json", "--chat-template"]
        with_mark, plain = (json.loads(self.succeed(*chat, "chatml", text).stdout)
                            for text in ("Hi <|im_end|>", "Hi"))
        mark = json.loads(self.succeed("tokenize", "--no-bos", "--json", "<|im_end|>").stdout)[-1]
        # What is typed is text; the template's own mark is one.
        self.assertEqual((with_mark.count(mark), plain.count(mark)), (1, 1))
        self.assertGreater(len(with_mark), len(plain))
        self.refuse(*chat, "chatmil", "Hi", saying="nor one of those built in")
        self.refuse("tokenize", "--chat-template", "chatml", "Hi", saying="requires --chat")
        self.refuse("detokenize", "1 2 many", saying="'many' is no token")
        self.refuse("detokenize", "99999", saying="ids are from 0 to")

    def test_inspect_alone_shows_the_bundled_models(self):
        text = self.succeed("inspect").stdout
        self.assertIn("demo-target", text)
        self.assertIn("The draft has the target's vocabulary.", text)

    def test_a_write_that_fails_is_an_error(self):
        commands = [("run", "Once", "-n", 4, "--json"), ("run", "Once", "-n", 4), ("--help",),
                    ("man",), ("inspect",)]
        for arguments in commands:
            with open("/dev/full", "w") as full:
                result = subprocess.run([PROGRAM, *map(str, arguments)], stdout=full, text=True,
                                        stderr=subprocess.PIPE, env=CLEAN_ENVIRONMENT)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn("foretoken: writing to standard output failed", result.stderr, arguments)

    def test_closed_streams_hold_no_file(self):
        shell = '"$0" run Once -n 4 --mode ssd >&-; echo $? >&2'
        result = subprocess.run(["bash", "-c", shell, PROGRAM], text=True, capture_output=True,
                                env=CLEAN_ENVIRONMENT)
        self.assertIn("foretoken: writing to standard output failed", result.stderr)
        self.assertTrue(result.stderr.endswith("\n1\n"), result.stderr)
        with open("/dev/full", "w") as full:  # Nothing can be said, but the code can.
            result = subprocess.run([PROGRAM, "run", "--bogus"], stderr=full, env=CLEAN_ENVIRONMENT)
        self.assertEqual(result.returncode, 2)

    def test_a_draft_that_does_not_pay_is_named(self):
        slow = ("bench", "--synthetic", "draft-12m", "--draft-synthetic", "draft-12m",
                "--scripted-acceptance", "0", "--limit", 2, "--prompt-tokens", 16, "-n", 24,
                "--modes", "ar,sd", "--only-target-cores", "--json", "-")
        self.assertRegex(self.succeed(*slow).stderr,
                         r"warning: sd ran at 0\.\d\d times the speed of ar on 'random tokens': "
                         r"0\.0% of what it proposed was accepted")

    def test_stop_strings_never_show(self):
        full = self.succeed("run", "Once upon a time", "-n", 60).stdout
        self.assertIn("Lily", full)
        cut = self.succeed("run", "Once upon a time", "-n", 60, "--stop", "Lily").stdout
        self.assertEqual(cut.strip(), full[:full.index("Lily")].strip())

    def test_demo_agrees_in_every_mode(self):
        report = json.loads(self.succeed("demo", "--json", "-n", 64).stdout)
        self.assertEqual([(mode["mode"], mode["drafter"]) for mode in report["modes"]],
                         [("ar", "")] + [(mode, f"demo-{drafter}")
                                         for drafter in ("draft", "eagle3", "mtp", "dflash")
                                         for mode in ("sd", "ssd")])
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

    def thinking_model(self):
        """The bundled target with a template whose answers begin with thoughts."""
        model = shutil.copytree(MODELS / "demo-target", self.folder / "thinking")
        (model / "chat_template.jinja").write_text(
            "{% for message in messages %}{{ message.content }}\n{% endfor %}<think>\n"
            "{#- </think> <tool_call> #}")
        return model

    def test_inspect_shows_how_answers_are_written(self):
        model = self.thinking_model()
        text = self.succeed("inspect", model, "--no-measuring").stdout
        self.assertRegex(text, r"calls of tools +in the form 'hermes'\n")
        self.assertRegex(text, r'thoughts +between "<think>" and "</think>"\n')
        report = json.loads(self.succeed("inspect", model, "--no-measuring", "--json").stdout)
        self.assertEqual(report["answers"], {
            "tool_format": "hermes", "reasoning": {"open": "<think>", "close": "</think>"}})
        plain = json.loads(self.succeed("inspect", "--no-measuring", "--json").stdout)
        self.assertEqual(plain["answers"], {"tool_format": None, "reasoning": None})

    def test_thoughts_have_a_budget_before_what_a_grammar_asks_for(self):
        asked = ("run", "Is it so?", "-m", self.thinking_model(), "--chat", "--reasoning-budget", 9,
                 "--json-schema", '{"enum": ["yes", "no"]}', "--temp", 1, "--seed", 4, "--json")
        texts = {json.loads(self.succeed(*asked, "-md", MODELS / "demo-draft", "--mode",
                                         mode).stdout)["text"]
                 for mode in ("ar", "ngram", "sd", "ssd", "auto")}
        self.assertEqual(len(texts), 1, texts)
        self.assertRegex(texts.pop(), r'\A.+</think>\s*"(yes|no)"\Z')

    def test_auto_is_the_default(self):
        story = ("run", "Once upon a time", "-n", 32, "--temp", 1, "--seed", 3)
        plain = self.succeed(*story, "--mode", "ar").stdout
        for options in ([], ["-m", MODELS / "demo-target"]):  # Without a draft too.
            result = self.succeed(*story, *options)
            self.assertEqual(result.stdout, plain)
            self.assertIn("auto: ", result.stderr)

    def test_run_says_what_auto_chose(self):
        for tokens in (1, 2, 3, 40):
            result = self.succeed("run", "Once upon a time", "-n", tokens)
            line = result.stderr.splitlines()[-1]
            self.assertRegex(line, rf"\Aauto: {tokens} tokens?, ")
            self.assertNotIn("(rounds: )", line)
            self.assertNotRegex(line, r"\b0(\.0)? tokens/s")
            chosen = re.search(r"\(rounds: ([^)]+)\)", line)
            self.assertEqual(chosen is not None, tokens > 1, line)
            report = json.loads(self.succeed("run", "Once upon a time", "-n", tokens,
                                             "--json").stdout)
            # All rounds but the prompt's own, which is nobody's choice.
            self.assertEqual(sum(report["rounds_by_mode"].values()),
                             report["stats"]["rounds"] - 1)

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
        report = json.loads(data.read_text())
        self.assertEqual(self.drawn(page), report)
        self.assertEqual(report["kind"], "bench")
        self.assertEqual(report["meta"]["acceptance"], "real")
        modes = {mode["mode"]: mode for mode in report["sets"][0]["modes"]}
        self.assertTrue({"ar", "sd", "ssd"} <= set(modes))
        for name, mode in modes.items():
            self.assertEqual(mode["requests"], 3)
            self.assertGreater(mode["tokens_per_s"]["median"], 0)
            self.assertEqual(mode["identical"], None if name == "ar" else True)
        self.assertGreater(modes["sd"]["acceptance_length"], 1)
        self.assertIsNotNone(modes["ssd"]["hit_rate"]["at_k"])

    def test_bench_ranks_drafters(self):
        result = self.succeed("bench", "--limit", 2, "-n", 24, "--only-target-cores", "--drafters",
                              "demo-draft,halved=self:q4_0,ngram", "--json", "-")
        report = json.loads(result.stdout)
        self.assertEqual(set(report["meta"]["drafters"]), {"demo-draft", "halved", "ngram"})
        for group in report["sets"]:
            modes = {mode["mode"]: mode for mode in group["modes"]}
            self.assertEqual(set(modes), {"ar", "ngram", "sd:demo-draft", "ssd:demo-draft",
                                          "sd:halved", "ssd:halved"})
            self.assertTrue(all(mode["identical"] for name, mode in modes.items() if name != "ar"))
            self.assertEqual(modes["sd:halved"]["drafter"], "halved")
            # The target with other weights agrees with itself no less than a small model does.
            self.assertGreaterEqual(modes["sd:halved"]["acceptance_length"],
                                    modes["sd:demo-draft"]["acceptance_length"])
            speeds = [modes[label]["tokens_per_s"]["median"] for label in group["ranking"]]
            self.assertEqual(speeds, sorted(speeds, reverse=True))
            self.assertEqual(len(speeds), 5)
        table = self.succeed("bench", "--limit", 1, "-n", 8, "--modes", "ar,sd", "--drafters",
                             "demo-draft", "--only-target-cores").stdout
        self.assertIn("fastest first", table)
        self.refuse("bench", "--drafters", "demo-draft,ar", saying="is a mode")
        self.refuse("bench", "--drafters", "demo-draft,x=demo-draft,x=y", saying="called x")
        self.refuse("bench", "--drafters", "demo-draft", "-md", "demo-draft",
                    saying="give either --drafters or --draft")

    def test_bundled_heads_draft_what_the_target_says(self):
        drafters = ["demo-draft", "demo-eagle3", "demo-mtp", "demo-dflash"]
        for temperature in (0, 1):
            result = self.succeed("bench", "--limit", 4, "-n", 60, "--temp", temperature,
                                  "--only-target-cores", "--drafters", ",".join(drafters),
                                  "--json", "-")
            for group in json.loads(result.stdout)["sets"]:
                modes = {mode["mode"]: mode for mode in group["modes"]}
                for drafter in drafters:
                    for when in ("sd", "ssd"):
                        mode = modes[f"{when}:{drafter}"]
                        self.assertTrue(mode["identical"], mode["mode"])
                    # A random drafter's would be 1.
                    self.assertGreater(modes[f"sd:{drafter}"]["acceptance_length"], 1.25,
                                       (drafter, temperature, group["name"]))

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

    def test_bench_has_answers_said(self):
        prompts = self.folder / "copies.jsonl"
        words = "the dragon hid seven silver spoons below the mill"
        prompts.write_text("".join(json.dumps({"prompt": f"{number} {words}: ",
                                               "answer": f"{number} {words}"}) + "\n"
                                   for number in range(3)))
        options = ("bench", "--prompts", prompts, "--raw", "-n", 90, "--modes", "ar,protocol",
                   "--only-target-cores", "--scripted-answers", "--json", "-")
        report = json.loads(self.succeed(*options).stdout)
        self.assertEqual(report["meta"]["scripted_answers"], 3)
        plain, copying = report["sets"][0]["modes"]
        self.assertEqual(plain["output_tokens"], copying["output_tokens"])
        self.assertLess(plain["output_tokens"], 3 * 60)  # They end where the answers do.
        self.assertGreater(copying["acceptance_length"], 4)
        self.refuse(*options, "--synthetic", "draft-12m", saying="a tokenizer")
        self.refuse("bench", "--scripted-answers", saying="has an 'answer'")
        self.refuse("bench", "--scripted-answers", "--lossy", "typical", saying="not both")

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

    def test_keys_and_values_in_eight_bits(self):
        for precision in ("auto", "portable"):
            text = self.succeed("verify", "--kv", "q8_0", "--precision", precision, "--limit", 2,
                                "-n", 32, "--batches", "1,3", "--temps", "0,1.0", "--prefix-cache",
                                "on,off", "--preempt", "0.05", "--sampler-sets", "none", "--json",
                                "-").stdout
            report = json.loads(text)
            self.assertTrue(report["identical"])
            self.assertEqual(report["kv"], "q8_0")
        texts = [self.succeed("run", "Once upon a time", "-n", 64, "--kv", "q8_0", "--mode",
                              *mode).stdout
                 for mode in (["ar"], ["sd", "--tree-width", 3], ["ssd", "--draft-process"])]
        self.assertEqual(len(set(texts)), 1, texts)
        per_token = [json.loads(self.succeed("inspect", "--no-measuring", "--json", "--kv",
                                             kv).stdout)["memory"]["kv_bytes_per_token"]
                     for kv in ("bf16", "f32", "q8_0")]
        self.assertEqual([bytes / per_token[0] for bytes in per_token], [1, 2, 0.5625])

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

    def test_chat_saves_loads_and_regenerates(self):
        talk = self.folder / "talk.json"
        out = self.succeed("chat", "-n", 24, "--seed", 3, "--system", "Be kind.",
                           stdin=f"/regen\nTell me a story.\n/save {talk}\n/regen\n"
                                 f"/load {talk}\n/load {self.folder}/none\n/set temp 0\n"
                                 "/regen\n").stdout
        for part in ("there is no reply yet", "2 messages are in", "2 messages from",
                     "cannot read", "the reply is always the same"):
            self.assertIn(part, out)
        messages = json.loads(talk.read_text())["messages"]
        self.assertEqual([message["role"] for message in messages],
                         ["system", "user", "assistant"])
        # The saved reply and another one.
        self.assertIn(messages[2]["content"].strip()[:20], out)
        self.assertEqual(len(set(line for line in out.splitlines() if line.startswith("["))), 2, out)

    def reader_of(self, terminal):
        """A function that reads from the terminal until a text has come."""
        seen = b""

        def wait_for(text):
            nonlocal seen
            while text not in seen:
                self.assertTrue(select.select([terminal], [], [], 60)[0], (text, seen))
                seen += os.read(terminal, 4096)
            seen = seen[seen.index(text) + len(text):]

        return wait_for

    def drain(self, terminal, quiet):
        """Reads until nothing has come for that many seconds."""
        while select.select([terminal], [], [], quiet)[0]:
            os.read(terminal, 4096)

    def test_chat_edits_lines_and_remembers_them(self):
        environment = {**CLEAN_ENVIRONMENT, "TERM": "xterm", "XDG_STATE_HOME": str(self.folder)}
        master, slave = pty.openpty()
        process = subprocess.Popen([PROGRAM, "chat", "--color", "never", "-n", "8"], stdin=slave,
                                   stdout=slave, stderr=slave, start_new_session=True,
                                   env=environment)
        os.close(slave)
        wait_for = self.reader_of(master)
        wait_for(b"> ")
        os.write(master, b"/set temp 0.x\x02\x7f\x06\x7f25\n")  # Left, delete, right, delete.
        wait_for(b"temp is now 025")
        wait_for(b"> ")
        os.write(master, b"\x1b[A\n")  # Up: the same line again.
        wait_for(b"temp is now 025")
        wait_for(b"> ")
        os.write(master, b"/quit\n")
        self.assertEqual(process.wait(timeout=30), 0)
        os.close(master)
        self.assertIn("/set", (self.folder / "foretoken" / "chat_history").read_text())

    def test_chat_outlives_ctrl_c(self):
        master, slave = pty.openpty()
        process = subprocess.Popen([PROGRAM, "chat", "--color", "never"], stdin=slave,
                                   stdout=slave, stderr=slave, start_new_session=True,
                                   env={**CLEAN_ENVIRONMENT, "XDG_STATE_HOME": str(self.folder)})
        os.close(slave)
        wait_for = self.reader_of(master)
        wait_for(b"> ")
        process.send_signal(signal.SIGINT)
        wait_for(b"leaves)")
        wait_for(b"> ")
        os.write(master, b"Tell me a story about a dragon.\n")
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        wait_for(b"> ")
        # Many at once, some of which meet the program in the middle of a write.
        for _ in range(10):
            os.write(master, b"And then?\n")
            end = time.monotonic() + 0.08
            while time.monotonic() < end:
                process.send_signal(signal.SIGINT)
                self.drain(master, 0.0003)
            self.drain(master, 0.05)
        os.write(master, b"/stats\n")
        wait_for(b"replies,")
        wait_for(b"> ")
        os.write(master, b"/quit\n")
        self.assertEqual(process.wait(timeout=30), 0)
        os.close(master)


class Settings(CliTest):
    def tokens(self, *arguments, config=None, **variables):
        if config is not None:
            (self.folder / "foretoken").mkdir(exist_ok=True)
            (self.folder / "foretoken" / "config.toml").write_text(config)
        environment = {"XDG_CONFIG_HOME": str(self.folder), **variables}
        result = foretoken("run", "Once upon a time", "--json", *arguments, environment=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return len(json.loads(result.stdout)["tokens"])

    def test_command_line_beats_variables_beat_the_file(self):
        config = "max-tokens = 9\n[serve]\nmax-body = 2\n"
        self.assertEqual(self.tokens(config=config), 9)
        self.assertEqual(self.tokens(config=config + "[run]\nmax-tokens = 8\n"), 8)
        self.assertEqual(self.tokens(FORETOKEN_MAX_TOKENS="7"), 7)
        self.assertEqual(self.tokens("-n", 6, FORETOKEN_MAX_TOKENS="7"), 6)
        other = self.folder / "other.toml"
        other.write_text("max-tokens = 5\n")
        self.assertEqual(self.tokens("--config", other), 5)
        self.assertEqual(self.tokens(FORETOKEN_CONFIG=str(other)), 5)

    def test_a_mistake_in_the_file_stops_no_manual(self):
        (self.folder / "foretoken").mkdir()
        (self.folder / "foretoken" / "config.toml").write_text("tepm = 1\n")
        environment = {"XDG_CONFIG_HOME": str(self.folder)}
        self.refuse("inspect", environment=environment, saying="did you mean temp?")
        for arguments in (("man",), ("completions", "bash"), ("run", "--help")):
            self.succeed(*arguments, environment=environment)

    def test_bad_settings_name_their_place(self):
        config = self.folder / "mine.toml"

        def refuse(text, saying):
            config.write_text(text)
            self.refuse("run", "x", "--config", config, saying=saying)

        refuse("\nmax-tokns = 3\n", f"{config}:2: no command has an option 'max-tokns'; did you mean "
                                    "max-tokens?")
        refuse("[run]\nmax-tokens = many\n", f"{config}:2: --max-tokens")
        refuse("[rum]\nmax-tokens = 3\n", "the section [rum] is no command; did you mean run?")
        refuse('mode = "warp"\n', f"{config}:1: --mode")
        self.refuse("run", "x", "--config", self.folder / "none.toml", saying="none.toml")
        self.refuse("serve", environment={"FORETOKEN_MAX_BODY": "0"},
                    saying="FORETOKEN_MAX_BODY: --max-body")
        self.refuse("run", "x", environment={"FORETOKEN_FANOUT": "flat"},
                    saying="FORETOKEN_FANOUT: --fanout: 'flat' is not a fan-out")
        self.refuse("run", "x", environment={"FORETOKEN_STAGES": "drift"},
                    saying="(FORETOKEN_STAGES sets it)")
        self.assertIn("FORETOKEN_TEMPP names no option",
                      self.succeed("inspect", environment={"FORETOKEN_TEMPP": "1"}).stderr)


class Documents(CliTest):
    def test_bash_completes_what_the_program_takes(self):
        script = self.succeed("completions", "bash").stdout

        def complete(*words):
            line = ("source /dev/stdin; COMP_WORDS=(foretoken \"$@\"); COMP_CWORD=$#; _foretoken; "
                    "printf '%s\\n' \"${COMPREPLY[@]}\"")
            return subprocess.run(["bash", "-c", line, "bash", *words], input=script, text=True,
                                  capture_output=True, check=True).stdout.split()

        self.assertIn("serve", complete(""))
        self.assertEqual(complete("tok"), ["tokenize"])
        self.assertEqual(complete("run", "--max-t"), ["--max-tokens"])
        self.assertIn("trie", complete("run", "--mode", ""))
        self.assertEqual(complete("run", "--mode", "=", "tr"), ["trie"])
        self.assertEqual(complete("completions", ""), ["bash", "zsh", "fish"])
        self.assertEqual(complete("--vers"), ["--version"])
        self.assertEqual(complete("datastore", "bu"), ["build"])
        self.assertIn("--capacity", complete("datastore", "build", "--cap"))
        self.assertIn("#compdef foretoken", self.succeed("completions", "zsh").stdout)
        self.assertIn("-l max-tokens", self.succeed("completions", "fish").stdout)
        self.refuse("completions", "tcsh", saying="tcsh")

    def test_the_man_page_has_every_command(self):
        page = self.succeed("man").stdout
        for command in ("RUN", "SERVE", "DATASTORE BUILD", "MAN"):
            self.assertIn(f".SH FORETOKEN {command}\n", page)
        self.assertIn("\\-\\-max\\-tokens", page)
        self.assertNotIn("SPECULATOR", page)


if __name__ == "__main__":
    unittest.main(verbosity=2)
