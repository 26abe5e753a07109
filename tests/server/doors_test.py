#!/usr/bin/env python3
"""Every form in which a running server can be asked gives the same text: doors_test.py PROGRAM"""

import contextlib
import json
import subprocess
import sys
import tempfile
import unittest

from serving import ServerTest, Serving

MESSAGES = [{"role": "user", "content": "Tell me a story about a cat."}]
SEED = 4
TOKENS = 40
SAMPLING = {"temperature": 0.8, "top_k": 40, "seed": SEED}
OLLAMA = {"options": {**SAMPLING, "num_predict": TOKENS}}

# Each door: its path, what it is asked, and how the text is found in a whole reply and in the data
# of a part.
DOORS = {
    "messages": ("/v1/messages", {"messages": MESSAGES, "max_tokens": TOKENS, **SAMPLING},
                 lambda reply: reply["content"][0]["text"],
                 lambda part: part["delta"]["text"] if part["type"] == "content_block_delta" else ""),
    "responses": ("/v1/responses",
                  {"input": MESSAGES[0]["content"], "max_output_tokens": TOKENS, **SAMPLING},
                  lambda reply: reply["output"][0]["content"][0]["text"],
                  lambda part: part["delta"] if part["type"].endswith("text.delta") else ""),
    "ollama chat": ("/api/chat", {"messages": MESSAGES, **OLLAMA},
                    lambda reply: reply["message"]["content"],
                    lambda part: part["message"]["content"]),
    "ollama generate": ("/api/generate", {"prompt": MESSAGES[0]["content"], **OLLAMA},
                        lambda reply: reply["response"], lambda part: part["response"]),
}


def streamed(server, path, body):
    """The content type and the JSON of each part."""
    connection, response = server.stream(path, body)
    try:
        lines = response.read().decode().splitlines()
        lines = [line.removeprefix("data: ") for line in lines if line]
        parts = [json.loads(line) for line in lines if not line.startswith("event: ")]
        return response.headers["Content-Type"], parts
    finally:
        connection.close()


