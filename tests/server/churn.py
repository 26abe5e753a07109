#!/usr/bin/env python3
"""Clients that come and go: churn.py PROGRAM [--seconds S] [--clients N]

For a program that is built with a sanitizer, which finds what a thread does to the state of another.
Half of the time a server loads and unloads two models in turn and reads its keys again; the other half its draft is exchanged
for another between rounds, which a thread of the server judges by the texts that it learns from.
Clients stream, leave at any moment, ask for whole replies, embeddings and tokens, send nonsense and
half requests, and come again, in every mode. Every output that comes whole must be the one that AR
gave for it beforehand, and the server must end well, with nothing on its standard error but
sentences of its own.
"""

import argparse
import http.client
import json
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time

from serving import Serving, events

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
PROMPTS = ("Once upon a time", "Lily had a red ball.", "Tom went to the park")
FORMATS = ({}, {"grammar": "root ::= ([a-z]{1,8} [ .]){4,20}"}, {"temperature": 0},
           {"response_format": {"type": "json_object"}}, {"logprobs": 3}, {"n": 3})
NONSENSE = (b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n",
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{\"messages\": [", b"\x16\x03\x01\x02\x00")


class Churn:
    def __init__(self, server, models, modes):
        self.server = server
        self.headers = {"Content-Type": "application/json", "x-api-key": "first"}
        self.models = models
        self.modes = modes
        self.expected = {}
        self.counts = {}
        self.problems = []
        self.lock = threading.Lock()
        self.stopped = threading.Event()

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def body(self, case, **more):
        model, prompt, form = case
        return {"model": model, "prompt": PROMPTS[prompt], "max_tokens": 24, "seed": prompt, **FORMATS[form],
                **more}

    def expect(self):
        for model in self.models:
            for prompt in range(len(PROMPTS)):
                for form in range(len(FORMATS)):
                    case = (model, prompt, form)
                    status, _, reply = self.server.post(
                        "/v1/completions", self.body(case, speculative={"mode": "ar"}), headers=self.headers,
                        timeout=300)
                    assert status == 200, reply
                    self.expected[case] = [choice["text"] for choice in reply["choices"]]

    def ask(self, draw, connection):
        case = draw.choice(sorted(self.expected))
        stream = draw.random() < 0.5
        body = self.body(case, stream=stream, speculative={"mode": draw.choice(self.modes)})
        connection.request("POST", "/v1/completions", json.dumps(body), self.headers)
        leaves = draw.random()
        if leaves < 0.3:
            time.sleep(leaves)
            return self.count("left")
        response = connection.getresponse()
        if response.status != 200:
            response.read()
            return self.count(response.status)
        if not stream:
            self.check(case, [choice["text"] for choice in json.loads(response.read())["choices"]])
            return self.count("whole")
        if leaves < 0.6:
            for _ in range(draw.randrange(1, 20)):
                response.readline()
            return self.count("left")
        texts = [""] * len(self.expected[case])
        for event in events(response):
            for choice in event["choices"]:
                texts[choice["index"]] += choice["text"]
        self.check(case, texts)
        return self.count("streamed")

    def check(self, case, texts):
        if texts != self.expected[case]:
            self.problems.append(f"{case}: {texts}, not {self.expected[case]}")

    def look(self, draw, connection):
        """What is not a generation."""
        path, body = draw.choice((
            ("/v1/embeddings", {"input": ["a", "b"]}), ("/tokenize", {"content": "a" * draw.randrange(30_000)}),
            ("/v1/chat/completions", {"messages": []}), ("/metrics", None), ("/stats", None), ("/slots", None),
            ("/props", None), ("/v1/models", None), ("/health", None), ("/nothing", None)))
        if body is not None:
            body = json.dumps({"model": draw.choice(self.models), **body})
        elif len(self.models) > 1 and path in ("/stats", "/slots", "/props"):
            path += "?model=" + draw.choice(self.models)
        connection.request("POST" if body else "GET", path, body, self.headers)
        if draw.random() < 0.7:
            connection.getresponse().read()
        self.count("looked")

    def babble(self, draw, connection):
        connection.connect()
        connection.sock.sendall(draw.choice(NONSENSE))
        time.sleep(draw.random() * 0.02)
        self.count("nonsense")

    def client(self, seed):
        draw = random.Random(seed)
        while not self.stopped.is_set():
            connection = self.server.connect(timeout=300)
            try:
                kind = draw.random()
                (self.ask if kind < 0.7 else self.look if kind < 0.9 else self.babble)(draw, connection)
            except (http.client.HTTPException, ConnectionError) as problem:
                self.problems.append(f"client {seed}: {problem!r}")
            finally:
                connection.close()

    def run(self, clients, seconds, disturb=lambda: None):
        threads = [threading.Thread(target=self.client, args=(i,)) for i in range(clients)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.server.process.poll() is None:
            disturb()
            time.sleep(0.5)
        self.stopped.set()
        for thread in threads:
            thread.join()


def finish(server, churn, name):
    code = server.end(timeout=120)
    if code != 0:
        churn.problems.append(f"the server ended with {code}")
    if re.search("Sanitizer|runtime error|FT_CHECK|terminate", server.errors):
        churn.problems.append(server.errors)
    print(json.dumps({"churn": name, **{str(k): v for k, v in sorted(churn.counts.items(), key=str)}}))
    return churn.problems


def models_in_turn(program, clients, seconds):
    modes = ["ar", "ngram", "sd", "ssd", "sssd", "auto"]
    with tempfile.TemporaryDirectory() as folder:
        keys = pathlib.Path(folder) / "keys"
        keys.write_text("first\n")
        keys.chmod(0o600)
        server = Serving(program, "-m", f"a={MODELS / 'demo-target'}", "-m", f"b={MODELS / 'demo-target'}",
                         "-md", MODELS / "demo-draft", "--max-models", 1, "-np", 4, "--queue", 64,
                         "--context", 256, "--modes", ",".join(modes), "--api-key-file", keys)
        churn = Churn(server, ["a", "b"], modes)
        churn.expect()

        def read_keys_again():
            keys.write_text("first\n" if keys.read_text() != "first\n" else "second\nfirst limit=40\n")
            server.process.send_signal(signal.SIGHUP)
            churn.count("keys read again")
        churn.run(clients, seconds, read_keys_again)
        return finish(server, churn, "models in turn")


def drafts_in_turn(program, clients, seconds):
    modes = ["ar", "sd", "ssd"]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        server = Serving(program, "--learn-draft", folder, "-np", 4, "--queue", 64, "--context", 256,
                         "--modes", ",".join(modes), "--mode", "ssd")
        churn = Churn(server, [server.model], modes)
        churn.expect()
        offered = []

        def offer():
            """Another candidate, once the one before was judged."""
            if len(offered) > server.get("/stats", timeout=300)[2]["draft_learning"]["judged"]:
                return
            name = f"{len(offered) + 1:05}"
            part = folder / "candidates" / f"{name}.part"
            shutil.copytree(MODELS / ("demo-draft" if len(offered) % 2 else "demo-target"), part)
            part.rename(part.with_suffix(""))
            offered.append(name)
        churn.run(clients, seconds, offer)
        churn.counts["drafts offered"] = len(offered)
        return finish(server, churn, "drafts in turn")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=16)
    arguments = parser.parse_args()
    problems = []
    for part in (models_in_turn, drafts_in_turn):
        problems += part(arguments.program, arguments.clients, arguments.seconds / 2)
    for problem in problems[:10]:
        print("PROBLEM:", problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
