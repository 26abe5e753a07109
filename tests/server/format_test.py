#!/usr/bin/env python3
"""`response_format` and `grammar`: format_test.py PROGRAM [TEST]..."""

import json
import sys
import threading
import time
import unittest

from serving import Serving, ServerTest, events

PROGRAM = ""
MODES = ("ar", "ngram", "sd", "ssd", "sssd", "auto")
SCHEMA = {"type": "object", "additionalProperties": False, "required": ["name", "age", "tags"],
          "properties": {"name": {"type": "string", "maxLength": 12},
                         "age": {"type": "integer", "minimum": 1, "maximum": 9},
                         "tags": {"type": "array", "maxItems": 2,
                                  "items": {"enum": ["red", "big", "old"]}}}}
LIST = 'root ::= ("- " [a-z]{1,8} "\\n"){3}'


def schema_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema,
                                                   "strict": True}}


def large_schema(properties):
    """With much to compile, and much to learn for each mask."""
    return {"type": "object", "properties": {
        f"property_{i}": {"type": "string", "pattern": f"^[a-z]{{1,{3 + i % 5}}}x{i}$"}
        for i in range(properties)}}


class Formats(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "-np", 8, "--modes", ",".join(MODES))

    def chat(self, **fields):
        return self.succeed(self.server.chat("Who is Lily?", **{"max_tokens": 200, **fields}))

    def check(self, text):
        value = json.loads(text)
        self.assertEqual(list(value), ["name", "age", "tags"])
        self.assertLessEqual(len(value["name"]), 12)
        self.assertIn(value["age"], range(1, 10))
        self.assertLessEqual(set(value["tags"]), {"red", "big", "old"})

    def test_a_schema_is_kept_and_every_mode_gives_the_same(self):
        for options in ({"temperature": 0}, {"temperature": 1, "seed": 7, "n": 3}):
            answers = set()
            for mode in MODES:
                body = self.chat(response_format=schema_format(SCHEMA), **options,
                                 speculative={"mode": mode})
                for choice in body["choices"]:
                    self.assertEqual(choice["finish_reason"], "stop")
                    self.check(choice["message"]["content"])
                answers.add(tuple(c["message"]["content"] for c in body["choices"]))
            self.assertEqual(len(answers), 1, answers)

    def test_streams_say_the_same(self):
        for mode in MODES:
            fields = {"prompt": "Lily is", "max_tokens": 200, "seed": 3, "n": 2, "logprobs": 2,
                      "response_format": schema_format(SCHEMA), "speculative": {"mode": mode}}
            whole = self.succeed(self.server.post("/v1/completions", fields))
            connection, response = self.server.stream(
                "/v1/completions", {**fields, "speculation_trace": True})
            texts = ["", ""]
            for event in events(response):
                choice = event["choices"][0]
                texts[choice["index"]] += choice["text"]
            connection.close()
            self.assertEqual(texts, [choice["text"] for choice in whole["choices"]])
            for text in texts:
                self.check(text)

    def test_a_grammar_is_kept(self):
        answers = set()
        for mode in MODES:
            body = self.chat(grammar=LIST, seed=2, speculative={"mode": mode})
            answers.add(body["choices"][0]["message"]["content"])
        self.assertEqual(len(answers), 1, answers)
        self.assertRegex(answers.pop(), r"\A(- [a-z]{1,8}\n){3}\Z")

    def test_json_objects_and_text(self):
        body = self.chat(response_format={"type": "json_object"}, seed=1, max_tokens=400)
        if body["choices"][0]["finish_reason"] == "stop":
            self.assertIsInstance(json.loads(body["choices"][0]["message"]["content"]), dict)
        else:
            self.assertTrue(body["choices"][0]["message"]["content"].startswith("{"))
        plain = self.chat(seed=1, max_tokens=20)["choices"]
        self.assertEqual(self.chat(seed=1, max_tokens=20, response_format={"type": "text"})["choices"],
                         plain)

    def test_an_answer_that_is_cut_says_so(self):
        body = self.chat(response_format=schema_format(SCHEMA), max_tokens=4)
        self.assertEqual(body["choices"][0]["finish_reason"], "length")
        self.assertRaises(json.JSONDecodeError, json.loads, body["choices"][0]["message"]["content"])

    def test_what_is_wrong_is_said(self):
        def refuse(param, saying, **fields):
            status, _, body = self.server.chat(**fields)
            self.assertEqual((status, body["error"]["param"]), (400, param), body)
            self.assertRegex(body["error"]["message"], saying)
            self.assertNotIn("\n", body["error"]["message"])
        schema = "response_format.json_schema.schema"
        refuse(schema, "at /properties/a: the keyword 'unevaluatedItems' is not supported",
               response_format=schema_format({"properties": {"a": {"unevaluatedItems": {}}}}))
        refuse("response_format.type", "text, json_object or json_schema",
               response_format={"type": "xml"})
        refuse("response_format", "contradict", grammar=LIST, response_format={"type": "json_object"})
        refuse("grammar", "line 1", grammar="root ::= (")
        refuse("grammar", "missing", grammar="root ::= missing")
        refuse("grammar", "left recursion|itself", grammar='root ::= root "a"')
        refuse("grammar", "too large|steps|instructions", grammar='root ::= (("a"{900}){900}){9}')
        refuse("ignore_eos", "grammar", grammar=LIST, ignore_eos=True)
        status, _, body = self.server.post("/v1/chat/completions",
                                           '{"messages": [], "seed": 1, "seed": 1}')
        self.assertEqual((status, "'seed' twice" in body["error"]["message"]), (400, True), body)

    def test_large_schemas_hold_up_nobody(self):
        """While large schemas are compiled one after the other, a stream goes on."""
        gaps = []

        def watch():
            connection, response = self.server.stream("/v1/completions", {
                "prompt": "Once upon a time", "max_tokens": 100000, "n": 8, "ignore_eos": True})
            last = time.monotonic()
            for _ in events(response):
                gaps.append(time.monotonic() - last)
                last = time.monotonic()
            connection.close()

        watcher = threading.Thread(target=watch)
        watcher.start()
        for i in range(3):
            self.succeed(self.server.chat(max_tokens=8, response_format=schema_format(
                large_schema(300 + i))))
        watcher.join()
        self.assertLess(max(gaps), 5)  # Far more than it takes; compiling in the engine would be worse.


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
