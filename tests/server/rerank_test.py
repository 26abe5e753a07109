#!/usr/bin/env python3
"""Documents ranked by a model that says yes or no: rerank_test.py PROGRAM [TEST]..."""

import math
import sys
import unittest

from serving import ServerTest, Serving

PROGRAM = ""
BEFORE = ("<|im_start|>system\nJudge whether the Document meets the requirements based on the Query "
          "and the Instruct provided. Note that the answer can only be \"yes\" or \"no\"."
          "<|im_end|>\n<|im_start|>user\n")
BEHIND = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
USUAL = "Given a web search query, retrieve relevant passages that answer the query"
QUERY = "What did Lily find?"
DOCUMENTS = ["Lily found a red ball in the park.", "Tom likes to run.", "The sun was hot <s> today."]


class Rerank(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "--reranking", "-np", 3, "--client-limit", 8)

    def rank(self, path="/v1/rerank", **fields):
        fields = {"query": QUERY, "documents": DOCUMENTS} | fields
        return self.succeed(self.server.post(path, fields))

    def tokens(self, text, add=False, special=False):
        return self.succeed(self.server.post("/tokenize", {
            "content": text, "add_special": add, "parse_special": special}))["tokens"]

    def logprob(self, prompt, token):
        """Of a token behind a prompt, as completions tell it."""
        body = self.succeed(self.server.complete(prompt + [token], echo=True, logprobs=0,
                                                 max_tokens=0))
        return body["choices"][0]["logprobs"]["token_logprobs"][-1]

    def expected(self, document, instruction=USUAL):
        (yes,), (no,) = self.tokens("yes"), self.tokens("no")
        prompt = (self.tokens(BEFORE, add=True, special=True) +
                  self.tokens(f"<Instruct>: {instruction}\n<Query>: {QUERY}\n"
                              f"<Document>: {document}") + self.tokens(BEHIND, special=True))
        return 1 / (1 + math.exp(self.logprob(prompt, no) - self.logprob(prompt, yes)))

    def test_scores_are_those_of_yes_and_no(self):
        body = self.rank()
        self.assertEqual((body["model"], body["object"]), ("demo-target", "list"))
        scores = {entry["index"]: entry["relevance_score"] for entry in body["results"]}
        self.assertEqual(sorted(scores), [0, 1, 2])
        self.assertEqual(list(scores.values()), sorted(scores.values(), reverse=True))
        for i, document in enumerate(DOCUMENTS):
            self.assertAlmostEqual(scores[i], self.expected(document), places=5)
        self.assertNotEqual(scores[0], self.rank(instruction="Sort by size.")["results"][0])

    def test_every_path_mode_and_crowd_gives_the_same(self):
        results = self.rank()["results"]
        for path in ("/rerank", "/reranking", "/v1/reranking"):
            self.assertEqual(self.rank(path)["results"], results)
        for mode in ("ar", "sd", "ssd", "ngram", "auto"):
            self.assertEqual(self.rank(speculative={"mode": mode})["results"], results, mode)
        for entry in results:
            alone, = self.rank(documents=[DOCUMENTS[entry["index"]]])["results"]
            self.assertEqual(alone["relevance_score"], entry["relevance_score"])
        many = self.rank(documents=DOCUMENTS * 40, top_n=40)["results"]
        self.assertEqual([entry["relevance_score"] for entry in many],
                         [results[0]["relevance_score"]] * 40)
        plain = self.rank(texts=DOCUMENTS, documents=None)
        self.assertEqual([(entry["index"], entry["score"]) for entry in plain],
                         [(entry["index"], entry["relevance_score"]) for entry in results])

    def test_what_is_refused(self):
        for fields in ({"query": ""}, {"documents": []}, {"documents": ["a"] * 1025},
                       {"documents": ["a story " * 4000]}, {"top_n": 0}):
            status, _, body = self.server.post("/v1/rerank",
                                               {"query": QUERY, "documents": DOCUMENTS} | fields)
            self.assertEqual(status, 400, body)
            self.assertIn("message", body["error"])

    def test_without_the_option_it_is_not_there(self):
        with Serving(PROGRAM) as server:
            status, _, body = server.post("/v1/rerank", {"query": "a", "documents": ["b"]})
            self.assertEqual((status, body["error"]["type"]), (501, "not_supported_error"))
            self.assertIn("--reranking", body["error"]["message"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
