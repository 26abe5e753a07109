#!/usr/bin/env python3
"""`echo` with `logprobs` on /v1/completions: prompt_logprobs_test.py PROGRAM [TEST]..."""

import concurrent.futures
import math
import sys
import unittest

from serving import Serving, ServerTest, events

PROGRAM = ""
MODES = ("ar", "sd", "ssd", "auto")
TEXTS = ("Once upon a time, there was a little girl named Lily.",
         "Tom had a big, red ball — été 🙂 and a dog.", "One day, a small dragon")


class Shared(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "-np", 4)

    def tokens(self, text):
        return self.succeed(self.server.post(
            "/tokenize", {"content": text, "add_special": True}))["tokens"]

    def generated(self, tokens):
        """The same by requests that generate each token after those before it."""
        logprobs = {"token_logprobs": [None], "top_logprobs": [None]}
        for length in range(1, len(tokens)):
            body = self.succeed(self.server.complete(
                tokens[:length], max_tokens=1, temperature=0, logprobs=2,
                logit_bias={str(tokens[length]): 1e6}))
            for name, list_ in logprobs.items():
                list_ += body["choices"][0]["logprobs"][name]
        return logprobs


class PromptLogprobs(Shared):
    def score(self, prompt, **fields):
        fields = {"max_tokens": 0, "echo": True, "logprobs": 2, "temperature": 0, **fields}
        return self.succeed(self.server.complete(prompt, **fields))

    def test_are_those_of_requests_that_generate_the_tokens(self):
        for text in TEXTS:
            tokens = self.tokens(text)
            truth = self.generated(tokens)
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


def loglikelihoods(server, pairs, batch, workers):
    """(log-likelihood, whether greedy) of each (context, continuation), in tokens, by the requests
    that lm-eval 0.4.13 sends for its model local-completions and read as it reads the answers:
    token arrays, the longest first, one generated token that is left out again."""
    order = sorted(range(len(pairs)), key=lambda i: (-len(sum(pairs[i], [])), sum(pairs[i], [])))
    batches = [order[i:i + batch] for i in range(0, len(order), batch)]

    def ask(indices):
        status, _, body = server.post("/v1/completions", {
            "model": "demo-target", "prompt": [sum(pairs[i], []) for i in indices],
            "temperature": 0, "max_tokens": 1, "logprobs": 1, "seed": 1234, "echo": True})
        if status != 200:
            raise AssertionError(body)
        results = {}
        for i, choice in zip(indices, sorted(body["choices"], key=lambda c: c["index"])):
            scored = slice(len(pairs[i][0]), -1)
            own = choice["logprobs"]["token_logprobs"][scored]
            top = choice["logprobs"]["top_logprobs"][scored]
            results[i] = (sum(own), all(one == max(many.values())
                                        for one, many in zip(own, top)))
        return results

    results = {}
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for part in pool.map(ask, batches):
            results.update(part)
    return [results[i] for i in range(len(pairs))]


class LmEval(Shared):
    def continuation(self, context):
        """The tokens that the model itself goes on with."""
        connection, response = self.server.stream("/v1/completions", {
            "prompt": context, "max_tokens": 300, "temperature": 0, "speculation_trace": True})
        tokens = [token["id"] for event in events(response) if "speculation" in event
                  for token in event["speculation"]["tokens"]]
        connection.close()
        return tokens

    def test_loglikelihoods(self):
        contexts = [self.tokens(text) for text in TEXTS]
        continuations = [self.tokens(" " + text)[1:] for text in
                         ("She liked to play.", "The end", "zebra quantum")]
        pairs = [(context, continuation) for context in contexts
                 for continuation in continuations]
        pairs += [(context, self.continuation(context)[:8]) for context in contexts]
        # Here the token that is left out again is an end of sequence.
        story = self.continuation(contexts[2])
        self.assertLess(len(story), 300)
        pairs.append((contexts[2], story[:-1]))

        expected = []
        for context, continuation in pairs:
            truth = self.generated(context + continuation)
            own = truth["token_logprobs"][len(context):]
            top = truth["top_logprobs"][len(context):]
            expected.append((sum(own), all(one == max(many.values())
                                           for one, many in zip(own, top))))
        for batch, workers in ((1, 1), (3, 1), (2, 4)):
            self.assertEqual(loglikelihoods(self.server, pairs, batch, workers), expected)
        self.assertEqual([greedy for _, greedy in expected], [False] * 9 + [True] * 4)
        self.assertTrue(all(math.isfinite(sum_) and sum_ < 0 for sum_, _ in expected))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
