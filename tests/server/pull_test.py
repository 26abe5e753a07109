#!/usr/bin/env python3
"""Models that clients have fetched while a server runs: pull_test.py PROGRAM [TEST]..."""

import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time
import unittest

from serving import Serving

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "hub"))
from small_hub import SmallHub

PROGRAM = ""
MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"


class Pull(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_pull."))
        self.addCleanup(shutil.rmtree, self.folder)
        self.hub = SmallHub()
        self.hub.__enter__()
        self.addCleanup(self.hub.__exit__)
        self.hub.add("org/small", {path.name: path.read_bytes()
                                   for path in (MODELS / "demo-draft").iterdir()})

    def serve(self, *arguments):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("HF_", "http_proxy", "HTTP_PROXY"))}
        environment |= {"HF_ENDPOINT": self.hub.url, "HF_HOME": str(self.folder)}
        return Serving(PROGRAM, "-np", 2, "--context", 512, *arguments, environment=environment)

    def pull(self, server, name, **fields):
        """The lines of a pull."""
        connection, response = server.stream("/api/pull", {"model": name, **fields})
        try:
            self.assertEqual(response.status, 200, response.headers)
            self.assertEqual(response.headers["Content-Type"], "application/x-ndjson")
            return [json.loads(line) for line in response.read().splitlines()]
        finally:
            connection.close()

    def refuse(self, answer, status, saying):
        self.assertEqual(answer[0], status, answer[2])
        self.assertIn(saying, answer[2]["error"])

    def ask(self, server, model):
        body = {"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0}
        if model is not None:
            body["model"] = model
        return server.post("/v1/completions", body)

    def test_a_model_is_fetched_and_served_under_its_name(self):
        with Serving(PROGRAM, "-m", MODELS / "demo-draft", "--context", 512) as server:
            expected = self.ask(server, None)[2]["choices"][0]["text"]
        with self.serve("--allow-pull") as server:
            status, _, body = self.ask(server, "org/small")  # Clients know by this to pull it.
            self.assertEqual((status, body["error"]["code"]), (404, "model_not_found"))
            self.assertEqual(self.ask(server, None)[2]["model"], "demo-target")
            lines = self.pull(server, "org/small")
            self.assertEqual(lines[0], {"status": "pulling manifest"})
            self.assertEqual(lines[-1], {"status": "success"})
            steps = [line for line in lines if "total" in line]
            self.assertTrue(steps)
            for line in steps:
                self.assertEqual(line["status"], "pulling org/small")
                self.assertLessEqual(line["completed"], line["total"])
            status, _, body = self.ask(server, "org/small")
            self.assertEqual((status, body["model"]), (200, "org/small"))
            self.assertEqual(body["choices"][0]["text"], expected)
            self.assertEqual(self.ask(server, "org/small:latest")[0], 200)
            self.assertEqual(self.ask(server, None)[2]["model"], "demo-target")
            names = [model["name"] for model in server.get("/api/tags")[2]["models"]]
            self.assertEqual(names, ["demo-target", "org/small"])
            self.assertEqual(server.post("/api/show", {"model": "org/small"})[0], 200)
            self.assertIn('model="org/small"', server.get("/metrics")[2])
            # It is there: nothing is asked for.
            self.hub.forget_requests()
            self.assertEqual(self.pull(server, "org/small")[-1], {"status": "success"})
            self.assertEqual(self.hub.requests, [])
            self.assertEqual(server.post("/api/pull", {"model": "org/small", "stream": False})[2],
                             {"status": "success"})
        with self.serve("--allow-pull") as server:  # The cache has it: nothing comes again.
            self.hub.forget_requests()
            self.assertEqual(server.post("/api/pull", {"model": "org/small", "stream": False})[0],
                             200)
            self.assertEqual(self.hub.sent, {})
            self.assertEqual(self.ask(server, "org/small")[0], 200)

    def test_without_the_option_nothing_is_fetched(self):
        with self.serve() as server:
            self.refuse(server.post("/api/pull", {"model": "org/small"}), 403, "--allow-pull")
            self.assertEqual(self.hub.requests, [])

    def test_what_cannot_be_had_is_said(self):
        with self.serve("--allow-pull", "--pull-limit", "0.001") as server:
            for name in ("org/none", "../../etc", "a b", "/etc/passwd"):
                for stream in (False, True):
                    answer = server.post("/api/pull", {"model": name, "stream": stream})
                    if answer[0] == 200:  # Lines had begun.
                        self.assertIn("error", json.loads(answer[2].splitlines()[-1]))
                    else:
                        self.assertIn(answer[0], (400, 502), answer)
                        self.assertIsInstance(answer[2]["error"], str)
            self.hub.add("org/large", {path.name: path.read_bytes()
                                       for path in (MODELS / "demo-target").iterdir()})
            self.refuse(server.post("/api/pull", {"model": "org/large", "stream": False}), 400,
                        "more than the 0.0 GB")
            self.assertEqual(len(server.get("/api/tags")[2]["models"]), 1)
            self.assertEqual(self.ask(server, None)[0], 200)

    def test_a_client_that_leaves_ends_it_and_another_goes_on_from_there(self):
        self.hub.pause = 0.05
        with self.serve("--allow-pull") as server:
            connection, response = server.stream("/api/pull", {"model": "org/small"})
            response.readline()
            self.refuse(server.post("/api/pull", {"model": "org/other", "stream": False}), 503,
                        "another model")
            self.assertEqual(self.ask(server, None)[0], 200)  # Nobody waits for it.
            connection.close()
            self.hub.pause = 0
            deadline = time.monotonic() + 30
            while True:
                status, _, body = server.post("/api/pull", {"model": "org/small", "stream": False})
                if status == 200:
                    break
                self.assertEqual(status, 503, body)
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
            self.assertEqual(self.ask(server, "org/small")[0], 200)

    def test_the_server_ends_though_one_is_under_way(self):
        self.hub.pause = 0.2
        with self.serve("--allow-pull", "--shutdown-seconds", 1) as server:
            connection, response = server.stream("/api/pull", {"model": "org/small"})
            response.readline()
            began = time.monotonic()
            self.assertEqual(server.end(30), 0, server.errors)
            self.assertLess(time.monotonic() - began, 15)
            connection.close()

    def test_several_ask_while_models_are_added(self):
        for i in range(4):
            self.hub.add(f"org/copy-{i}", {path.name: path.read_bytes()
                                           for path in (MODELS / "demo-draft").iterdir()})
        with self.serve("--allow-pull", "--max-models", 2) as server:
            stop = threading.Event()
            wrong = []

            def look():
                while not stop.is_set():
                    for path in ("/v1/models", "/api/tags", "/metrics", "/api/ps"):
                        if server.get(path)[0] != 200:
                            wrong.append(path)

            thread = threading.Thread(target=look)
            thread.start()
            for i in range(4):
                self.assertEqual(self.pull(server, f"org/copy-{i}")[-1], {"status": "success"})
                self.assertEqual(self.ask(server, f"org/copy-{i}")[0], 200)
            stop.set()
            thread.join()
            self.assertEqual(wrong, [])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