class Doors(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM)

    def chat(self):
        reply = self.server.post("/v1/chat/completions",
                                 {"messages": MESSAGES, "max_tokens": TOKENS, **SAMPLING})
        return self.succeed(reply)["choices"][0]["message"]["content"]

    def test_every_door_gives_the_same_text(self):
        expected = self.chat()
        for name, (path, body, of_whole, of_part) in DOORS.items():
            with self.subTest(name):
                whole = self.succeed(self.server.post(path, {**body, "stream": False}))
                self.assertEqual(of_whole(whole), expected)
                self.assertEqual(whole["speculation"]["seed"], SEED)
                kind, parts = streamed(self.server, path, body)
                self.assertEqual("".join(of_part(part) for part in parts), expected)
                self.assertEqual(kind, "application/x-ndjson" if "ollama" in name
                                 else "text/event-stream")

    def test_every_door_takes_every_mode(self):
        for name, (path, body, of_whole, _) in DOORS.items():
            with self.subTest(name):
                texts = set()
                for mode in ("ar", "ngram", "sd", "ssd"):
                    reply = self.succeed(self.server.post(
                        path, {**body, "stream": False, "speculative": {"mode": mode}}))
                    self.assertEqual(reply["speculation"]["mode"], mode)
                    texts.add(of_whole(reply))
                self.assertEqual(len(texts), 1)

    def test_llama_cpp(self):
        prompt = "Once upon a time"
        body = {"prompt": prompt, "n_predict": TOKENS, **SAMPLING}
        completion = self.succeed(self.server.complete(prompt, max_tokens=TOKENS, **SAMPLING))
        whole = self.succeed(self.server.post("/completion", body))
        self.assertEqual(whole["content"], completion["choices"][0]["text"])
        self.assertEqual((whole["stop_type"], whole["prompt"]), ("limit", prompt))
        self.assertEqual(whole["tokens_predicted"], TOKENS)
        _, parts = streamed(self.server, "/completion", body)
        self.assertEqual("".join(part["content"] for part in parts), whole["content"])
        tokens = sum((part["tokens"] for part in parts), [])
        again = self.succeed(self.server.post("/completion", {**body, "return_tokens": True}))
        self.assertEqual(again["tokens"], tokens)
        self.assertEqual(len(tokens), TOKENS)
        word = whole["content"].split()[4]
        cut = self.succeed(self.server.post("/completion", {**body, "stop": [word], "n_probs": 2}))
        self.assertEqual((cut["stop_type"], cut["stopping_word"]), ("word", word))
        self.assertEqual(cut["content"], whole["content"][:whole["content"].index(word)])
        self.assertEqual(len(cut["completion_probabilities"]), cut["tokens_predicted"])
        shaped = self.succeed(self.server.post(
            "/completion", {**body, "json_schema": {"enum": ["red", "blue"]}}))
        self.assertIn(json.loads(shaped["content"]), ("red", "blue"))

    def test_probabilities_leave_the_prefix_cache_on(self):
        body = {"prompt": "Once upon a time there was a little dog who had a red ball. " * 6,
                "n_predict": 4, "temperature": 0, "n_probs": 1}
        first = self.succeed(self.server.post("/completion", body))
        again = self.succeed(self.server.post("/completion", body))
        self.assertEqual(first["tokens_cached"], 0)
        self.assertGreater(again["tokens_cached"], 0)
        self.assertEqual(again["completion_probabilities"], first["completion_probabilities"])

    def test_a_chat_as_text(self):
        text = self.succeed(self.server.post("/apply-template", {"messages": MESSAGES}))["prompt"]
        self.assertIn(MESSAGES[0]["content"], text)
        reply = self.succeed(self.server.post(
            "/completion", {"prompt": text, "n_predict": TOKENS, **SAMPLING}))
        count = self.succeed(self.server.post("/v1/messages/count_tokens",
                                              {"messages": MESSAGES}))["input_tokens"]
        self.assertEqual(reply["tokens_evaluated"], count)
        # A completion goes on with a text and keeps its leading space; a chat's turn begins one.
        self.assertEqual(reply["content"].strip(), self.chat().strip())

    def test_a_template_is_told_what_the_request_says(self):
        jinja = "<|im_start|>{{ messages[-1].content }} {{ mood|default('calm') }} {{ who }}"
        if_no = "{% if not messages[-1].content %}{{ raise_exception('Say something.') }}{% endif %}"
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write(jinja + if_no)
            file.flush()
            with Serving(PROGRAM, "--mode", "ar", "--chat-template", file.name,
                         "--chat-template-kwargs", '{"who": "me", "mood": "good"}') as server:
                def text(content, **body):
                    return server.post("/apply-template", {
                        "messages": [{"role": "user", "content": content}], **body})
                self.assertEqual(text("Hi")[2]["prompt"], "<|im_start|>Hi good me")
                self.assertEqual(
                    text("Hi", chat_template_kwargs={"mood": "bad"})[2]["prompt"],
                    "<|im_start|>Hi bad me")
                status, _, body = text("")
                self.assertEqual(status, 400)
                self.assertIn("Say something.", body["error"]["message"])
                self.assertEqual(text("Hi", chat_template_kwargs=[1])[0], 400)

    def test_receipts_are_of_what_was_written(self):
        def check(receipt):
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump(receipt, file)
                file.flush()
                return subprocess.run([PROGRAM, "check", file.name, "--json"], text=True,
                                      capture_output=True).stdout
        body = {"max_tokens": TOKENS, **SAMPLING, "n": 2, "receipt": True}
        for path, asked in (("/v1/chat/completions", {"messages": MESSAGES}),
                            ("/v1/completions", {"prompt": "Once upon", "echo": True,
                                                 "logprobs": 0})):
            with self.subTest(path):
                reply = self.succeed(self.server.post(path, {**asked, **body}))
                receipts = [choice["receipt"] for choice in reply["choices"]]
                self.assertNotEqual(receipts[0]["tokens"], receipts[1]["tokens"])
                for choice, receipt in zip(reply["choices"], receipts):
                    self.assertEqual(json.loads(check(receipt)),
                                     {"genuine": True, "tokens": len(receipt["tokens"])})
                connection, response = self.server.stream(path, {**asked, **body, "stream": True})
                with contextlib.closing(connection):
                    events = [json.loads(line.removeprefix("data: "))
                              for line in response.read().decode().splitlines()
                              if line.startswith("data: {")]
                streamed = {event["choices"][0]["index"]: event["receipt"]
                            for event in events if "receipt" in event}
                self.assertEqual([streamed[0], streamed[1]], receipts)
        receipts[0]["seed"] += 1
        self.assertFalse(json.loads(check(receipts[0]))["genuine"])
        self.assertNotIn("receipt", self.succeed(self.server.post(
            "/v1/completions", {"prompt": "x", "max_tokens": 2}))["choices"][0])

    def test_slots(self):
        slots = self.succeed(self.server.get("/slots"))
        limits = self.succeed(self.server.get("/props"))["limits"]
        self.assertEqual(len(slots), limits["batch"])
        self.assertEqual(sum(slot["is_processing"] for slot in slots), 0)

    def test_unknown_fields_are_named(self):
        path, body, _, _ = DOORS["ollama chat"]
        body = {**body, "stream": False, "options": {**body["options"], "unheard": 1}}
        _, headers, _ = self.server.post(path, body)
        self.assertEqual(headers["X-Foretoken-Ignored"], "options.unheard")
        for path, body in (("/v1/messages/count_tokens", {"messages": MESSAGES}),
                           ("/apply-template", {"messages": MESSAGES}),
                           ("/api/show", {"model": self.server.model})):
            with self.subTest(path):
                status, headers, _ = self.server.post(path, {**body, "unheard": 1})
                self.assertEqual((status, headers["X-Foretoken-Ignored"]), (200, "unheard"))
                self.assertNotIn("X-Foretoken-Ignored", self.server.post(path, body)[1])


class Keys(unittest.TestCase):
    def test_errors_have_the_form_of_their_door(self):
        with Serving(PROGRAM, "--api-key", "secret") as server:
            status, _, body = server.post("/v1/messages", {})
            self.assertEqual((status, body["error"]["type"]), (401, "authentication_error"))
            status, _, body = server.post("/api/chat", {})
            self.assertEqual(status, 401)
            self.assertIsInstance(body["error"], str)
            status, _, body = server.get("/slots")
            self.assertEqual((status, body["error"]["code"]), (401, 401))
            status, _, body = server.post("/v1/messages/count_tokens", {"messages": MESSAGES},
                                          headers={"x-api-key": "secret"})
            self.assertEqual(status, 200, body)
            status, _, body = server.post("/api/chat", {"messages": "Hi"},
                                          headers={"Authorization": "Bearer secret"})
            self.assertEqual(status, 400)
            self.assertIn("'messages'", body["error"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
