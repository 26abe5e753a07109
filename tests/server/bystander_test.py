#!/usr/bin/env python3
"""What one client can do to another over the network: bystander_test.py PROGRAM [TEST]...

While one client does its worst, a bystander goes on: the longest that it waits is measured from
outside. Afterwards the server has its memory back.
"""

import json
import random
import socket
import sys
import threading
import time
import unittest

from attack_test import memory_mb, next_answer
from serving import Serving, events

PROGRAM = ""
KEYED = {"Content-Type": "application/json"}


class Bystander:
    """Asks for the health and for the tokens of a word, over and over, until it is left; `longest` is
    then the most seconds that either took."""

    def __init__(self, server):
        self.server = server
        self.times = []
        self.problems = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        connection = self.server.connect(timeout=120)
        while not self.stopped.is_set():
            for method, path, body in (("GET", "/health", None), ("POST", "/tokenize", '{"content": "a"}')):
                begin = time.monotonic()
                connection.request(method, path, body, KEYED)
                response = connection.getresponse()
                response.read()
                self.times.append(time.monotonic() - begin)
                if response.status != 200:
                    self.problems.append(f"{path} was answered {response.status}")
            time.sleep(0.005)
        connection.close()

    def __enter__(self):
        self.thread.start()
        time.sleep(0.2)
        self.times.clear()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()
        self.longest = max(self.times)


def send(server, path, body):
    """The answer's status and text, which is read and not looked at: that would take this process's one
    interpreter away from the bystander."""
    connection = server.connect(timeout=120)
    connection.request("POST", path, body, KEYED)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, text


def leave_streams(server, seed, end):
    """Begins streams until `end`, one after the other, each left after a few events."""
    draw = random.Random(seed)
    while time.monotonic() < end:
        connection = server.connect()
        connection.request("POST", "/v1/completions", json.dumps(
            {"prompt": "Once upon a time", "max_tokens": 200, "ignore_eos": True, "stream": True,
             "seed": draw.randrange(1000), "speculative": {"mode": draw.choice(("ar", "ngram", "sd", "ssd"))}}),
                           KEYED)
        response = connection.getresponse()
        for _ in range(draw.randrange(1, 12)):
            response.readline()
        connection.close()


