#!/usr/bin/env python3
"""The coding agent aider, unmodified, mends a file, and goes on when its conversation has become
too long: aider_test.py SCRIPTED_SERVER BUILD_FOLDER [TEST]..."""

import json
import pathlib
import shutil
import subprocess
import sys

from scripted import FAULT, AgentTest, Script, main

import python_packages

SOURCE = pathlib.Path(__file__).resolve().parent / "aider"
# aider's names of the model, which say by what API it is asked.
CHAT, RESPONSES, MESSAGES = "openai/scripted", "openai/responses/scripted", "anthropic/scripted"
# Without a cache of compiled files, which does not see two edits within a second.
CHECK = """python3 -B -c 'from greeting import greet; assert greet("Ada") == "Hello, Ada"'"""


def edit(old, new):
    """How the model asks for another greeting in greeting.py."""
    line = FAULT.splitlines(keepends=True)[1]
    return ("greeting.py\n```python\n<<<<<<< SEARCH\n" + line.replace("Helo", old) +
            "=======\n" + line.replace("Helo", new) + ">>>>>>> REPLACE\n```\n")


EDIT = edit("Helo", "Hello")
MENDED = FAULT.replace("Helo", "Hello")


def aside(prompt):
    """What the model says to what aider asks of itself."""
    if "Git commit messages" in prompt.turns[0][1]:
        return "fix: greet in full"
    if "summarize this partial conversation" in prompt.turns[0][1]:
        return "I asked you to mind that it is a greeting."
    return None


class Aider(AgentTest):
    PROGRAM = ""

    def setUp(self):
        super().setUp()
        (self.home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.com\n")
        (self.project / "notes.txt").write_text("A note of no importance.\n" * 500)
        self.git("init", "--quiet")

    def git(self, *arguments):
        return subprocess.run(["git", *arguments], cwd=self.project, env=self.environment(),
                              check=True, capture_output=True, text=True).stdout

    def converse(self, server, model, *lines, **settings):
        """What aider says to these lines in a repository with the fault."""
        (self.project / "greeting.py").write_text(FAULT)
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "--message", "Greet")
        # JSON is YAML.
        (self.home / ".aider.conf.yml").write_text(json.dumps({
            "model": model, "edit-format": "diff", "yes-always": True, "pretty": False,
            "fancy-input": False, "check-update": False, "show-release-notes": False,
            "show-model-warnings": False, "analytics-disable": True, **settings}))
        # More than the server has. Without this file aider downloads a list of models.
        (self.home / ".aider.model.metadata.json").write_text(json.dumps({model: {
            "max_input_tokens": 200_000, "max_output_tokens": 2_048, "mode": "chat",
            "litellm_provider": model.partition("/")[0]}}))
        return self.run_agent(server, self.PROGRAM, lines=lines, environment={
            "OPENAI_API_BASE": server.url + "/v1", "OPENAI_API_KEY": "none",
            "ANTHROPIC_API_BASE": server.url, "ANTHROPIC_API_KEY": "none",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "BROWSER": "true"})  # A program that opens no page.

    def test_a_task_by_each_api(self):
        for model in (CHAT, RESPONSES, MESSAGES):
            with self.subTest(model):
                script = Script(
                    ("Mend the greeting.", "I must see greeting.py for that."),
                    ("I added these files to the chat: greeting.py",
                     "It is a letter that is wrong.\n" + edit("Helo", "Hallo")),
                    ("AssertionError", "It is another letter.\n" + edit("Hallo", "Hello")),
                    aside=aside)
                said = self.converse(self.serve(script), model, "Mend the greeting.",
                                     **{"test-cmd": CHECK, "auto-test": True})
                self.assertEqual(script.done, 3, said)
                self.assertIn(FAULT, script.prompts[1])
                self.assertEqual((self.project / "greeting.py").read_text(), MENDED)
                self.assertEqual(self.git("log", "-2", "--format=%s"), "fix: greet in full\n" * 2)

    def test_a_context_that_overflows(self):
        mend = "Mend greeting.py. And mind this: " + "it is a greeting. " * 600
        # Where Responses refuses a request, the litellm that this aider has fails before aider sees
        # why.
        for model in (CHAT, MESSAGES):
            with self.subTest(model):
                script = Script(("What do the notes say?", "They are of no importance."),
                                ("Mend greeting.py.", EDIT), aside=aside)
                said = self.converse(
                    self.serve(script, context=12_000), model, "/read-only notes.txt",
                    "What do the notes say?", mend, "/drop notes.txt", "/clear", mend)
                self.assertEqual(script.done, 2, said)
                self.assertEqual(said.count("has hit a token limit!"), 1, said)
                self.assertNotIn("no importance", script.prompts[-1])
                self.assertEqual((self.project / "greeting.py").read_text(), MENDED)

    def test_a_conversation_that_is_summarised(self):
        script = Script(("Mend greeting.py.", EDIT), ("Is it mended?", "It is."), aside=aside)
        server = self.serve(script)
        self.converse(server, CHAT, "Mend greeting.py." + " It is a greeting." * 600)
        # The next day.
        said = self.converse(server, CHAT, "Is it mended?", **{
            "restore-chat-history": True, "max-chat-history-tokens": 500})
        self.assertEqual(script.done, 2, said)
        self.assertIn("I asked you to mind that it is a greeting.", script.prompts[-1])
        self.assertNotIn("It is a greeting. It is a greeting.", script.prompts[-1])


if __name__ == "__main__":
    if shutil.which("git") is None:
        python_packages.unavailable("git is not installed")
    folder = pathlib.Path(sys.argv.pop(2)).resolve()
    Aider.PROGRAM = python_packages.install(folder, SOURCE / "requirements.txt").parent / "aider"
    main()
