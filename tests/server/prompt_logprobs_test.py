#!/usr/bin/env python3
"""`echo` with `logprobs` on /v1/completions: prompt_logprobs_test.py PROGRAM [TEST]..."""

import sys
import unittest

from serving import Serving, ServerTest, events, generated_logprobs

PROGRAM = ""
MODES = ("ar", "sd", "ssd", "auto")
TEXTS = ("Once upon a time, there was a little girl named Lily.",
         "Tom had a big, red ball — été 🙂 and a dog.", "One day, a small dragon")


class PromptLogprobs(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "-np", 4)

    def tokens(self, text):
        return self.succeed(self.server.post(
            "/tokenize", {"content": text, "add_special": True}))["tokens"]

    def score(self, prompt, **fields):
        fields = {"max_tokens": 0, "echo": True, "logprobs": 2, "temperature": 0, **fields}
        return self.succeed(self.server.complete(prompt, **fields))

    def test_are_those_of_requests_that_generate_the_tokens(self):
        for text in TEXTS:
            tokens = self.tokens(text)
            truth = generated_logprobs(self.server, tokens, top=2)
            for mode in MODES:
                for prompt in (text, tokens):
                    body = self.score(prompt, speculative={"mode": mode})
                    choice = body["choices"][0]
                    for name, values in truth.items():
                        self.assertEqual(choice["logprobs"][name], values)
                    self.assertEqual(choice["text"], text)
                    self.assertEqual(choice["finish_reason"], "length")
                    self.assertEqual(body["usage"]["prompt_tokens"], len(tokens))
                    self.assertEqual(body["usage"]["completion_tokens"], 0)
                    self.assertEqual(body["usage"]["total_tokens"], len(tokens))
                    self.assertEqual(body["usage"]["prompt_tokens_details"], {"cached_tokens": 0})
                    for name, value in body["timings"].items():
                        self.assertGreaterEqual(value, 0, name)

    def test_tokens_lie_where_their_offsets_say(self):
        for text in TEXTS:
            choice = self.score(text, max_tokens=12, logprobs=0)["choices"][0]
            logprobs = choice["logprobs"]
            self.assertEqual(len(logprobs["tokens"]), len(self.tokens(text)) + 12)
            self.assertEqual({len(values) for values in logprobs.values()},
                             {len(logprobs["tokens"])})
            self.assertEqual(logprobs["top_logprobs"][1:], [{}] * (len(logprobs["tokens"]) - 1))
            placed = 0
            for token, offset in zip(logprobs["tokens"], logprobs["text_offset"]):
                if "\ufffd" in token or offset == 0:
                    continue  # Part of a character; or the special token and a space dropped.
                self.assertEqual(choice["text"][offset:offset + len(token)], token)
                placed += 1
            self.assertGreater(placed, 12)
            # What is generated is what is generated without all this.
            plain = self.succeed(self.server.complete(text, max_tokens=12, temperature=0,
                                                      logprobs=0))["choices"][0]
            self.assertEqual(choice["text"], text + plain["text"])
            self.assertEqual(logprobs["token_logprobs"][-12:],
                             plain["logprobs"]["token_logprobs"])
            self.assertEqual(logprobs["text_offset"][-12:],
                             [len(text) + at for at in plain["logprobs"]["text_offset"]])

    def test_a_stream_says_the_same(self):
        for max_tokens in (0, 9):
            for trace in (False, True):
                fields = {"prompt": list(TEXTS), "n": 2, "max_tokens": max_tokens, "echo": True,
                          "logprobs": 1, "temperature": 0.7, "seed": 3}
                whole = self.succeed(self.server.post("/v1/completions", fields))["choices"]
                connection, response = self.server.stream(
                    "/v1/completions", {**fields, "speculation_trace": trace})
                choices = [{"text": "", "logprobs": {}} for _ in whole]
                for event in events(response):
                    part = event["choices"][0]
                    choice = choices[part["index"]]
                    choice["text"] += part["text"]
                    for name, values in (part["logprobs"] or {}).items():
                        choice["logprobs"].setdefault(name, []).extend(values)
                    choice["finish_reason"] = part["finish_reason"]
                connection.close()
                self.assertEqual(choices, [{name: choice[name] for name in choices[0]}
                                           for choice in whole])

    def test_an_end_of_sequence_counts_as_generated(self):
        # lm-eval leaves out the last of what it gets, as it has asked for one token.
        connection, response = self.server.stream("/v1/completions", {
            "prompt": TEXTS[2], "max_tokens": 300, "temperature": 0, "speculation_trace": True})
        story = [token["id"] for event in events(response) if "speculation" in event
                 for token in event["speculation"]["tokens"]]
        connection.close()
        prompt = self.tokens(TEXTS[2]) + story[:-1]
        choice = self.score(prompt, max_tokens=1)["choices"][0]
        self.assertEqual(choice["finish_reason"], "stop")
        self.assertEqual(len(choice["logprobs"]["token_logprobs"]), len(prompt) + 1)

    def test_a_prompt_of_one_token_has_null_only(self):
        for stream in (False, True):
            fields = {"prompt": [5], "max_tokens": 0, "echo": True, "logprobs": 1}
            if stream:
                connection, response = self.server.stream("/v1/completions", fields)
                choice = next(events(response))["choices"][0]
                response.read()
                connection.close()
            else:
                choice = self.succeed(self.server.post("/v1/completions", fields))["choices"][0]
            self.assertEqual(choice["logprobs"]["token_logprobs"], [None])
            self.assertEqual(choice["logprobs"]["top_logprobs"], [None])
            self.assertEqual(choice["logprobs"]["text_offset"], [0])

    def test_sums_beyond_what_one_request_may_have_are_refused(self):
        with Serving(PROGRAM, "--max-request-tokens", 300) as server:
            fields = {"prompt": [5] * 100, "max_tokens": 0, "echo": True}
            self.succeed(server.post("/v1/completions", {**fields, "logprobs": 5}))
            status, _, body = server.post("/v1/completions", {**fields, "logprobs": 6})
            self.assertEqual(status, 400, body)
            self.assertEqual(body["error"]["param"], "logprobs")
            self.assertIn("come to 700, more than the 600", body["error"]["message"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
