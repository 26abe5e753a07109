#!/usr/bin/env python3
"""What clients of Ollama and llama.cpp ask of a server besides generations, and what they judge it
by: peers_test.py PROGRAM"""

import contextlib
import http.client
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from serving import ServerTest, Serving

PROGRAM = ""
MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
TARGET = MODELS / "demo-target"
DRAFT = MODELS / "demo-draft"
CHAT = [{"role": "user", "content": "Tell me a story about a cat."}]
SHORT = {"stream": False, "options": {"num_predict": 4, "temperature": 0}}
LONG = "word " * 2000


def quantized(folder, model=TARGET, weights="q4_k_m"):
    """A GGUF file of the model."""
    file = pathlib.Path(folder) / f"{model.name}-{weights}.gguf"
    subprocess.run([PROGRAM, "quantize", model, file, "--type", weights], check=True,
                   capture_output=True)
    return file


def with_marks(file):
    """Gives three tokens of a GGUF file the names of marks of gaps; their ids by those."""
    content = bytearray(file.read_bytes())
    key = b"tokenizer.ggml.tokens"
    at = content.index(key) + len(key) + 8  # Behind the types of the value and of its elements.
    count, = struct.unpack_from("<Q", content, at)
    at += 8
    marks, ids = [b"<PRE>", b"<SUF>", b"<MID>"], {}
    for token in range(count):
        length, = struct.unpack_from("<Q", content, at)
        at += 8
        if token > 1000 and length == 5 and marks:
            ids[marks[0].decode()] = token
            content[at:at + 5] = marks.pop(0)
        at += length
    file.write_bytes(content)
    return ids


class Served(ServerTest):
    def refuse(self, answer, status, saying):
        got, _, body = answer
        self.assertEqual(got, status, body)
        self.assertIn(saying, json.dumps(body))
        return body


