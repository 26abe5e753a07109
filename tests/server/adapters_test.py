#!/usr/bin/env python3
"""Low-rank adapters in a running server, one for each request: adapters_test.py PROGRAM [TEST]..."""

import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

from serving import ServerTest, Serving, events

PROGRAM = ""
HIDDEN, QUERIES, VALUES, INTERMEDIATE, LAYERS = 256, 256, 128, 768, 6  # The bundled target's.
RANK = 4
MODULES = {"self_attn.q_proj": (QUERIES, HIDDEN), "self_attn.v_proj": (VALUES, HIDDEN),
           "mlp.down_proj": (HIDDEN, INTERMEDIATE)}
PROMPT = "Once upon a time, there was a little girl named Lily. She had a red ball and a dog. "


def write_adapter(folder, seed):
    """Random factors, as PEFT saves them."""
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": RANK, "lora_alpha": 2 * RANK, "bias": "none"}))
    numbers = random.Random(seed)
    header, data = {}, b""
    for layer in range(LAYERS):
        for module, (outputs, inputs) in MODULES.items():
            for factor, shape in (("A", (RANK, inputs)), ("B", (outputs, RANK))):
                count = shape[0] * shape[1]
                size = 0.03 if factor == "A" else 0.05
                packed = struct.pack(f"<{count}f", *(numbers.gauss(0, size) for _ in range(count)))
                name = f"base_model.model.model.layers.{layer}.{module}.lora_{factor}.weight"
                header[name] = {"dtype": "F32", "shape": shape,
                                "data_offsets": [len(data), len(data) + len(packed)]}
                data += packed
    text = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + data)
    return folder


class Adapters(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_adapters."))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.first = write_adapter(cls.folder / "first", 1)
        cls.second = write_adapter(cls.folder / "second", 2)
        cls.server = Serving(PROGRAM, "--lora", cls.first, "--lora", f"other={cls.second}", "-np", 8)

    def test_they_are_listed(self):
        listed = self.succeed(self.server.get("/lora-adapters"))
        self.assertEqual(listed, [
            {"id": 0, "name": "first", "path": self.first.name, "scale": 1},
            {"id": 1, "name": "other", "path": self.second.name, "scale": 1}])

    def text(self, **fields):
        fields = {"max_tokens": 60, "temperature": 0, "ignore_eos": True, **fields}
        body = self.succeed(self.server.complete(PROMPT, **fields))
        return body["choices"][0]["text"], body["model"]

    def test_ways_to_ask(self):
        plain, first, other = (self.text(model=name) for name in (
            "demo-target", "demo-target:first", "demo-target:other"))
        self.assertEqual([model for _, model in (plain, first, other)],
                         ["demo-target", "demo-target:first", "demo-target:other"])
        self.assertEqual(len({text for text, _ in (plain, first, other)}), 3)
        self.assertEqual(self.text(), plain)
        self.assertEqual(self.text(model="demo-target:first", lora=""), plain)
        self.assertEqual(self.text(model="demo-target:first", lora=[]), plain)
        self.assertEqual(self.text(lora=[{"id": 0, "scale": 0}, {"id": 1, "scale": 0}]), plain)
        self.assertEqual(self.text(lora="first"), first)
        self.assertEqual(self.text(lora={"name": "other"}), other)
        self.assertEqual(self.text(lora=[{"id": 0, "scale": 0}, {"id": 1, "scale": 1}]), other)
        half = self.text(lora={"id": 1, "scale": 0.5})
        self.assertNotIn(half, (plain, other))

    def test_every_door_and_stream(self):
        chat = {"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 40,
                "temperature": 0, "lora": "first"}
        whole = self.succeed(self.server.post("/v1/chat/completions", chat))
        connection, response = self.server.stream("/v1/chat/completions", chat)
        streamed = "".join(event["choices"][0]["delta"].get("content") or ""
                           for event in events(response) if event["choices"])
        connection.close()
        self.assertEqual(streamed, whole["choices"][0]["message"]["content"])
        self.assertNotEqual(streamed, self.succeed(self.server.post(
            "/v1/chat/completions", {**chat, "lora": ""}))["choices"][0]["message"]["content"])
        llama = self.succeed(self.server.post("/completion", {
            "prompt": PROMPT, "n_predict": 60, "temperature": 0, "ignore_eos": True,
            "lora": [{"id": 1, "scale": 1.0}]}))
        self.assertEqual(llama["content"], self.text(lora="other")[0])
        embedding = lambda **fields: self.succeed(self.server.post(
            "/v1/embeddings", {"input": PROMPT, **fields}))["data"][0]["embedding"]
        self.assertNotEqual(embedding(), embedding(lora="first"))
        self.assertEqual(embedding(model="demo-target:first"), embedding(lora="first"))

    def test_together_each_is_what_it_is_alone(self):
        """Several adapters, scales and modes run at once, over one shared prompt."""
        wishes = [{}, {"lora": "first"}, {"lora": "other"}, {"lora": {"id": 0, "scale": 0.5}}]
        modes = ("ar", "sd", "ssd", "ngram")
        fields = [dict(wish, seed=3, temperature=temperature, ignore_eos=True,
                       speculative={"mode": mode})
                  for wish in wishes for mode in modes for temperature in (0, 0.8)]
        alone = {}
        for one in fields:
            if one["speculative"]["mode"] == "ar":
                alone[json.dumps(one.get("lora")), one["temperature"]] = self.text(**one)
        texts = [None] * len(fields)

        def ask(index):
            texts[index] = self.text(**fields[index])

        for _ in range(2):
            threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(fields))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for one, text in zip(fields, texts):
                self.assertEqual(text, alone[json.dumps(one.get("lora")), one["temperature"]], one)

    def test_receipts_name_the_adapter(self):
        reply = self.succeed(self.server.complete(PROMPT, max_tokens=20, lora="first",
                                                  receipt=True))
        receipt = self.folder / "receipt.json"
        receipt.write_text(json.dumps(reply["choices"][0]["receipt"]))
        check = lambda *options: subprocess.run([PROGRAM, "check", receipt, *options],
                                                capture_output=True, text=True)
        right = check("--lora", self.first)
        self.assertEqual(right.returncode, 0, right.stdout + right.stderr)
        for wrong in ((), ("--lora", self.second)):
            refused = check(*wrong)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("made with an adapter of fingerprint", refused.stderr)

    def test_what_is_refused(self):
        def refused(saying, lora, param="lora"):
            status, _, body = self.server.complete(PROMPT, lora=lora)
            self.assertEqual(status, 400, body)
            self.assertEqual(body["error"]["param"], param)
            self.assertIn(saying, body["error"]["message"])

        refused("there is no adapter 'third': this server has first, other", "third")
        refused("there is no adapter 2", [{"id": 2}])
        refused("names two adapters", [{"id": 0}, {"id": 1}])
        refused("the place of an adapter", [{"scale": 1}], "lora[0].id")
        refused("must be", {"id": 0, "scale": 1e9}, "lora.scale")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
