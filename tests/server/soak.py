#!/usr/bin/env python3
"""Load with everything mixed: soak.py PROGRAM [--seconds S] [--streams N] [--slow N]
[SERVER OPTION]...

Some clients at once stream and do not stream, in every mode and with changing plans, with schemas
and grammars, leave in the middle, and send nonsense; beside them thousands send their heads slowly
and come again when the server hangs up. Every output that completes must be the one that AR gave for its prompt,
options and seed beforehand; every request must get a reply; in the end the KV pool is empty and the
memory has not grown. Prints one line of figures.
"""

import argparse
import concurrent.futures
import http.client
import json
import multiprocessing
import random
import resource
import selectors
import socket
import threading
import time

from serving import Serving, events

PROMPTS = ("Once upon a time", "Lily had a big red ball.", "Tom went to the park", "The dog was sad",
           "There was a little house in the forest", "One day, a bird")
OPTIONS = ({"temperature": 0}, {"temperature": 1},
           {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.01},
           {"temperature": 0.7, "repetition_penalty": 1.2, "presence_penalty": 0.3})
WISHES = ({"off": True}, {"mode": "ngram"}, {"mode": "sd"}, {"mode": "ssd"}, {},
          {"mode": "ssd", "lookahead": 3, "fanout": 2}, {"mode": "ssd", "fallback": "none"},
          {"mode": "ssd", "fallback": "ngram", "lookahead": 8}, {"mode": "sd", "lookahead": 12},
          {"mode": "auto"}, {"mode": "sssd"}, {"mode": "trie"})
MODES = "ssd,ar,ngram,sd,sssd,trie,auto"
SCHEMA = {"type": "object", "properties": {
    "name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 99},
    "likes": {"type": "array", "items": {"enum": ["cats", "dogs", "the sea"]}, "maxItems": 3}},
    "required": ["name", "age"], "additionalProperties": False}
FORMATS = ({}, {"response_format": {"type": "json_object"}}, {"grammar": 'root ::= ([a-z]{1,8} [ .]){4,20}'},
           {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}})
# (prompt, options, format) of each request that is sent.
CASES = [(p, o, 0) for p in range(len(PROMPTS)) for o in range(len(OPTIONS))] + \
        [(p, p % len(OPTIONS), f) for p in range(len(PROMPTS)) for f in range(1, len(FORMATS))]
NONSENSE = ('{"prompt": ', '{"prompt": "a", "n": 0}', '{"prompt": "a", "speculative": {"k": 1}}', "[]",
            '{"prompt": "a", "speculative": {"mode": "warp"}}', '{"prompt": [999999]}',
            '{"prompt": "a", "grammar": "root ::= ("}', '{"prompt": "a", "prompt": "a"}',
            '{"prompt": "a", "response_format": {"type": "json_schema", "json_schema": {"name": "a", '
            '"schema": {"unevaluatedItems": {}}}}}')
MAX_TOKENS = 64


def resident_mb(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return 0


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))] if values else 0


def fields_of(case):
    prompt, options, form = case
    return {"prompt": PROMPTS[prompt], "max_tokens": MAX_TOKENS, "seed": prompt, **OPTIONS[options],
            **FORMATS[form]}


def watch_health(port, seconds):
    """Asks /health for `seconds`, in a process of its own: (milliseconds, problems)."""
    times, problems = [], []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        connection.request("GET", "/health")
        response = connection.getresponse()
        response.read()
        times.append((time.monotonic() - begin) * 1e3)
        if response.status != 200:
            problems.append(f"/health answered {response.status}")
        time.sleep(0.02)
    return times, problems


def stay_slow(port, seconds, count):
    """Keeps `count` connections for `seconds` whose heads never end, in a process of its own.
    Returns how many the server hung up on."""
    selector = selectors.DefaultSelector()
    dropped = 0

    def connect():
        connection = socket.create_connection(("127.0.0.1", port), timeout=60)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ)

    end = time.monotonic() + seconds
    for _ in range(count):
        connect()
    while time.monotonic() < end:
        for key, _ in selector.select(timeout=0.1):
            selector.unregister(key.fileobj)
            key.fileobj.close()
            dropped += 1
            connect()
    return dropped


