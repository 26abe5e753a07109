#!/usr/bin/env python3
"""Calls of tools and thoughts through every door: tools_test.py PROGRAM [TEST]...

The bundled model knows nothing of tools: what it must call, it calls by the grammar. A template
that opens a thought makes it think."""

import json
import sys
import tempfile
import unittest

from serving import Serving, ServerTest, events

PROGRAM = ""
MODES = ("ar", "ngram", "sd", "ssd", "sssd", "auto")
PARAMETERS = {"type": "object", "additionalProperties": False, "required": ["place", "days"],
              "properties": {"place": {"enum": ["here", "there"]},
                             "days": {"type": "integer", "minimum": 1, "maximum": 9}}}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "The weather.",
                                            "parameters": PARAMETERS}}
NOW = {"type": "function", "function": {"name": "now", "parameters": {
    "type": "object", "additionalProperties": False, "properties": {}}}}
QUESTION = [{"role": "user", "content": "What is the weather?"}]


class Tools(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "-np", 8, "--modes", ",".join(MODES), "--chat-template",
                             "hermes")

    def ask(self, **fields):
        fields = {"messages": QUESTION, "tools": [WEATHER, NOW], "max_tokens": 120, "seed": 5,
                  "parallel_tool_calls": False, **fields}
        return self.server.post("/v1/chat/completions", fields)

    def choice(self, **fields):
        return self.succeed(self.ask(**fields))["choices"][0]

    def check(self, call):
        self.assertEqual(call["type"], "function")
        arguments = json.loads(call["function"]["arguments"])
        if call["function"]["name"] == "weather":
            self.assertEqual(list(arguments), ["place", "days"])
            self.assertIn(arguments["place"], ("here", "there"))
            self.assertIn(arguments["days"], range(1, 10))
        else:
            self.assertEqual((call["function"]["name"], arguments), ("now", {}))

    def test_what_must_be_called_is_called_alike_in_every_mode(self):
        for seed in range(3):
            calls = set()
            for mode in MODES:
                choice = self.choice(tool_choice="required", seed=seed, speculative={"mode": mode})
                self.assertEqual(choice["finish_reason"], "tool_calls")
                self.assertIsNone(choice["message"]["content"])
                call, = choice["message"]["tool_calls"]
                self.check(call)
                self.assertRegex(call["id"], r"\A[0-9a-z]{9}\Z")
                calls.add(json.dumps(call["function"]))
            self.assertEqual(len(calls), 1, calls)

    def test_the_one_that_is_named_is_called(self):
        for name in ("weather", "now"):
            choice = self.choice(tool_choice={"type": "function", "function": {"name": name}})
            self.assertEqual(choice["message"]["tool_calls"][0]["function"]["name"], name)

    def test_several_calls(self):
        choice = self.choice(tool_choice="required", parallel_tool_calls=True, max_tokens=400)
        for call in choice["message"]["tool_calls"][:-1]:
            self.check(call)
        ids = [call["id"] for call in choice["message"]["tool_calls"]]
        self.assertEqual(len(ids), len(set(ids)))

    def test_streams_say_the_same(self):
        for mode in MODES:
            fields = {"tool_choice": "required", "speculative": {"mode": mode}, "n": 2, "seed": 3}
            whole = self.succeed(self.ask(**fields))["choices"]
            body = {"messages": QUESTION, "tools": [WEATHER, NOW], "max_tokens": 120,
                    "parallel_tool_calls": False, **fields}
            connection, response = self.server.stream("/v1/chat/completions", body)
            calls, finish = [[], []], [None, None]
            for event in events(response):
                choice = event["choices"][0]
                finish[choice["index"]] = choice["finish_reason"]
                for call in choice["delta"].get("tool_calls", []):
                    if "id" in call:
                        calls[choice["index"]].append(call["function"])
                    else:
                        arguments = call["function"]["arguments"]
                        calls[choice["index"]][call["index"]]["arguments"] += arguments
            connection.close()
            for choice in whole:
                expected = [call["function"] for call in choice["message"]["tool_calls"]]
                self.assertEqual(calls[choice["index"]], expected)
                self.assertEqual(finish[choice["index"]], choice["finish_reason"])

    def test_without_need_nothing_is_called_and_the_text_is_that_without_a_grammar(self):
        plain = self.choice(max_tokens=40)
        self.assertNotIn("tool_calls", plain["message"])
        self.assertEqual(plain["finish_reason"], "length")
        strict = {**WEATHER, "function": {**WEATHER["function"], "strict": True}}
        texts = {self.choice(max_tokens=40, tools=[strict, NOW],
                             speculative={"mode": mode})["message"]["content"] for mode in MODES}
        self.assertEqual(len(texts), 1, texts)

    def test_a_conversation_with_calls_is_read(self):
        tools = [NOW]  # The model's context is short.
        call = self.choice(tools=tools, tool_choice="required")["message"]
        messages = [*QUESTION, call, {"role": "tool", "content": "Noon.",
                                      "tool_call_id": call["tool_calls"][0]["id"]}]
        body = {"messages": messages, "tools": tools}
        prompt = self.succeed(self.server.post("/apply-template", body))["prompt"]
        function = call["tool_calls"][0]["function"]
        arguments = json.dumps(json.loads(function["arguments"]))
        self.assertIn(f'<tool_call>\n{{"name": "{function["name"]}", "arguments": {arguments}}}\n'
                      "</tool_call>", prompt)
        self.assertIn("<tool_response>\nNoon.\n</tool_response>", prompt)
        self.assertIn(json.dumps(NOW), prompt)
        self.assertTrue(self.choice(messages=messages, tools=tools, max_tokens=8)["message"]["content"])

    def test_other_doors_call_too(self):
        function = self.choice(tool_choice="required")["message"]["tool_calls"][0]["function"]
        arguments = json.loads(function["arguments"])
        tools = [{"name": tool["function"]["name"],
                  "input_schema": tool["function"]["parameters"]} for tool in (WEATHER, NOW)]
        tools[0]["description"] = "The weather."
        body = self.succeed(self.server.post("/v1/messages", {
            "messages": QUESTION, "tools": tools, "max_tokens": 120, "seed": 5,
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}))
        self.assertEqual(body["stop_reason"], "tool_use")
        self.assertEqual((body["content"][0]["name"], body["content"][0]["input"]),
                         (function["name"], arguments))
        flat = [{"type": "function", **tool["function"]} for tool in (WEATHER, NOW)]
        body = self.succeed(self.server.post("/v1/responses", {
            "input": QUESTION[0]["content"], "tools": flat, "tool_choice": "required",
            "parallel_tool_calls": False, "max_output_tokens": 120, "seed": 5}))
        self.assertEqual((body["output"][0]["type"], body["output"][0]["name"]),
                         ("function_call", function["name"]))
        self.assertEqual(body["output"][0]["arguments"], function["arguments"])
        for stream in (False, True):
            answer = self.server.post("/api/chat", {
                "messages": QUESTION, "tools": [WEATHER, NOW], "tool_choice": "required",
                "parallel_tool_calls": False, "stream": stream,
                "options": {"seed": 5, "num_predict": 120}})
            body = answer[2]
            lines = [body] if not stream else [json.loads(line) for line in body.splitlines()]
            calls = [call for line in lines for call in line["message"].get("tool_calls", [])]
            self.assertEqual(calls, [{"function": {"name": function["name"],
                                                   "arguments": arguments}}])

    def test_what_cannot_be_called_is_refused(self):
        odd = {"type": "function", "function": {"name": "odd", "parameters": {
            "type": "object", "unevaluatedProperties": False}}}
        status, _, body = self.ask(tools=[odd], tool_choice="required")
        self.assertEqual((status, body["error"]["param"]), (400, "tools"))
        self.assertIn("'odd'", body["error"]["message"])
        self.assertEqual(self.choice(tools=[odd], max_tokens=4)["finish_reason"], "length")


