#!/usr/bin/env python3
"""The coding agent opencode, unmodified, mends a file, and goes on when its conversation has become
too long: opencode_test.py SCRIPTED_SERVER BUILD_FOLDER [TEST]..."""

import json
import pathlib
import platform
import sys

from scripted import FAULT, AgentTest, Script, call, main

import npm_packages

# The package opencode-ai lists one of each platform, which not every registry has; so the one that
# runs on most machines is installed by itself.
SOURCE = pathlib.Path(__file__).resolve().parent / "opencode"
PROVIDERS = ("@ai-sdk/openai-compatible", "@ai-sdk/openai", "@ai-sdk/anthropic")
EDIT = call("edit", filePath="greeting.py", oldString='"Helo, "', newString='"Hello, "')


class Opencode(AgentTest):
    PROGRAM = ""

    def setUp(self):
        super().setUp()
        self.summaries = 0

    def aside(self, prompt):
        """What the model says to what opencode asks of itself."""
        asked = prompt.turns[0][1]
        if "title generator" in asked:
            return "A greeting"
        if "context summarization agent" in asked:
            self.summaries += 1
            return "The notes are of no importance."
        if "Continue if you have next steps" in prompt.last:
            return "There are none."
        return None

    def run_requests(self, server, provider, *requests, window=200_000, status=0):
        """What opencode answers to each of the requests, one session; it ends with `status` after
        the last. The variables and `offline` are against what it asks of others."""
        (self.home / ".npmrc").write_text("offline=true\n")
        (self.project / "opencode.json").write_text(json.dumps({
            "share": "disabled", "autoupdate": False, "provider": {"local": {
                "npm": provider, "options": {"baseURL": server.url + "/v1", "apiKey": "none"},
                "models": {"scripted": {"limit": {"context": window, "output": 2_048}}}}}}))
        answers = []
        for number, request in enumerate(requests, 1):
            out = self.run_agent(
                server, self.PROGRAM, "run", "--format", "json", "--model", "local/scripted",
                *(["--continue"] if number > 1 else []), request,
                status=status if number == len(requests) else 0,
                environment={"OPENCODE_DISABLE_MODELS_FETCH": "1",
                             "OPENCODE_DISABLE_AUTOUPDATE": "1",
                             "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"})
            answers.append([json.loads(line) for line in out.splitlines()])
        return [[event["part"]["text"] for event in events if event["type"] == "text"]
                for events in answers]

    def test_a_task_by_each_provider(self):
        for provider in PROVIDERS:
            with self.subTest(provider):
                (self.project / "greeting.py").write_text(FAULT)
                script = Script(
                    ("Mend greeting.py", call("read", filePath="greeting.py")),
                    ("Helo, ", "It is a letter that is missing.\n" + EDIT),
                    ("applied", call("bash", description="Greets",
                                     command="python3 -B -c 'from greeting import greet;"
                                             "print(greet(\"Ada\"))'")),
                    ("Hello, Ada", "It greets now: Hello, Ada."), aside=self.aside)
                said, = self.run_requests(self.serve(script), provider, "Mend greeting.py.")
                self.assertEqual(script.done, 4)
                self.assertEqual((self.project / "greeting.py").read_text(),
                                 FAULT.replace("Helo", "Hello"))
                self.assertEqual(said[-1], "It greets now: Hello, Ada.")

    def long_conversation(self, provider, context, window, status=0):
        """Reads a file that fills most of the context, is asked for more than is left of it, and
        mends a file all the same."""
        (self.project / "greeting.py").write_text(FAULT)
        (self.project / "notes.txt").write_text("A note of no importance.\n" * 600)
        script = Script(
            ("Read the notes.", call("read", filePath="notes.txt")),
            ("no importance", "They are of no importance."),
            ("Mend greeting.py.", EDIT), ("applied", "It is mended."), aside=self.aside)
        self.summaries = 0
        more = " And mind this: " + "it is a greeting. " * 600
        said = self.run_requests(self.serve(script, context=context), provider, "Read the notes.",
                                 "Mend greeting.py." + more, window=window, status=status)
        self.assertEqual([script.done, said[-1][-1]], [4, "It is mended."])
        self.assertEqual(self.summaries, 1)
        self.assertIn("The notes are of no importance.", script.prompts[-1])
        self.assertNotIn("A note of no importance.", script.prompts[-1])
        self.assertIn("Hello", (self.project / "greeting.py").read_text())

    def test_a_context_that_overflows(self):
        for provider in PROVIDERS:
            with self.subTest(provider):
                # opencode thinks that there is more room than there is, and must see what it is
                # told. A session that was refused anything ends with 1, however it went on.
                self.long_conversation(provider, context=24_000, window=200_000, status=1)

    def test_a_context_that_fills_up(self):
        # What the server counts tells opencode when it is time.
        self.long_conversation(PROVIDERS[0], context=40_000, window=24_000)


if __name__ == "__main__":
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        npm_packages.skip("the package is one for Linux on x86-64")
    folder = pathlib.Path(sys.argv.pop(2)).resolve()
    npm_packages.install(SOURCE, folder)
    Opencode.PROGRAM = folder / "node_modules" / "opencode-linux-x64-baseline" / "bin" / "opencode"
    main()