class Soak:
    def __init__(self, server, expected, seconds, slow):
        self.server = server
        self.expected = expected
        self.seconds = seconds
        self.slow = slow
        self.slow_dropped = 0
        self.end = 0
        self.lock = threading.Lock()
        self.counts = dict.fromkeys(("whole", "streamed", "left", "refused", "busy"), 0)
        self.problems = []

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def check(self, case, text, finish):
        if (text, finish) != self.expected[case]:
            self.problems.append(f"{case}: {text!r} {finish}, not {self.expected[case]}")

    def body_of(self, draw):
        case = draw.choice(CASES)
        body = {**fields_of(case), "speculative": draw.choice(WISHES)}
        if draw.random() < 0.2:
            body["logprobs"] = 2
        return case, body

    def send(self, connection, body):
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        return connection.getresponse()

    def stream_once(self, connection, draw):
        case, body = self.body_of(draw)
        body.update(stream=True, speculation_trace=draw.random() < 0.3)
        response = self.send(connection, json.dumps(body))
        if response.status == 429:
            response.read()
            return self.count("busy")
        leaves_after = draw.randrange(1, 12) if draw.random() < 0.3 else None
        text, finish = "", None
        for number, event in enumerate(events(response)):
            if number == leaves_after:
                connection.close()
                return self.count("left")
            text += event["choices"][0]["text"]
            finish = event["choices"][0]["finish_reason"] or finish
        self.check(case, text, finish)
        return self.count("streamed")

    def whole_once(self, connection, draw):
        case, body = self.body_of(draw)
        response = self.send(connection, json.dumps(body))
        reply = json.loads(response.read())
        if response.status == 429:
            return self.count("busy")
        choice = reply["choices"][0]
        self.check(case, choice["text"], choice["finish_reason"])
        return self.count("whole")

    def leave_once(self, connection, draw):
        connection.request("POST", "/v1/completions", json.dumps(self.body_of(draw)[1]),
                           {"Content-Type": "application/json"})
        time.sleep(draw.random() * 0.05)
        connection.close()
        self.count("left")

    def nonsense_once(self, connection, draw):
        response = self.send(connection, draw.choice(NONSENSE))
        response.read()
        if response.status != 400:
            self.problems.append(f"nonsense was answered {response.status}")
        self.count("refused")

    def client(self, seed):
        draw = random.Random(seed)
        connection = self.server.connect(timeout=120)
        try:
            while time.monotonic() < self.end:
                kind = draw.random()
                (self.stream_once if kind < 0.7 else self.whole_once if kind < 0.85 else
                 self.leave_once if kind < 0.9 else self.nonsense_once)(connection, draw)
                if draw.random() < 0.1:
                    connection.close()
        except (OSError, http.client.HTTPException, AssertionError, KeyError) as problem:
            self.problems.append(f"client {seed}: {problem!r}")

    def run(self, streams):
        """Runs to the end, and returns how long /health took, in milliseconds."""
        spawn = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=spawn) as pool:
            for started in [pool.submit(time.sleep, 0.1) for _ in range(2)]:
                started.result()
            slow = pool.submit(stay_slow, self.server.port, self.seconds, self.slow)
            self.end = time.monotonic() + self.seconds
            health = pool.submit(watch_health, self.server.port, self.seconds)
            threads = [threading.Thread(target=self.client, args=(i,)) for i in range(streams)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            times, problems = health.result()
            self.slow_dropped = slow.result()
        self.problems += problems
        return times


def expected_outputs(server):
    expected = {}
    for case in CASES:
        status, _, body = server.post("/v1/completions",
                                      {**fields_of(case), "speculative": {"mode": "ar"}})
        assert status == 200, body
        choice = body["choices"][0]
        expected[case] = (choice["text"], choice["finish_reason"])
    return expected


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--slow", type=int, default=5000)
    arguments, server_options = parser.parse_known_args()
    # Each slow client is a file of both processes.
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (room, room))
    slow = min(arguments.slow, room - 500)
    with Serving(arguments.program, "-np", 16, "--queue", 64, "--modes", MODES,
                 *server_options) as server:
        expected = expected_outputs(server)
        warm_up = Soak(server, expected, min(10, arguments.seconds / 3), slow)
        warm_up.run(arguments.streams)
        server.wait_idle()
        resident = resident_mb(server.process)
        soak = Soak(server, expected, arguments.seconds, slow)
        health_ms = soak.run(arguments.streams)
        stats = server.wait_idle()
        grown = resident_mb(server.process) - resident
        problems = warm_up.problems + soak.problems
    if stats["kv"]["used"] + stats["waiting"] + stats["running"] != 0:
        problems.append(f"not idle in the end: {stats}")
    if grown > max(16, 0.1 * resident):
        problems.append(f"the resident memory grew by {grown:.1f} MB from {resident:.1f} MB")
    if min(soak.counts[kind] for kind in ("whole", "streamed", "left", "refused")) == 0:
        problems.append(f"something never happened: {soak.counts}")
    print(json.dumps({**soak.counts, "modes": {m: c["requests"] for m, c in stats["modes"].items()},
                      "slow": slow, "slow_dropped": soak.slow_dropped,
                      "health_p50_ms": round(quantile(health_ms, 0.5), 2),
                      "health_p99_ms": round(quantile(health_ms, 0.99), 2),
                      "resident_mb": round(resident, 1), "grown_mb": round(grown, 1)}))
    for problem in problems[:20]:
        print("PROBLEM:", problem)
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