class WithoutTools(unittest.TestCase):
    def test_a_template_that_calls_nothing(self):
        with Serving(PROGRAM, "--chat-template", "chatml") as server:
            status, _, body = server.chat(tools=[NOW])
            self.assertEqual((status, body["error"]["param"]), (400, "tools"))
            self.assertEqual(server.chat(tools=[NOW], tool_choice="none", max_tokens=2)[0], 200)


    def test_a_form_by_its_name(self):
        with Serving(PROGRAM, "--chat-template", "chatml", "--tool-format", "gemma") as server:
            self.assertEqual(server.get("/props")[2]["tool_format"], "gemma")
            status, _, body = server.chat(tools=[NOW, WEATHER], tool_choice="required",
                                          parallel_tool_calls=False, max_tokens=90)
            self.assertEqual(status, 200, body)
            call, = body["choices"][0]["message"]["tool_calls"]
            self.assertIn(call["function"]["name"], ("now", "weather"))
            json.loads(call["function"]["arguments"])


class SystemTools(ServerTest):
    """A template that reads tools from the system message, as Phi-4 mini's."""

    TEMPLATE = ("{% for message in messages %}{{ '<|' + message.role + '|>' + message.content }}"
                "{% if message.role == 'system' and message.tools is defined %}"
                "{{ '<|tool|>' + message.tools + '<|/tool|>' }}{% endif %}{{ '<|end|>' }}"
                "{% endfor %}{{ '<|assistant|>' }}{# <|tool_call|> <|/tool_call|> #}")

    @classmethod
    def setUpClass(cls):
        cls.file = tempfile.NamedTemporaryFile("w", suffix=".jinja")
        cls.file.write(cls.TEMPLATE)
        cls.file.flush()
        cls.server = Serving(PROGRAM, "-np", 4, "--modes", ",".join(MODES), "--chat-template",
                             cls.file.name)

    def test_the_template_is_told_of_them(self):
        told = json.dumps([tool["function"] for tool in (WEATHER, NOW)])
        for messages in (QUESTION, [{"role": "system", "content": "Be kind."}, *QUESTION]):
            prompt = self.succeed(self.server.post("/apply-template", {
                "messages": messages, "tools": [WEATHER, NOW]}))["prompt"]
            said = "Be kind." if len(messages) > 1 else ""
            self.assertEqual(prompt, f"<|system|>{said}<|tool|>{told}<|/tool|><|end|>"
                                     f"<|user|>{QUESTION[0]['content']}<|end|><|assistant|>")

    def test_they_are_called_alike_in_every_mode(self):
        self.assertEqual(self.server.get("/props")[2]["tool_format"], "phi")
        calls = []
        for mode in MODES:
            body = {"messages": QUESTION, "tools": [WEATHER, NOW], "tool_choice": "required",
                    "parallel_tool_calls": False, "max_tokens": 90, "seed": 7,
                    "speculative": {"mode": mode}}
            choice = self.succeed(self.server.post("/v1/chat/completions", body))["choices"][0]
            self.assertEqual(choice["finish_reason"], "tool_calls")
            call = choice["message"]["tool_calls"][0]["function"]
            connection, response = self.server.stream("/v1/chat/completions", body)
            deltas = [event["choices"][0]["delta"] for event in events(response)]
            connection.close()
            parts = [part["function"] for delta in deltas for part in delta.get("tool_calls", [])]
            self.assertEqual({"name": parts[0]["name"],
                              "arguments": "".join(part["arguments"] for part in parts)}, call)
            json.loads(call["arguments"])
            if call not in calls:
                calls.append(call)
        self.assertEqual(len(calls), 1, calls)


