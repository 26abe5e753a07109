#!/usr/bin/env python3
"""Embeddings from a running server, through every door: embeddings_test.py PROGRAM [TEST]..."""

import base64
import json
import struct
import sys
import threading
import time
import unittest

from serving import ServerTest, Serving

PROGRAM = ""
TEXTS = ("Once upon a time, there was a little girl named Lily.",
         "Tom had a big, red ball — été 🙂 and a dog.", "One day, a small dragon " * 12)


class Embeddings(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "-np", 4, "--max-request-tokens", 600, "--client-limit", 6)

    def embed(self, texts, **fields):
        body = self.succeed(self.server.post("/v1/embeddings", {"input": texts, **fields}))
        self.assertEqual([entry["index"] for entry in body["data"]], list(range(len(body["data"]))))
        return body

    def vectors(self, texts, **fields):
        return [entry["embedding"] for entry in self.embed(texts, **fields)["data"]]

    def tokens(self, text):
        return self.succeed(self.server.post(
            "/tokenize", {"content": text, "add_special": True, "parse_special": False}))["tokens"]

    def test_forms_of_input_and_of_output(self):
        body = self.embed(list(TEXTS))
        self.assertEqual((body["object"], body["model"]), ("list", "demo-target"))
        counts = [len(self.tokens(text)) for text in TEXTS]
        self.assertEqual(body["usage"], {"prompt_tokens": sum(counts), "total_tokens": sum(counts)})
        vectors = [entry["embedding"] for entry in body["data"]]
        self.assertEqual(len({tuple(vector) for vector in vectors}), len(TEXTS))
        for text, vector in zip(TEXTS, vectors):
            self.assertEqual(len(vector), 256)
            self.assertAlmostEqual(sum(value * value for value in vector), 1, places=5)
            self.assertEqual(self.vectors(text), [vector])
            self.assertEqual(self.vectors(self.tokens(text)), [vector])
            encoded, = self.vectors(text, encoding_format="base64", dimensions=256)
            packed = struct.pack("<256f", *vector)
            self.assertEqual(base64.b64decode(encoded, validate=True), packed)
        self.assertEqual(self.vectors([self.tokens(text) for text in TEXTS]), vectors)
        self.assertEqual(self.vectors(list(TEXTS), pooling="mean"), vectors)
        last = self.vectors(list(TEXTS), pooling="last")
        self.assertNotEqual(last, vectors)
        self.assertEqual(self.vectors(list(TEXTS), pooling="last"), last)  # Now it is cached.

    def test_other_doors_give_the_same(self):
        vectors = self.vectors(list(TEXTS))
        reply = self.succeed(self.server.post("/api/embed", {"input": list(TEXTS)}))
        self.assertEqual(reply["embeddings"], vectors)
        self.assertEqual(reply["prompt_eval_count"], sum(len(self.tokens(text)) for text in TEXTS))
        reply = self.succeed(self.server.post("/api/embeddings", {"prompt": TEXTS[0]}))
        self.assertEqual(reply, {"embedding": vectors[0]})
        reply = self.succeed(self.server.post("/embedding", {"content": list(TEXTS)}))
        self.assertEqual(reply, [{"index": i, "embedding": [vector]}
                                 for i, vector in enumerate(vectors)])

    def test_beside_generations_of_every_mode(self):
        vectors = self.vectors(list(TEXTS))
        for mode in ("ar", "sd", "ssd"):
            fields = {"max_tokens": 150, "temperature": 0, "ignore_eos": True,
                      "speculative": {"mode": mode}}
            expected = self.succeed(self.server.complete(TEXTS[0], **fields))["choices"]
            found = []
            thread = threading.Thread(target=lambda: found.append(
                self.server.complete(TEXTS[0], **fields)))
            thread.start()
            while thread.is_alive():
                self.assertEqual(self.vectors(list(TEXTS)), vectors)
            thread.join()
            self.assertEqual(self.succeed(found[0])["choices"], expected)

    def test_what_is_refused(self):
        def refused(param, saying, path="/v1/embeddings", **fields):
            status, _, body = self.server.post(path, fields)
            self.assertEqual(status, 400, body)
            self.assertEqual(body["error"]["param"], param)
            self.assertIn(saying, body["error"]["message"])

        refused("dimensions", "must be 256", input="a", dimensions=64)
        refused("input", "at most 2048", input=["a"] * 2049)
        refused("input", "tokens", input="a story " * 2000)
        refused("input", "send fewer texts", input=["a story " * 60] * 6)
        refused("input", "outside the vocabulary", input=[1, 100000])
        refused("input", "not empty", input="")


class ManyTexts(unittest.TestCase):
    """As many as OpenAI takes, of which a few are under way at once."""

    TEXTS = [f"{word} {i}" for i in range(512) for word in ("a dog", "the", "Lily ran to", "red")]

    def embed(self, server, texts, timeout=60):
        status, _, body = server.post("/v1/embeddings", {"input": texts}, timeout=timeout)
        self.assertEqual(status, 200, body)
        return [entry["embedding"] for entry in body["data"]]

    def test_as_many_as_openai_takes(self):
        with Serving(PROGRAM, "-np", 4, "--queue", 0, "--client-limit", 3) as server:
            vectors = self.embed(server, self.TEXTS)
            self.assertEqual(len(vectors), 2048)
            for i in (0, 1, 777, 2046, 2047):
                self.assertEqual(self.embed(server, self.TEXTS[i]), [vectors[i]])
            ollama = server.post("/api/embed", {"input": self.TEXTS})[2]["embeddings"]
            self.assertEqual(ollama, vectors)
            server.wait_idle()

    def test_others_are_not_held_up_by_them(self):
        with Serving(PROGRAM, "-np", 4, "--client-limit", 64) as server:
            expected = server.complete(max_tokens=16, seed=1)[2]["choices"]
            done = threading.Event()
            found = []

            def embed():
                found.append(self.embed(server, self.TEXTS))
                done.set()

            thread = threading.Thread(target=embed)
            thread.start()
            answered = 0
            while not done.is_set():
                status, _, body = server.complete(max_tokens=16, seed=1)
                self.assertEqual(status, 200, body)
                self.assertEqual(body["choices"], expected)
                answered += not done.is_set()
            thread.join()
            self.assertGreater(answered, 2)
            self.assertEqual(len(found[0]), 2048)

    def test_a_client_that_leaves_takes_them_along(self):
        with Serving(PROGRAM, "-np", 2, "--max-request-tokens", 10_000_000) as server:
            for _ in range(3):
                connection = server.connect()
                connection.request("POST", "/v1/embeddings",
                                   json.dumps({"input": ["a story " * 100] * 2048}))
                time.sleep(0.2)
                connection.close()
            server.wait_idle(10)
            self.assertEqual(len(self.embed(server, self.TEXTS[:5])), 5)

    def test_tokens_that_there_are_none_of_are_refused_wherever_they_stand(self):
        with Serving(PROGRAM, "-np", 2) as server:
            status, _, body = server.post("/v1/embeddings", {"input": [[1]] * 2000 + [[100000]]})
            self.assertEqual((status, body["error"]["param"]), (400, "input"))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
