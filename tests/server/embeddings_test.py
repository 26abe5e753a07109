#!/usr/bin/env python3
"""Embeddings from a running server, through every door: embeddings_test.py PROGRAM [TEST]..."""

import base64
import struct
import sys
import threading
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
        refused("input", "at most 128", input=["a"] * 129)
        refused("input", "one client may have 6", input=["a"] * 7)
        refused("input", "tokens", input="a story " * 2000)
        refused("input", "send fewer texts", input=["a story " * 60] * 6)
        refused("input", "outside the vocabulary", input=[1, 100000])
        refused("input", "not empty", input="")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