class Thoughts(unittest.TestCase):
    TEMPLATE = ("{%- for message in messages %}{{ message.content + '\\n' }}{% endfor %}"
                "{%- if enable_thinking is not defined or enable_thinking %}{{ '<think>\\n' }}{% endif %}"
                "{#- </think> #}")

    @classmethod
    def setUpClass(cls):
        cls.file = tempfile.NamedTemporaryFile("w", suffix=".jinja")
        cls.file.write(cls.TEMPLATE)
        cls.file.flush()

    def ask(self, server, **fields):
        status, _, body = server.chat(seed=2, max_tokens=60, **fields)
        self.assertEqual(status, 200, body)
        return body["choices"][0]["message"]

    def test_thoughts_are_apart(self):
        with Serving(PROGRAM, "--chat-template", self.file.name) as server:
            message = self.ask(server)  # It never ends its thought.
            self.assertEqual(message["content"], "")
            self.assertTrue(message["reasoning_content"])
            raw = self.ask(server, reasoning_format="none")
            self.assertNotIn("reasoning_content", raw)
            self.assertEqual(raw["content"].strip(), message["reasoning_content"])
            self.assertTrue(self.ask(server, reasoning_effort="none")["content"])
            status, _, body = server.post("/v1/messages", {
                "messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 60,
                "seed": 2})
            self.assertEqual(status, 200)
            self.assertEqual([block["type"] for block in body["content"]], ["thinking"])
            self.assertEqual(body["content"][0]["thinking"], message["reasoning_content"])
    def test_thoughts_have_a_budget(self):
        def counted(message):
            _, _, body = server.post("/tokenize", {"content": message["reasoning_content"]})
            return body["count"]

        with Serving(PROGRAM, "--chat-template", self.file.name, "--modes", ",".join(MODES),
                     "--reasoning-budget", 30) as server:
            for mode in MODES:
                by_mode = {"speculative": {"mode": mode}}
                message = self.ask(server, **by_mode)  # The server's own.
                self.assertIn(counted(message), range(25, 31))
                self.assertTrue(message["content"])
                short = self.ask(server, thinking_budget_tokens=8,
                                 reasoning_budget_message=" Enough.", **by_mode)
                self.assertTrue(short["reasoning_content"].endswith(" Enough."), short)
                self.assertTrue(message["reasoning_content"].startswith(
                    short["reasoning_content"].removesuffix(" Enough.")))
                self.assertTrue(short["content"])
                none = self.ask(server, thinking_token_budget=0, **by_mode)
                self.assertNotIn("reasoning_content", none)
                form = {"type": "json_schema", "json_schema": {
                    "name": "n", "schema": {"enum": ["yes", "no"]}}}
                held = self.ask(server, thinking_budget_tokens=8, response_format=form, **by_mode)
                self.assertIn(counted(held), range(4, 9))
                self.assertIn(held["content"], ('"yes"', '"no"'))
                if mode == "ar":
                    truth = message, short, none, held
                self.assertEqual((message, short, none, held), truth, mode)
            self.assertEqual(self.ask(server, thinking_budget_tokens=-1)["content"], "")
            status, _, body = server.chat(thinking_budget_tokens=8,
                                          reasoning_budget_message="</think>")
            self.assertEqual((status, body["error"]["param"]), (400, "thinking_budget_tokens"))

    def test_thoughts_stay_with_what_is_said(self):
        with Serving(PROGRAM, "--chat-template", self.file.name) as server:
            raw = self.ask(server, reasoning_format="none")
        with Serving(PROGRAM, "--chat-template", self.file.name, "--reasoning-format",
                     "none") as server:
            self.assertEqual(self.ask(server), raw)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