class Bystanders(unittest.TestCase):
    # The machine of a test may be busy with other tests: what the faults took was seconds.
    PATIENCE = 0.5

    def at_ease(self, bystander):
        self.assertEqual(bystander.problems, [])
        print(f"{self.id().split('.')[-1]}: a bystander waited {bystander.longest * 1e3:.0f} ms at most",
              file=sys.stderr)
        self.assertLess(bystander.longest, self.PATIENCE)

    def test_clients_that_leave(self):
        """Connections die on the network's thread, whatever the engine's does at the time."""
        with Serving(PROGRAM, "-np", 8, "--queue", 64, "--modes", "ar,ngram,sd,ssd") as server:
            with Bystander(server) as bystander:
                end = time.monotonic() + 8
                leavers = [threading.Thread(target=leave_streams, args=(server, i, end)) for i in range(16)]
                for leaver in leavers:
                    leaver.start()
                for leaver in leavers:
                    leaver.join()
            self.at_ease(bystander)
            server.wait_idle()

    def test_a_long_reply(self):
        """Replies are written beside the network's thread, and have a limit."""
        with Serving(PROGRAM) as server:
            ask = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 480,
                   "ignore_eos": True, "logprobs": True}
            before = memory_mb(server.process, "VmRSS")
            status, _, reply = server.post("/v1/chat/completions", {**ask, "n": 128, "top_logprobs": 20})
            self.assertEqual(status, 400)
            self.assertIn("log-probabilities of the outputs may come to", reply["error"]["message"])
            self.assertEqual(reply["error"]["param"], "max_tokens")
            with Bystander(server) as bystander:
                status, text = send(server, "/v1/chat/completions",
                                    json.dumps({**ask, "n": 90, "top_logprobs": 20}))
            self.assertEqual(status, 200, text)
            reply = json.loads(text)
            self.assertEqual([len(choice["logprobs"]["content"]) for choice in reply["choices"]], [480] * 90)
            self.at_ease(bystander)
            peak = memory_mb(server.process) - before
            kept = memory_mb(server.process, "VmRSS") - before
            print(f"a reply of 907,200 log-probabilities took {peak:.0f} MB, {kept:.0f} MB after it",
                  file=sys.stderr)
            self.assertLess(peak, 400)
            self.assertLess(kept, 100)

    def test_work_that_takes_long(self):
        """Short requests do not wait for long ones, whoever sent these."""
        calls = [{"id": f"call{i}", "type": "function", "function": {"name": "f", "arguments": ""}}
                 for i in range(44_000)]
        heavy = [("/v1/chat/completions", json.dumps({"messages": [
                     {"role": "assistant", "content": "", "tool_calls": calls},
                     {"role": "tool", "tool_call_id": "call1", "content": "a"}]})),
                 ("/v1/responses", json.dumps({"input": [
                     {"type": "function_call", "call_id": f"{i}", "name": "f", "arguments": "{}"}
                     for i in range(40_000)]})),
                 ("/tokenize", json.dumps({"content": "Once upon a time. " * 50_000, "with_pieces": True})),
                 ("/v1/completions", json.dumps({"prompt": "a", "grammar": 'root ::= ("a"? [a-z]{0,60}){0,300}'}))]
        for path, body in heavy:
            with self.subTest(path), Serving(PROGRAM) as server:
                begin = time.monotonic()
                status = send(server, path, body)[0]
                print(f"{path}: {status} after {time.monotonic() - begin:.2f} s alone", file=sys.stderr)
                self.assertIn(status, (200, 400))
                self.assertLess(time.monotonic() - begin, 5)
                with Bystander(server) as bystander:
                    senders = [threading.Thread(target=send, args=(server, path, body))
                               for _ in range(8)]
                    for sender in senders:
                        sender.start()
                    for sender in senders:
                        sender.join()
                self.at_ease(bystander)

    def test_bodies_of_clients_that_have_left(self):
        """A body counts for as long as it is kept, and nobody works for who has left."""
        text = json.dumps({"content": "Once upon a time. " * 55_000, "with_pieces": True}).encode()
        head = (b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n" % len(text))
        with Serving(PROGRAM) as server:
            before = memory_mb(server.process, "VmRSS")
            with Bystander(server) as bystander:
                for _ in range(400):
                    with socket.create_connection(("127.0.0.1", server.port)) as connection:
                        try:
                            connection.sendall(head + text)
                        except OSError:
                            pass  # Refused: the server holds enough.
            self.at_ease(bystander)
            time.sleep(3)
            peak = memory_mb(server.process) - before
            kept = memory_mb(server.process, "VmRSS") - before
            print(f"400 bodies of a megabyte took {peak:.0f} MB, {kept:.0f} MB after them", file=sys.stderr)
            self.assertLess(peak, 400)
            self.assertLess(kept, 100)

    def test_requests_sent_ahead_come_in_order(self):
        """What arrives while an earlier request is answered is read once, after it."""
        with Serving(PROGRAM) as server, \
                socket.create_connection(("127.0.0.1", server.port), 60) as connection:
            body = json.dumps({"prompt": "Once", "max_tokens": 100, "ignore_eos": True}).encode()
            slow = (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)) + body
            connection.sendall(slow)
            time.sleep(0.02)
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answers = connection.makefile("rb")

            def next_body():
                status, body = next_answer(answers)
                return status, json.loads(body)
            self.assertIn("choices", next_body()[1])
            self.assertEqual(next_body(), (200, {"status": "ok"}))
            for path in (b"/v1/models", b"/health", b"/api/version"):
                connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
                status, reply = next_body()
                self.assertEqual((status, "status" in reply), (200, path == b"/health"), reply)

    def test_hosts_are_the_same_in_capitals_and_within_the_path(self):
        with Serving(PROGRAM) as server:
            for target, host, status in (
                    ("/health", "LOCALHOST", 200), ("/health", "LocalHost:8080", 200),
                    (f"http://127.0.0.1:{server.port}/health", "127.0.0.1", 200),
                    ("HTTP://localhost/health", "evil.example", 200),
                    ("http://evil.example/health", "localhost", 403)):
                with socket.create_connection(("127.0.0.1", server.port), 20) as connection:
                    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                    self.assertEqual(connection.recv(4096).split()[1], str(status).encode(), (target, host))

    def test_a_stream_with_much_to_tell(self):
        """Long parts of a stream come whole and in order, beside the network's thread."""
        with Serving(PROGRAM) as server, Bystander(server) as bystander:
            connection, response = server.stream("/v1/completions", {
                "prompt": "Once", "max_tokens": 300, "ignore_eos": True, "logprobs": 100, "seed": 5})
            time.sleep(1)  # It takes nothing at first, so that much comes together.
            streamed = "".join(event["choices"][0]["text"] for event in events(response))
            connection.close()
            whole = server.complete("Once", max_tokens=300, ignore_eos=True, seed=5)[2]
            self.assertEqual(streamed, whole["choices"][0]["text"])
        self.at_ease(bystander)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
