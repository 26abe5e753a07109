"""Starts `foretoken serve` on the bundled models and speaks HTTP with it."""

import concurrent.futures
import http.client
import json
import os
import re
import signal
import subprocess
import time
import unittest

# Programs that tests start have none of the settings and keys of whoever runs the tests.
for name in [name for name in os.environ if name.startswith("FORETOKEN_")]:
    del os.environ[name]
os.environ.pop("OPENAI_API_KEY", None)
os.environ["XDG_CONFIG_HOME"] = "/dev/null"  # Where no folder can be made.


class Serving:
    """A running server; as a context it is ended by SIGTERM and must then exit with 0."""

    def __init__(self, program, *arguments, wait=True, preexec_fn=None, environment=None,
                 stdin=None):
        self.process = subprocess.Popen([program, "serve", "--port", "0", *map(str, arguments)],
                                        stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, preexec_fn=preexec_fn,
                                        env=environment)
        if wait:
            line = self.process.stdout.readline()
            match = re.search(r"Serving (.+?) at https?://\S+:(\d+) ", line)
            if match is None:
                raise RuntimeError(f"the server did not start: {line}{self.process.stderr.read()}")
            self.model, self.port = match.group(1), int(match.group(2))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        code = self.end()
        if kind is None and code != 0:
            raise RuntimeError(f"the server ended with {code}: {self.errors}")

    def end(self, timeout=60):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            _, self.errors = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, self.errors = self.process.communicate()
        return self.process.returncode

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=60):
        """(status, headers, body): the body as JSON where it is."""
        connection = self.connect(timeout)
        try:
            headers = dict(headers or {})
            if body is not None and not isinstance(body, (str, bytes)):
                body = json.dumps(body)
            if body is not None:
                headers.setdefault("Content-Type", "application/json")
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            content = response.read()
            if response.headers.get("Content-Type", "").startswith("application/json"):
                content = json.loads(content)
            else:
                content = content.decode()
            return response.status, response.headers, content
        finally:
            connection.close()

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body, **options):
        return self.request("POST", path, body, **options)

    def chat(self, text="Tell me a story.", **fields):
        fields.setdefault("max_tokens", 32)
        body = {"messages": [{"role": "user", "content": text}], **fields}
        return self.post("/v1/chat/completions", body)

    def complete(self, prompt="Once upon a time", **fields):
        return self.post("/v1/completions", {"prompt": prompt, **fields})

    def stream(self, path, body, address=None, headers=None):
        """Opens a stream, from an address of this machine: (connection, response)."""
        source = None if address is None else (address, 0)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60,
                                                source_address=source)
        connection.request("POST", path, json.dumps({**body, "stream": True}),
                           {"Content-Type": "application/json", **(headers or {})})
        return connection, connection.getresponse()

    def complete_until_learned(self, done, seconds, prompt, check=lambda: None, at_once=8, pause=0,
                               **fields):
        """Answers a prompt under ever new seeds, so many at once, until `done` of /stats'
        draft_learning; returns that. With none at once it only waits. `check` is called in
        between. What learns has the lowest priority: beside requests without a pause it takes
        long."""
        deadline = time.monotonic() + seconds
        seed = 0
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            while True:
                stats = self.get("/stats")[2]["draft_learning"]
                if done(stats):
                    return stats
                if time.monotonic() >= deadline:
                    raise AssertionError(f"not learned in time: {stats}")
                check()
                answers = [pool.submit(self.complete, prompt, seed=seed + i, **fields)
                           for i in range(at_once)]
                seed += at_once
                statuses = [answer.result()[0] for answer in answers]
                if any(status != 200 for status in statuses):
                    raise AssertionError(f"not all were answered: {statuses}")
                time.sleep(pause)

    def wait_idle(self, seconds=20):
        """Waits until no sequence runs or waits; returns /stats then."""
        deadline = time.monotonic() + seconds
        while True:
            stats = self.get("/stats")[2]
            if stats["running"] == 0 and stats["waiting"] == 0 and stats["kv"]["used"] == 0:
                return stats
            if time.monotonic() > deadline:
                raise AssertionError(f"the engine is not idle: {stats}")
            time.sleep(0.02)


class ServerTest(unittest.TestCase):
    """Tests that share one server, which setUpClass starts as `cls.server`."""

    @classmethod
    def tearDownClass(cls):
        cls.server.wait_idle()
        if cls.server.end() != 0:
            raise AssertionError(cls.server.errors)

    def succeed(self, answer):
        status, _, body = answer
        self.assertEqual(status, 200, body)
        return body


def events(response):
    """The JSON of each server-sent event; the end mark must come last."""
    ended = False
    for line in response:
        line = line.decode().rstrip("\n")
        if not line:
            continue
        if ended or not line.startswith("data: "):
            raise AssertionError(f"not an event: {line!r}")
        ended = line == "data: [DONE]"
        if not ended:
            yield json.loads(line[len("data: "):])
    if not ended:
        raise AssertionError("the stream ended without its end mark")


def generated_logprobs(server, tokens, top):
    """`token_logprobs` and `top_logprobs` of a prompt by requests that generate each token after
    those before it; what makes them choose it does not enter log-probabilities."""
    logprobs = {"token_logprobs": [None], "top_logprobs": [None]}
    for length in range(1, len(tokens)):
        status, _, body = server.complete(tokens[:length], max_tokens=1, temperature=0,
                                          logprobs=top, logit_bias={str(tokens[length]): 1e6})
        if status != 200:
            raise AssertionError(body)
        for name, values in logprobs.items():
            values += body["choices"][0]["logprobs"][name]
    return logprobs
