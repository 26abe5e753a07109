#!/usr/bin/env python3
"""An agent of smolagents mends a file, by calls and by code, and goes on when its conversation has
become too long: smolagents_test.py SCRIPTED_SERVER BUILD_FOLDER [TEST]..."""

import json
import pathlib
import sys

from scripted import FAULT, AgentTest, Script, call, main

import python_packages

SOURCE = pathlib.Path(__file__).resolve().parent / "smolagents"
EDIT = {"path": "greeting.py", "old": '"Helo, "', "new": '"Hello, "'}


def code(*lines):
    return "Thought: I write code.\n<code>\n" + "\n".join(lines) + "\n</code>"


STEPS = {
    "calls": {"read": lambda path: call("read", path=path),
              "edit": lambda: call("edit", **EDIT),
              "answer": lambda text: call("final_answer", answer=text)},
    "code": {"read": lambda path: code(f"print(read({path!r}))"),
             "edit": lambda: code(f"print(edit(**{EDIT!r}))"),
             "answer": lambda text: code(f"final_answer({text!r})")},
}


class Smolagents(AgentTest):
    PYTHON = ""

    def run_requests(self, server, kind, *requests):
        said = self.run_agent(server, self.PYTHON, SOURCE / "agent.py", server.url,
                              kind, *requests)
        return json.loads(said.splitlines()[-1])  # What is streamed comes before.

    def test_a_task_by_each_kind(self):
        for kind, do in STEPS.items():
            with self.subTest(kind):
                (self.project / "greeting.py").write_text(FAULT)
                script = Script(("Mend greeting.py.", do["read"]("greeting.py")),
                                ("Helo, ", do["edit"]()), ("1", do["answer"]("It is mended.")))
                said = self.run_requests(self.serve(script), kind, "Mend greeting.py.")
                self.assertEqual(script.done, 3)
                self.assertEqual((self.project / "greeting.py").read_text(),
                                 FAULT.replace("Helo", "Hello"))
                self.assertEqual(said, {"answers": ["It is mended."], "shortened": 0})

    def test_a_context_that_overflows(self):
        (self.project / "notes.txt").write_text("A note of no importance. " * 300)
        for kind, context in (("calls", 6_000), ("code", 8_000)):
            with self.subTest(kind):
                do = STEPS[kind]
                (self.project / "greeting.py").write_text(FAULT)
                script = Script(
                    ("Read the notes.", do["read"]("notes.txt")),
                    ("no importance", do["answer"]("They are of no importance.")),
                    ("Mend greeting.py.", do["edit"]()), ("1", do["answer"]("It is mended.")))
                server = self.serve(script, context=context)
                more = " And mind this: " + "it is a greeting. " * 400
                said = self.run_requests(server, kind, "Read the notes.",
                                         "Mend greeting.py." + more)
                self.assertEqual(said, {
                    "answers": ["They are of no importance.", "It is mended."], "shortened": 1})
                self.assertIn("Hello", (self.project / "greeting.py").read_text())


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv.pop(2)).resolve()
    Smolagents.PYTHON = python_packages.install(folder, SOURCE / "requirements.txt")
    main()