class ContentTypes(Served):
    """Ollama and llama.cpp read JSON whatever a request calls it; pages of other sites may not send
    what browsers let them send without asking."""

    PATHS = {"/api/chat": {"messages": CHAT, **SHORT}, "/api/generate": {"prompt": "Hi", **SHORT},
             "/api/show": {"model": "demo-target"}, "/completion": {"prompt": "Hi", "n_predict": 4},
             "/v1/chat/completions": {"messages": CHAT, "max_tokens": 4}}

    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "--mode", "ar")

    def status(self, path, headers):
        """Sends exactly these headers."""
        body = json.dumps(self.PATHS[path]).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        with contextlib.closing(connection):
            connection.putrequest("POST", path, skip_accept_encoding=True)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            response.read()
            return response.status

    def test_programs_may_call_it_anything_or_nothing(self):
        for path in self.PATHS:
            self.assertEqual(self.status(path, {}), 200, path)
            for kind in ("application/json", "Application/JSON", "application/json; charset=utf-8",
                         "application/x-www-form-urlencoded", "text/plain"):
                self.assertEqual(self.status(path, {"Content-Type": kind}), 200, (path, kind))

    def test_pages_of_other_sites_may_not(self):
        own = f"http://127.0.0.1:{self.server.port}"
        for path in self.PATHS:
            for page in ({"Origin": "http://evil.example"}, {"Origin": "null"},
                         {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
                         {"Origin": own, "Sec-Fetch-Site": "cross-site"},
                         {"Origin": "http://127.0.0.1:1"}):
                for kind in ({}, {"Content-Type": "text/plain"},
                             {"Content-Type": "application/x-www-form-urlencoded"},
                             {"Content-Type": "multipart/form-data; boundary=x"},
                             {"Content-Type": "text/plain; application/json"}):
                    self.assertEqual(self.status(path, {**page, **kind}), 415, (path, page, kind))
            # A browser has asked before it sends this for another site.
            self.assertEqual(self.status(path, {"Origin": "http://evil.example",
                                                "Content-Type": "application/json"}), 200)
            self.assertEqual(self.status(path, {"Origin": own, "Content-Type": "text/plain",
                                                "Sec-Fetch-Site": "same-origin"}), 200)

    def test_nothing_is_loaded_by_an_image_of_another_page(self):
        own = f"http://127.0.0.1:{self.server.port}"
        for path in ("/props", "/slots", "/lora-adapters?model=demo-target"):
            for page in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
                self.assertEqual(self.server.get(path, headers=page)[0], 403, (path, page))
            for page in ({}, {"Origin": own}, {"Sec-Fetch-Site": "same-origin"},
                         {"Sec-Fetch-Site": "none"}):
                self.assertEqual(self.server.get(path, headers=page)[0], 200, (path, page))

    def test_nothing_can_be_loaded_or_unloaded_by_a_form(self):
        for path in ("/models/unload", "/models/load", "/api/generate", "/api/pull"):
            form = {"Content-Type": "text/plain", "Origin": "http://evil.example"}
            status, _, _ = self.server.post(path, '{"model":"demo-target","keep_alive":0}',
                                            headers=form)
            self.assertEqual(status, 415, path)
        self.assertEqual(self.server.get("/v1/models")[2]["data"][0]["status"]["value"], "loaded")

    def test_texts_of_other_systems(self):
        body = json.dumps({"prompt": "One\r\ntwo", **SHORT})
        plain = self.succeed(self.server.post("/api/generate", body))["response"]
        marked = self.server.post("/api/generate",
                                  ("\ufeff" + body.replace(", ", ",\r\n")).encode())
        self.assertEqual(self.succeed(marked)["response"], plain)


class WhatIsSaid(Served):
    """Of a GGUF file with a template that writes calls and thoughts."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = quantized(cls.folder.name)
        cls.marks = with_marks(cls.file)
        template = pathlib.Path(cls.folder.name) / "template.jinja"
        template.write_text("{% if tools %}<tool_call>{{ tools }}</tool_call>{% endif %}"
                            "<think></think>{{ messages[-1].content }}")
        cls.jinja = template.read_text()
        cls.server = Serving(PROGRAM, "-m", f"mine={cls.file}", "--context", 256, "--temp", 0.5,
                             "--mode", "ar", "--chat-template", template)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def test_a_model_is_shown_as_it_is(self):
        # One model answers by any name, here as in a chat.
        for name in ("mine", "mine:latest", "anything"):
            shown = self.succeed(self.server.post("/api/show", {"model": name}))
            self.assertEqual(shown["capabilities"], ["completion", "tools", "insert", "thinking"])
            self.assertEqual(shown["details"], {
                "parent_model": "", "format": "gguf", "family": "llama", "families": ["llama"],
                "parameter_size": "5M", "quantization_level": "Q4_K_M"})
            info = shown["model_info"]
            self.assertEqual(info["general.architecture"], "llama")
            self.assertEqual(info["general.basename"], "mine")
            self.assertEqual(info["llama.context_length"], 256)  # As it is served.
            self.assertEqual((info["llama.block_count"], info["llama.embedding_length"]), (6, 256))
            self.assertEqual(shown["template"], self.jinja)
            lines = dict(line.split() for line in shown["parameters"].splitlines())
            self.assertEqual((lines["num_ctx"], lines["temperature"]), ("256", "0.5"))

    def test_lists_of_models(self):
        tag, = self.succeed(self.server.get("/api/tags"))["models"]
        self.assertEqual((tag["name"], tag["model"]), ("mine", "mine"))
        self.assertEqual(tag["size"], self.file.stat().st_size)
        self.assertRegex(tag["digest"], "^[0-9a-f]{64}$")
        self.assertEqual(tag["details"]["quantization_level"], "Q4_K_M")
        running, = self.succeed(self.server.get("/api/ps"))["models"]
        self.assertEqual((running["name"], running["digest"]), ("mine", tag["digest"]))
        self.assertEqual((running["context_length"], running["size_vram"]), (256, 0))
        self.assertGreater(running["size"], tag["size"])  # Keys and values, too.
        self.assertTrue(running["expires_at"].startswith("9999"))
        version = self.succeed(self.server.get("/api/version"))
        self.assertGreaterEqual(tuple(map(int, version["version"].split("."))), (0, 6, 4))

    def test_what_llama_cpps_page_reads(self):
        props = self.succeed(self.server.get("/props"))
        self.assertEqual(props["default_generation_settings"]["n_ctx"], 256)
        self.assertEqual(props["default_generation_settings"]["params"]["temperature"], 0.5)
        self.assertEqual(props["total_slots"], props["limits"]["batch"])
        self.assertEqual(props["chat_template"], self.jinja)
        self.assertTrue(props["chat_template_caps"]["supports_tools"])
        self.assertEqual(props["modalities"], {"vision": False, "audio": False})
        self.assertEqual((props["model_alias"], props["model_path"]), ("mine", self.file.name))
        self.assertEqual((props["bos_token"], props["eos_token"]), ("<s>", "</s>"))
        self.assertTrue(props["build_info"].startswith("foretoken "))

    def test_gaps_are_filled(self):
        before, behind = "Once upon a time there was", "They lived happily."
        options = {"temperature": 0, "n_predict": 12}
        filled = self.succeed(self.server.post("/infill", {
            "input_prefix": before, "input_suffix": behind, "cache_prompt": True, **options}))
        # The same prompt by hand: each part behind its mark.
        def tokens(text, special=False):
            return self.succeed(self.server.post("/tokenize", {
                "content": text, "add_special": special}))["tokens"]
        prompt = [*tokens("", True), self.marks["<PRE>"], *tokens(before), self.marks["<SUF>"],
                  *tokens(behind), self.marks["<MID>"]]
        self.assertEqual(filled["tokens_evaluated"], len(prompt))
        by_hand = self.succeed(self.server.post("/completion", {"prompt": prompt, **options}))
        self.assertEqual(filled["content"], by_hand["content"])
        connection, response = self.server.stream("/infill", {
            "input_prefix": before, "input_suffix": behind, **options})
        with contextlib.closing(connection):
            lines = response.read().decode().split("\n")
        parts = [json.loads(line[len("data: "):]) for line in lines if line.startswith("data: ")]
        self.assertEqual("".join(part["content"] for part in parts), filled["content"])
        # Ollama's `suffix` is the same.
        ollama = self.succeed(self.server.post("/api/generate", {
            "prompt": before, "suffix": behind, "stream": False,
            "options": {"temperature": 0, "num_predict": 12}}))
        self.assertEqual(ollama["response"], filled["content"])
        more = self.succeed(self.server.post("/infill", {
            "input_prefix": before, "input_suffix": behind, **options,
            "input_extra": [{"filename": "a.txt", "text": "A cat."}, {"text": "word " * 300}]}))
        self.assertGreater(more["tokens_evaluated"], len(prompt))
        self.assertLess(more["tokens_evaluated"], 256)


class Peers(Served):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM)

    def test_a_model_without_the_marks_fills_no_gaps(self):
        self.refuse(self.server.post("/infill", {"input_prefix": "a", "input_suffix": "b"}), 400,
                  "does not support infill")
        self.refuse(self.server.post("/api/generate", {"prompt": "a", "suffix": "b"}), 400,
                    "insert")
        shown = self.succeed(self.server.post("/api/show", {"model": "demo-target"}))
        self.assertEqual(shown["capabilities"], ["completion"])
        self.assertEqual(shown["details"]["format"], "safetensors")
        self.assertEqual(shown["details"]["quantization_level"], "BF16")

    def test_a_model_without_a_form_of_calls_takes_no_tools(self):
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
        self.refuse(self.server.post("/api/chat", {"messages": CHAT, "tools": [tool]}), 400,
                    "does not support tools")

    def test_paths_without_v1(self):
        chat = {"messages": CHAT, "max_tokens": 8, "temperature": 0}
        self.assertEqual(
            self.succeed(self.server.post("/chat/completions", chat))["choices"],
            self.succeed(self.server.post("/v1/chat/completions", chat))["choices"])
        text = {"prompt": "Once", "n_predict": 8, "temperature": 0}
        self.assertEqual(self.succeed(self.server.post("/completions", text))["content"],
                         self.succeed(self.server.post("/completion", text))["content"])
        self.assertEqual(self.succeed(self.server.get("/models")),
                         self.succeed(self.server.get("/v1/models")))
        self.assertEqual(self.succeed(self.server.get("/v1/health")), {"status": "ok"})
        embedded = self.succeed(self.server.post("/embedding", {"content": "A cat."}))
        for body in ({"content": "A cat."}, {"input": "A cat."}):
            self.assertEqual(self.succeed(self.server.post("/embeddings", body)), embedded)

    def test_models_as_anthropics_clients_read_them(self):
        listed = self.succeed(self.server.get("/v1/models"))
        model, = listed["data"]
        self.assertEqual((model["type"], model["display_name"]), ("model", "demo-target"))
        self.assertRegex(model["created_at"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual((listed["has_more"], listed["first_id"], listed["last_id"]),
                         (False, "demo-target", "demo-target"))

    def test_what_is_not_there_is_said_in_the_form_of_its_api(self):
        for method, path, status in (("POST", "/api/delete", 405), ("DELETE", "/api/delete", 403),
                                     ("POST", "/api/create", 403), ("POST", "/api/copy", 403),
                                     ("POST", "/api/push", 403), ("POST", "/api/nothing", 404),
                                     ("GET", "/api/nothing", 404),
                                     ("POST", "/api/blobs/sha256:0", 403)):
            got, _, body = self.server.request(method, path, {"model": "demo-target"})
            self.assertEqual(got, status, (path, body))
            self.assertIsInstance(body["error"], str, path)
        self.assertEqual(self.server.post("/v1/messages/nothing", {})[2]["type"], "error")
        for path in ("/rerank", "/reranking", "/v1/rerank", "/v1/reranking",
                     "/slots/0?action=save"):
            body = self.refuse(self.server.post(path, {"query": "a", "documents": ["b"]}), 501,
                             "does not support")
            self.assertEqual((body["error"]["code"], body["error"]["type"]),
                             (501, "not_supported_error"))

    def test_pulling(self):
        for name in ("demo-target", "demo-target:latest"):
            whole = self.succeed(self.server.post("/api/pull", {"model": name, "stream": False}))
            self.assertEqual(whole, {"status": "success"})
            connection, response = self.server.stream("/api/pull", {"name": name})
            with contextlib.closing(connection):
                self.assertEqual(response.headers["Content-Type"], "application/x-ndjson")
                lines = [json.loads(line) for line in response.read().splitlines()]
            self.assertEqual(lines[-1], {"status": "success"})
        self.refuse(self.server.post("/api/pull", {"model": "llama3"}), 403, "fetches no models")
        self.refuse(self.server.post("/api/pull", {}), 400, "'model'")

    def test_too_long_is_said_in_the_words_of_its_api(self):
        for path, body, words in (
                ("/api/chat", {"messages": [{"role": "user", "content": LONG}]},
                 "prompt too long; exceeded max context length"),
                ("/api/generate", {"prompt": LONG}, "prompt too long; exceeded max context length"),
                ("/completion", {"prompt": LONG}, "exceeds the available context size"),
                ("/embedding", {"content": LONG}, "exceeds the available context size")):
            body = self.refuse(self.server.post(path, body), 400, words)
            if path in ("/completion", "/embedding"):
                self.assertEqual(body["error"]["type"], "exceed_context_size_error")

    def test_penalties_of_the_latest_tokens(self):
        def text(mode="ar", **options):
            reply = self.succeed(self.server.post("/api/generate", {
                "prompt": "Once upon a time", "raw": True, "stream": False,
                "speculative": {"mode": mode},
                "options": {"temperature": 0.7, "seed": 3, "num_predict": 160, **options}}))
            return reply["response"]
        plain = text()
        self.assertEqual(text(repeat_penalty=1.3, repeat_last_n=0), plain)
        every = text(repeat_penalty=1.3, repeat_last_n=-1)
        self.assertEqual(text(repetition_penalty=1.3), every)
        latest = text(repeat_penalty=1.3)
        self.assertEqual(text(repeat_penalty=1.3, repeat_last_n=64), latest)
        self.assertEqual(len({plain, every, latest, text(repeat_penalty=1.3, repeat_last_n=8)}), 4)
        for mode in ("sd", "ssd", "ngram"):
            self.assertEqual(text(mode, repeat_penalty=1.3), latest, mode)
            self.assertEqual(text(mode, repeat_penalty=1.3, repeat_last_n=8, frequency_penalty=0.3),
                             text(repeat_penalty=1.3, repeat_last_n=8, frequency_penalty=0.3), mode)


class Loading(unittest.TestCase):
    """An empty prompt loads a model, `keep_alive` says for how long."""

    def loaded(self, server):
        return [model["name"] for model in server.get("/api/ps")[2]["models"]]

    def wait_unloaded(self, server, name, seconds=20):
        deadline = time.monotonic() + seconds
        while name in self.loaded(server):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def post(self, server, path, **body):
        status, _, reply = server.post(path, body)
        self.assertEqual(status, 200, reply)
        return reply

    def test_keep_alive(self):
        with Serving(PROGRAM, "-m", f"a={TARGET}", "-m", f"b={DRAFT}", "--context", 256, "--mode",
                     "ar", "--modes", "ar", "-np", 2) as server:
            self.assertEqual(self.loaded(server), [])
            # Details are known before anything is loaded.
            details = [model["details"]["parameter_size"] for model in
                       server.get("/api/tags")[2]["models"]]
            self.assertEqual(len(set(details)), 2)
            self.assertNotIn("", details)
            reply = self.post(server, "/api/generate", model="a")
            self.assertEqual((reply["done"], reply["done_reason"], reply["response"]),
                             (True, "load", ""))
            self.assertEqual(self.loaded(server), ["a"])
            reply = self.post(server, "/api/chat", model="b", messages=[], keep_alive="10m")
            self.assertEqual((reply["done_reason"], reply["message"]["content"]), ("load", ""))
            soon, = [model["expires_at"] for model in server.get("/api/ps")[2]["models"]
                     if model["name"] == "b"]
            then = time.strptime(soon, "%Y-%m-%dT%H:%M:%SZ")
            left = time.mktime(then) - time.mktime(time.gmtime())
            self.assertTrue(590 < left <= 600, left)
            reply = self.post(server, "/api/generate", model="a", prompt="", keep_alive=0)
            self.assertEqual(reply["done_reason"], "unload")
            self.wait_unloaded(server, "a")
            self.assertEqual(self.loaded(server), ["b"])
            # A request may say that it is the last one; it is answered whole.
            reply = self.post(server, "/api/generate", model="b", prompt="Once", keep_alive=0,
                              stream=False, options={"num_predict": 8, "ignore_eos": True})
            self.assertEqual((reply["done_reason"], reply["eval_count"]), ("length", 8))
            self.wait_unloaded(server, "b")
            # What is loaded again stays.
            self.post(server, "/api/embed", model="b", input="A cat.")
            time.sleep(0.3)
            self.assertEqual(self.loaded(server), ["b"])
            self.post(server, "/api/embed", model="b", input="A cat.", keep_alive="200ms")
            self.wait_unloaded(server, "b")
            status, _, body = server.post("/api/chat", {"model": "a", "keep_alive": "soon"})
            self.assertEqual((status, type(body["error"])), (400, str))
            self.assertIn("'keep_alive'", body["error"])
            status, _, body = server.post("/api/generate", {"model": "c"})
            self.assertEqual(status, 404, body)

    def test_as_llama_cpps_router(self):
        with Serving(PROGRAM, "-m", f"a={TARGET}", "-m", f"b={DRAFT}", "--context", 256, "--mode",
                     "ar", "--modes", "ar", "-np", 2) as server:
            self.assertEqual(self.post(server, "/models/load", model="b"), {"success": True})
            deadline = time.monotonic() + 30
            while self.loaded(server) != ["b"]:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            self.post(server, "/models/load", model="b")
            self.assertEqual(self.post(server, "/models/unload", model="b"), {"success": True})
            self.wait_unloaded(server, "b")
            status, _, body = server.post("/models/load", {"model": "c"})
            self.assertEqual((status, body["error"]["type"]), (404, "not_found_error"))
            self.assertEqual(server.post("/models/unload", {})[0], 400)
            self.assertEqual(server.get("/health")[0], 200)

    def test_one_model_comes_back_by_itself(self):
        with Serving(PROGRAM, "--mode", "ar") as server:
            ask = dict(prompt="Once", stream=False, options={"num_predict": 8, "temperature": 0})
            text = self.post(server, "/api/generate", **ask)["response"]
            self.post(server, "/api/generate", keep_alive=0)
            self.wait_unloaded(server, "demo-target")
            self.assertEqual(self.post(server, "/api/generate", **ask)["response"], text)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
