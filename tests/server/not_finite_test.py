#!/usr/bin/env python3
"""A model that computes infinite numbers, asked through every door: not_finite_test.py PROGRAM"""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

from serving import ServerTest, Serving

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from overflowing_model import LETTER, write_overflowing_model

SAYING = ("computed numbers that are infinite or NaN, so it has no next token: its weights are "
          "damaged, or too large for how they are computed; try --precision f32 or another copy of "
          "the model")
CHAT = [{"role": "user", "content": "abc"}]
GREEDY = {"temperature": 0}
OLLAMA = {"options": GREEDY}
# What each door is asked, and where an answer that streams has the error.
DOORS = {
    "/v1/completions": ({"prompt": "abc", **GREEDY}, lambda part: part["error"]),
    "/v1/chat/completions": ({"messages": CHAT, **GREEDY}, lambda part: part["error"]),
    "/v1/responses": ({"input": "abc", **GREEDY}, lambda part: part["response"]["error"]),
    "/v1/messages": ({"messages": CHAT, "max_tokens": 9, **GREEDY}, lambda part: part["error"]),
    "/completion": ({"prompt": "abc", **GREEDY}, lambda part: part["error"]),
    "/api/chat": ({"messages": CHAT, **OLLAMA}, lambda part: {"message": part["error"]}),
    "/api/generate": ({"prompt": "abc", **OLLAMA}, lambda part: {"message": part["error"]}),
}


class NotFinite(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_e2e."))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        model = write_overflowing_model(cls.folder / "huge")
        cls.server = Serving(PROGRAM, "-m", model, "-md", model, "--batch", 4,
                             "--modes", "ar,sd,ssd,ngram,suffix")

    def parts(self, path, body):
        connection, response = self.server.stream(path, body)
        try:
            self.assertEqual(response.status, 200)
            lines = [line.removeprefix("data: ") for line in response.read().decode().splitlines()]
            return [json.loads(line) for line in lines if line.startswith("{")]
        finally:
            connection.close()

    def test_every_door_says_it(self):
        for path, (body, error_of) in DOORS.items():
            with self.subTest(path):
                status, _, reply = self.server.post(path, {**body, "stream": False})
                self.assertEqual(status, 500, reply)
                said = reply["error"] if isinstance(reply["error"], str) else \
                    reply["error"]["message"]
                self.assertEqual(said, f"the model 'huge' {SAYING}")
                parts = self.parts(path, body)
                self.assertGreater(len(parts), 1)
                self.assertIn(f'"{LETTER}"', json.dumps(parts[:-1]))  # What came before stays.
                self.assertIn(SAYING, error_of(parts[-1])["message"])

    def test_codes(self):
        reply = self.server.post("/v1/completions", {"prompt": "abc", **GREEDY})[2]
        self.assertEqual(reply["error"]["code"], "model_not_finite")
        self.assertEqual(reply["error"]["type"], "server_error")
        reply = self.server.post("/v1/messages", DOORS["/v1/messages"][0])[2]
        self.assertEqual(reply["error"]["type"], "api_error")

    def test_every_mode_ends_alike(self):
        never = {"logit_bias": {self.letter(): -100}}
        for mode in ("ar", "sd", "ssd", "ngram", "suffix"):
            with self.subTest(mode):
                plan = {"speculative": {"mode": mode}}
                self.assertEqual(self.server.complete("abc", **GREEDY, **plan)[0], 500)
                # Tokens that are never the letter are decoded as ever.
                reply = self.server.complete("abc", **GREEDY, **plan, **never, max_tokens=40)
                self.assertEqual(reply[0], 200, reply)
                self.assertEqual(reply[2]["usage"]["completion_tokens"], 40)

    def letter(self):
        return self.server.post("/tokenize", {"content": LETTER,
                                              "add_special": False})[2]["tokens"][0]

    def test_the_others_of_a_batch_go_on(self):
        never = {"logit_bias": {self.letter(): -100}}
        connection, response = self.server.stream(
            "/v1/completions", {"prompt": "abc", **GREEDY, **never, "max_tokens": 300})
        for _ in range(5):
            self.assertEqual(self.server.complete("abc", **GREEDY)[0], 500)
        text = response.read().decode()
        connection.close()
        self.assertTrue(text.rstrip().endswith("data: [DONE]"))
        self.assertNotIn("error", text)

    def test_what_is_asked_of_a_prompt(self):
        prompt = f"ab{LETTER}c"
        echo = {"prompt": prompt, "echo": True, "logprobs": 0, "max_tokens": 0}
        self.assertEqual(self.server.post("/v1/completions", echo)[0], 500)
        self.assertEqual(self.server.post("/v1/embeddings", {"input": prompt})[0], 500)
        self.assertEqual(self.server.post("/v1/embeddings", {"input": "abc"})[0], 200)

    def test_nothing_is_kept_and_it_is_counted(self):
        self.server.wait_idle()
        before = self.server.get("/stats")[2]
        prompt = f"{LETTER}" + "abc" * 60
        self.assertEqual(self.server.complete(prompt, **GREEDY)[0], 500)
        after = self.server.wait_idle()
        self.assertEqual(after["requests"]["failed"], before["requests"]["failed"] + 1)
        self.assertEqual(after["kv"]["cached"], before["kv"]["cached"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
