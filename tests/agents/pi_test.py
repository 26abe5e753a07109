#!/usr/bin/env python3
"""The coding agent pi, unmodified, mends a file, and goes on when its conversation has become too
long: pi_test.py SCRIPTED_SERVER BUILD_FOLDER [TEST]..."""

import json
import pathlib
import subprocess
import sys

from scripted import FAULT, AgentTest, Script, call, main

import npm_packages

SOURCE = pathlib.Path(__file__).resolve().parent / "pi"


APIS = ("openai-completions", "openai-responses", "anthropic-messages")
EDIT = call("edit", path="greeting.py", edits=[{"oldText": '"Helo, "', "newText": '"Hello, "'}])


def failed(event):
    """Whether it is the end of a turn that the server has refused, which pi then tries again."""
    return event["type"] == "agent_end" and event["messages"][-1].get("stopReason") == "error"


class Pi(AgentTest):
    PROGRAM = ""

    def settings(self, server, api, window, compaction):
        """Writes what a user tells pi of a server; the variables against what it asks of others."""
        folder = self.home / ".pi" / "agent"
        folder.mkdir(parents=True, exist_ok=True)
        base = server.url if api == "anthropic-messages" else server.url + "/v1"
        (folder / "models.json").write_text(json.dumps({"providers": {"local": {
            "baseUrl": base, "api": api, "apiKey": "none",
            "models": [{"id": "scripted", "contextWindow": window, "maxTokens": 2048}]}}}))
        (folder / "settings.json").write_text(json.dumps({"compaction": compaction}))
        return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}

    def run_once(self, server, api, message):
        environment = self.settings(server, api, 100_000, {})
        out = self.run_agent(server, self.PROGRAM, "--mode", "json", "--model", "local/scripted",
                             "-p", message, environment=environment)
        return [json.loads(line) for line in out.splitlines()]

    def converse(self, server, api, messages, window, compaction):
        """The events of a session in which each message is sent once there was the event that it is
        paired with."""
        environment = self.environment(**self.settings(server, api, window, compaction))
        events = []
        with subprocess.Popen([self.PROGRAM, "--mode", "rpc", "--model", "local/scripted"],
                              cwd=self.project, env=environment, text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            try:
                for message, awaited in messages:
                    process.stdin.write(json.dumps({"type": "prompt", "message": message}) + "\n")
                    process.stdin.flush()
                    for line in process.stdout:
                        events.append(json.loads(line))
                        if events[-1]["type"] == awaited and not failed(events[-1]):
                            break
            finally:
                process.kill()
        if server.failure is not None:
            raise server.failure
        return events

    def test_a_task_by_each_api(self):
        for api in APIS:
            with self.subTest(api):
                (self.project / "greeting.py").write_text(FAULT)
                script = Script(
                    ("Mend greeting.py", call("read", path="greeting.py")),
                    ("Helo, ", "It is a letter that is missing.\n" + EDIT),
                    ("Successfully", call("bash", command="python3 -c 'from greeting import greet;"
                                                          "print(greet(\"Ada\"))'")),
                    ("Hello, Ada", "It greets now: Hello, Ada."))
                server = self.serve(script)
                events = self.run_once(server, api, "Mend greeting.py.")
                self.assertEqual(script.done, 4)
                self.assertEqual((self.project / "greeting.py").read_text(),
                                 FAULT.replace("Helo", "Hello"))
                self.assertEqual(events[-1]["messages"][-1]["content"][-1]["text"],
                                 "It greets now: Hello, Ada.")

    def long_conversation(self, api, context, window, compaction, first_awaits):
        """Reads a file that fills most of the context, is asked for more than is left of it, and
        mends a file all the same. Why pi has summarised the conversation."""
        (self.project / "greeting.py").write_text(FAULT)
        (self.project / "notes.txt").write_text("A note of no importance.\n" * 600)
        script = Script(
            ("Read the notes.", call("read", path="notes.txt")),
            ("no importance", "They are of no importance."),
            ("Mend greeting.py.", EDIT), ("Successfully", "It is mended."),
            aside=lambda prompt: "The notes are of no importance."
            if "context summarization assistant" in prompt else None)
        server = self.serve(script, context=context)
        more = " And mind this: " + "it is a greeting. " * 600
        events = self.converse(server, api, [("Read the notes.", first_awaits),
                                             ("Mend greeting.py." + more, "agent_end")],
                               window, compaction)
        self.assertEqual(script.done, 4)
        self.assertIn("The notes are of no importance.", script.prompts[-1])
        self.assertNotIn("no importance.\nA note", script.prompts[-1])
        self.assertIn("Hello", (self.project / "greeting.py").read_text())
        return [event["reason"] for event in events if event["type"] == "compaction_end"]

    def test_a_context_that_overflows(self):
        for api in APIS:
            with self.subTest(api):
                # pi thinks that there is more room than there is, and must see what it is told.
                reasons = self.long_conversation(api, context=10_000, window=200_000,
                                                 compaction={"keepRecentTokens": 2_000},
                                                 first_awaits="agent_end")
                self.assertEqual(reasons, ["overflow"])

    def test_a_context_that_fills_up(self):
        # What the server counts tells pi when it is time.
        reasons = self.long_conversation(
            APIS[0], context=24_000, window=10_000, first_awaits="compaction_end",
            compaction={"reserveTokens": 2_000, "keepRecentTokens": 2_000})
        self.assertEqual(set(reasons), {"threshold"})


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv.pop(2))
    npm_packages.install(SOURCE, folder)
    Pi.PROGRAM = folder.resolve() / "node_modules" / ".bin" / "pi"
    main()
