#!/usr/bin/env python3
"""Several models in one server: models_test.py PROGRAM [TEST]..."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from serving import Serving, events

PROGRAM = ""
MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
TARGET = MODELS / "demo-target"
DRAFT = MODELS / "demo-draft"


def serve(*arguments):
    return Serving(PROGRAM, "-np", 2, "--context", 512, "--modes", "ar,ngram", "--mode", "ar",
                   *arguments)


def anonymous_kilobytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", status).group(1))


class Models(unittest.TestCase):
    def states(self, server):
        status, _, body = server.get("/v1/models")
        self.assertEqual(status, 200, body)
        return {model["id"]: model["status"]["value"] for model in body["data"]}

    def ask(self, server, model, **fields):
        body = {"prompt": "Once upon a time", "max_tokens": 16, "temperature": 0, **fields}
        if model is not None:
            body["model"] = model
        return server.post("/v1/completions", body)

    def text(self, server, model, **fields):
        status, _, body = self.ask(server, model, **fields)
        self.assertEqual(status, 200, body)
        self.assertEqual(body["model"], model)
        return body["choices"][0]["text"]

    def wait_for(self, server, model, state, seconds=30):
        deadline = time.monotonic() + seconds
        while self.states(server)[model] != state:
            self.assertLess(time.monotonic(), deadline, self.states(server))
            time.sleep(0.02)

    def test_each_answers_by_its_name(self):
        with serve("-m", TARGET) as server:
            alone = self.text(server, "demo-target", max_tokens=64)
        with serve("-m", f"big={TARGET}", "-m", f"small={DRAFT}", "--alias",
                   "gpt-4o=small") as server:
            self.assertEqual(self.states(server), {"big": "unloaded", "small": "unloaded"})
            self.assertEqual(server.get("/health")[0], 200)
            small = self.text(server, "small", max_tokens=64)
            self.assertEqual(self.states(server), {"big": "unloaded", "small": "loaded"})
            self.assertEqual(self.text(server, "big", max_tokens=64), alone)
            self.assertNotEqual(small, alone)
            status, _, body = self.ask(server, "gpt-4o", max_tokens=64)
            self.assertEqual((status, body["model"], body["choices"][0]["text"]),
                             (200, "small", small))
            one = server.get("/v1/models/gpt-4o")[2]
            self.assertEqual((one["id"], one["aliases"], one["max_model_len"], one["owned_by"]),
                             ("small", ["gpt-4o"], 512, "foretoken"))

    def test_every_door_names_its_model(self):
        chat = {"messages": [{"role": "user", "content": "Hi"}]}
        with serve("-m", f"big={TARGET}", "-m", f"small={DRAFT}") as server:
            for path, body in (
                    ("/v1/chat/completions", {**chat, "max_tokens": 4}),
                    ("/v1/responses", {"input": "Hi", "max_output_tokens": 4}),
                    ("/v1/messages", {**chat, "max_tokens": 4}),
                    ("/api/chat", {**chat, "stream": False, "options": {"num_predict": 4}}),
                    ("/api/generate", {"prompt": "Hi", "stream": False,
                                       "options": {"num_predict": 4}})):
                for name in ("small", "small:latest"):
                    status, _, reply = server.post(path, {**body, "model": name})
                    self.assertEqual(status, 200, reply)
                    self.assertEqual(reply["model"], "small", path)
                status, _, reply = server.post(path, {**body, "model": "huge"})
                self.assertEqual(status, 404, reply)
                self.assertIn("'big', 'small'", json.dumps(reply))
            for path, body in (("/tokenize", {"content": "Hi"}), ("/detokenize", {"tokens": [7]}),
                               ("/apply-template", chat),
                               ("/v1/messages/count_tokens", chat)):
                self.assertEqual(server.post(path, {**body, "model": "small"})[0], 200, path)
                self.assertEqual(server.post(path, {**body, "model": "huge"})[0], 404, path)
                self.assertEqual(server.post(path, body)[0], 400, path)
            self.assertEqual(server.get("/props?model=small")[2]["model"], "small")
            self.assertEqual(len(server.get("/slots?model=small")[2]), 2)
            self.assertEqual(server.get("/stats?model=small")[2]["running"], 0)
            self.assertEqual(self.states(server), {"big": "unloaded", "small": "loaded"})
            status, _, body = server.get("/stats?model=big")
            self.assertEqual((status, body["error"]["code"]), (503, "not_loaded"))
            names = [model["name"] for model in server.get("/api/tags")[2]["models"]]
            self.assertEqual(names, ["big", "small"])
            self.assertEqual(server.post("/api/show", {"model": "big"})[0], 200)
            self.assertEqual(self.states(server)["big"], "unloaded")

    def test_a_request_must_say_which(self):
        with serve("-m", f"big={TARGET}", "-m", f"small={DRAFT}") as server:
            status, _, body = self.ask(server, None)
            self.assertEqual((status, body["error"]["param"]), (400, "model"))
            self.assertIn("'big', 'small'", body["error"]["message"])
            status, _, body = self.ask(server, "huge")
            self.assertEqual((status, body["error"]["code"]), (404, "model_not_found"))
            self.assertIn("'big', 'small'", body["error"]["message"])
            status, _, body = server.post("/v1/completions", "{")
            self.assertEqual(status, 400)
            self.assertIn("JSON", body["error"]["message"])
            self.assertEqual(server.get("/v1/models/huge")[0], 404)

    def test_one_model_answers_by_any_name(self):
        with serve("-m", f"mine={TARGET}") as server:
            self.assertEqual(self.states(server), {"mine": "loaded"})
            for name in ("mine", "gpt-5", None):
                status, _, body = self.ask(server, name)
                self.assertEqual((status, body["model"]), (200, "mine"))

    def test_as_many_as_may_be_loaded(self):
        with serve("-m", f"a={TARGET}", "-m", f"b={DRAFT}", "-m", f"c={DRAFT}", "--max-models",
                   2) as server:
            first = {name: self.text(server, name) for name in "ab"}
            self.assertEqual(self.states(server), {"a": "loaded", "b": "loaded", "c": "unloaded"})
            self.assertEqual(self.text(server, "a"), first["a"])
            self.text(server, "c")  # b was used the longest ago.
            self.assertEqual(self.states(server), {"a": "loaded", "b": "unloaded", "c": "loaded"})
            self.assertEqual(self.text(server, "b"), first["b"])
            self.assertEqual(self.states(server), {"a": "unloaded", "b": "loaded", "c": "loaded"})
            metrics = server.get("/metrics")[2]
            self.assertIn('foretoken_model_loads_total{model="b"} 2', metrics)
            self.assertIn('foretoken_requests_total{model="a",outcome="length"} 2', metrics)
            self.assertIn('foretoken_up{model="a"} 0', metrics)
            self.assertNotIn('foretoken_passes_total{model="a"}', metrics)

    def test_by_memory(self):
        with serve("-m", f"a={TARGET}", "-m", f"b={DRAFT}", "--model-memory", 0.001) as server:
            self.text(server, "a")  # One is loaded whatever it takes.
            self.text(server, "b")
            self.assertEqual(self.states(server), {"a": "unloaded", "b": "loaded"})

    def test_a_busy_model_ends_what_it_has_begun(self):
        with serve("-m", f"a={TARGET}", "-m", f"b={DRAFT}", "--max-models", 1) as server:
            connection, response = server.stream("/v1/completions", {
                "model": "a", "prompt": "Once", "max_tokens": 400, "ignore_eos": True,
                "temperature": 0})
            first = json.loads(response.readline().decode()[len("data: "):])
            text = first["choices"][0]["text"]
            answers = {}

            def ask(key, model):
                answers[key] = self.ask(server, model)

            threads = [threading.Thread(target=ask, args=(key, model))
                       for key, model in (("1", "b"), ("2", "b"), ("3", "a"))]
            for thread in threads:
                thread.start()
                time.sleep(0.05)
            response.readline()
            for event in events(response):
                text += event["choices"][0]["text"]
            connection.close()
            for thread in threads:
                thread.join()
            self.assertEqual({answer[0] for answer in answers.values()}, {200}, answers)
            self.assertEqual(answers["1"][2]["choices"], answers["2"][2]["choices"])
            again = self.text(server, "a", prompt="Once", max_tokens=400, ignore_eos=True)
            self.assertEqual(again, text)

    def test_idle_ones_go_and_their_memory_with_them(self):
        with serve("-m", f"a={TARGET}", "-m", f"b={DRAFT}", "--model-idle", 0.4) as server:
            before = anonymous_kilobytes(server.process.pid)
            texts = set()
            after = []
            for _ in range(6):
                texts.add(self.text(server, "a"))
                loaded = anonymous_kilobytes(server.process.pid)
                self.wait_for(server, "a", "unloaded")
                after.append(anonymous_kilobytes(server.process.pid))
            self.assertEqual(len(texts), 1)
            self.assertGreater(loaded - before, 8000)
            self.assertLess(after[-1] - before, 0.4 * (loaded - before))
            self.assertLess(after[-1] - after[1], 2000)  # Nothing is left each time.

    def test_one_model_may_go_too(self):
        with serve("-m", TARGET, "--model-idle", 0.3) as server:
            text = self.text(server, "demo-target")
            self.wait_for(server, "demo-target", "unloaded")
            self.assertEqual(server.get("/health")[0], 200)
            self.assertEqual(self.text(server, "demo-target"), text)

    def test_what_cannot_be_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = pathlib.Path(folder) / "bad"
            shutil.copytree(DRAFT, bad)
            weights = bad / "model.safetensors"
            whole = weights.read_bytes()
            weights.write_bytes(whole[:1000])
            with serve("-m", f"good={TARGET}", "-m", bad) as server:
                for _ in range(2):
                    status, _, body = self.ask(server, "bad")
                    self.assertEqual((status, body["error"]["code"]), (500, "model_not_loaded"))
                    self.assertIn("'bad' could not be loaded", body["error"]["message"])
                    self.assertNotIn(folder, body["error"]["message"])
                failure = server.get("/v1/models/bad")[2]["status"]["failure"]
                self.assertIn("could not be loaded", failure)
                self.assertNotIn(folder, failure)
                self.text(server, "good")
                weights.write_bytes(whole)  # Whoever puts it right need not start again.
                self.text(server, "bad")
                self.assertNotIn("failure", server.get("/v1/models/bad")[2]["status"])
            self.assertIn(str(weights), server.errors)  # The operator reads where and why.

    def test_a_folder_of_models(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            os.symlink(TARGET, folder / "big")
            os.symlink(DRAFT, folder / "small-1.5")
            (folder / "notes").mkdir()
            (folder / "models.toml").write_text(
                f"context = 256\n[big]\ndraft = 'small-1.5'\nmode = 'sd'\nmodes = 'ar,sd'\n"
                f"alias = ['gpt-4o', 'gpt-4']\ntemp = 0.25\n"
                f"[other]\ntarget = '{DRAFT}'\ncontext = 128\n")
            with serve("--models", folder) as server:
                self.assertEqual(list(self.states(server)), ["big", "small-1.5", "other"])
                big = server.get("/props?model=gpt-4")[2]
                self.assertEqual((big["model"], big["context"], big["speculation"]["mode"]),
                                 ("big", 256, "sd"))
                self.assertEqual(big["sampling"]["temperature"], 0.25)
                self.assertEqual(server.get("/props?model=small-1.5")[2]["context"], 256)
                self.assertEqual(server.get("/props?model=other")[2]["context"], 128)
                status, _, body = self.ask(server, "big")
                self.assertEqual((status, body["usage"]["mode"]), (200, "sd"))

    def test_refused_at_the_start(self):
        def refuse(*arguments, saying):
            run = subprocess.run([PROGRAM, "serve", "--port", "0", *map(str, arguments)],
                                 capture_output=True, text=True, timeout=60)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
            self.assertIn(saying, run.stderr)

        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            file = folder / "models.toml"
            refuse("--models", folder, saying="there is no model in")
            refuse("--models", folder / "none.toml", saying="cannot read the models in")
            refuse("-m", TARGET, "-m", folder / "nothing", saying="there is no folder or file")
            refuse("-m", TARGET, "-m", TARGET, saying="two models are called 'demo-target'")
            refuse("-m", TARGET, "-m", DRAFT, "--alias", "x", saying="ALIAS=NAME")
            refuse("-m", TARGET, "-m", DRAFT, "--alias", "x=y", saying="ALIAS=NAME")
            refuse("-m", TARGET, "-m", DRAFT, "--datastore", folder / "store",
                   saying="cannot share the datastore")
            for text, saying in (
                    ("[a]\n", "say which with target or hf-repo"),
                    (f"[a]\ntarget = '{TARGET}'\nport = 1\n", "[a]: a model has no option 'port'"),
                    (f"[a]\ntarget = '{TARGET}'\nbatsh = 1\n", "did you mean batch?"),
                    (f"[a]\ntarget = '{TARGET}'\nbatch = 0\n", "[a]"),
                    (f"[a]\ntarget = '{TARGET}'\nmode = 'sd'\n", "mode sd needs a draft")):
                file.write_text(text)
                refuse("--models", file, saying=saying)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
