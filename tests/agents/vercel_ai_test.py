#!/usr/bin/env python3
"""An agent of Vercel's ai package mends a file, by each of its providers, and goes on when its
conversation has become too long: vercel_ai_test.py SCRIPTED_SERVER BUILD_FOLDER [TEST]..."""

import json
import pathlib
import sys

from scripted import FAULT, AgentTest, Script, call, main

import npm_packages

SOURCE = pathlib.Path(__file__).resolve().parent / "vercel_ai"
DOORS = ("chat", "strict-chat", "responses", "messages")
EDIT = call("edit", path="greeting.py", old='"Helo, "', new='"Hello, "')


class VercelAi(AgentTest):
    PROGRAM = ""

    def run_requests(self, server, door, *requests):
        return json.loads(self.run_agent(server, "node", self.PROGRAM, server.url, door, *requests))

    def test_a_task_by_each_provider(self):
        for door in DOORS:
            with self.subTest(door):
                (self.project / "greeting.py").write_text(FAULT)
                script = Script(
                    ("Mend greeting.py.", call("read", path="greeting.py")),
                    ("Helo, ", "It is a letter that is missing.\n" + EDIT),
                    ('"replaced":1', "It is mended."))
                said = self.run_requests(self.serve(script), door, "Mend greeting.py.")
                self.assertEqual(script.done, 3)
                self.assertEqual((self.project / "greeting.py").read_text(),
                                 FAULT.replace("Helo", "Hello"))
                answer, = said["answers"]
                self.assertEqual(answer["text"], "It is mended.")
                self.assertGreater(answer["usage"]["inputTokens"], 500)
                self.assertGreater(answer["usage"]["outputTokens"], 50)

    def test_a_context_that_overflows(self):
        (self.project / "notes.txt").write_text("A note of no importance. " * 300)
        for door in DOORS:
            with self.subTest(door):
                (self.project / "greeting.py").write_text(FAULT)
                script = Script(
                    ("Read the notes.", call("read", path="notes.txt")),
                    ("no importance", "They are of no importance."),
                    ("Mend greeting.py.", EDIT), ('"replaced":1', "It is mended."))
                server = self.serve(script, context=4_000)
                more = " And mind this: " + "it is a greeting. " * 250
                said = self.run_requests(server, door, "Read the notes.",
                                         "Mend greeting.py." + more)
                self.assertEqual([script.done, said["answers"][-1]["text"]], [4, "It is mended."])
                refused, = said["pruned"]
                self.assertEqual(refused["status"], 400)
                self.assertRegex(refused["message"], "prompt is too long|maximum context length")
                self.assertNotIn("no importance. A note", script.prompts[-1])
                self.assertIn("Hello", (self.project / "greeting.py").read_text())


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv.pop(2)).resolve()
    npm_packages.install(SOURCE, folder)
    VercelAi.PROGRAM = folder / "agent.mjs"
    main()
