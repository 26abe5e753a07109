#!/usr/bin/env python3
"""What a stranger can do to the server over the network: attack_test.py PROGRAM [TEST]..."""

import gzip
import json
import pathlib
import resource
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

from serving import Serving

PROGRAM = ""
JSON = b"Content-Type: application/json\r\n"
MB = 1 << 20


def memory_mb(process, field="VmHWM"):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(field):
                return int(line.split()[1]) / 1024
    return 0


def post(fields=b"", body=b"", path=b"/v1/completions"):
    return b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + JSON + fields + b"\r\n" + body


GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), 20)


def answer_of(connection, closes=False):
    """Reads the one answer: (status, body). With `closes`, the server must end the connection after."""
    with connection.makefile("rb") as file:
        status, body = next_answer(file)
        assert not closes or file.read(1) == b"", "the connection lives on"
    return status, body


def next_answer(file):
    status = file.readline()
    length = 0
    while (line := file.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    body = file.read(length)
    return int(status.split()[1]) if status else 0, body


def send_until_refused(connection, pieces):
    """Sends pieces until the server takes no more; how many bytes it took."""
    sent = 0
    try:
        for piece in pieces:
            connection.sendall(piece)
            sent += len(piece)
    except OSError:
        pass
    return sent


class Limits(unittest.TestCase):
    def setUp(self):
        self.server = Serving(PROGRAM, "--api-key", "secret")
        self.before = memory_mb(self.server.process)

    def tearDown(self):
        with connect(self.server) as connection:
            connection.sendall(GET)
            self.assertEqual(answer_of(connection)[0], 200)
        grown = memory_mb(self.server.process) - self.before
        self.assertEqual(self.server.end(), 0, self.server.errors)
        self.assertLess(grown, 32)

    def test_nobody_without_the_key_has_a_body_read(self):
        for fields in (b"Content-Length: 3000000\r\n", b"Transfer-Encoding: chunked\r\n",
                       b"Content-Length: 3000000\r\nExpect: 100-continue\r\n"):
            with connect(self.server) as connection:
                begin = time.monotonic()
                connection.sendall(post(fields))
                self.assertEqual(answer_of(connection)[0], 401)
                self.assertLess(time.monotonic() - begin, 1)

    def test_bodies_end_at_the_limit(self):
        key = b"Authorization: Bearer secret\r\n"
        with connect(self.server) as connection:
            connection.sendall(post(key + b"Content-Length: 1000000000\r\n"))
            status, body = answer_of(connection)
            self.assertEqual((status, json.loads(body)["error"]["code"]), (413, "body_too_large"))
        for _ in range(4):
            with connect(self.server) as connection:
                connection.sendall(post(key + b"Transfer-Encoding: chunked\r\n"))
                chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
                sent = send_until_refused(connection, (chunk for _ in range(1600)))
                self.assertLess(sent, 40 * MB)

    def test_nothing_is_decompressed(self):
        bomb = gzip.compress(b"a" * (1 << 28))
        for coding in (b"gzip", b"br", b"deflate", b"zstd"):
            with connect(self.server) as connection:
                connection.sendall(post(b"Authorization: Bearer secret\r\nContent-Encoding: " + coding +
                                        b"\r\nContent-Length: %d\r\n" % len(bomb), bomb))
                self.assertEqual(answer_of(connection)[0], 415)

    def test_heads_end_at_the_limit(self):
        for pieces in ((b"X-%d: " % i + b"a" * 4000 + b"\r\n" for i in range(100_000)),
                       (b"a" * 65536 for _ in range(1000))):
            with connect(self.server) as connection:
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n")
                self.assertLess(send_until_refused(connection, pieces), 40 * MB)
        with connect(self.server) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70000)
            self.assertEqual(answer_of(connection, closes=True)[0], 431)

    def test_lines_of_chunks_are_bounded(self):
        with connect(self.server) as connection:
            connection.sendall(post(b"Authorization: Bearer secret\r\nTransfer-Encoding: chunked\r\n"))
            sent = send_until_refused(connection, (b"1;" + b"a" * 65536 for _ in range(1000)))
            self.assertLess(sent, 40 * MB)

    def test_ranges_are_not_honoured(self):
        ranges = "bytes=" + ",".join(f"{i}-" for i in range(1000))
        for path in ("/", "/health"):
            status, _, body = self.server.get(path, headers={"Range": ranges})
            self.assertEqual(status, 200)
            self.assertLess(len(str(body)), 200_000)


class Framing(unittest.TestCase):
    """Where a request ends, the server and a proxy before it must agree."""

    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.end() == 0, cls.server.errors

    def test_what_is_framed_in_two_ways_is_refused_and_closed(self):
        smuggled = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for fields in (b"Content-Length: 5\r\nContent-Length: 6\r\n",
                       b"Content-Length: 5\r\nContent-Length: 5\r\n",
                       b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                       b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                       b"Content-Length: +5\r\n", b"Content-Length: -5\r\n",
                       b"Content-Length: 0x5\r\n", b"Content-Length: 5,5\r\n",
                       b"Content-Length: \r\n", b"Content-Length: 99999999999999999999\r\n",
                       b"Transfer-Encoding: gzip\r\n", b"Transfer-Encoding: gzip, chunked\r\n",
                       b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding: xchunked\r\n",
                       b"Transfer-Encoding : chunked\r\n",
                       b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"):
            with self.subTest(fields=fields), connect(self.server) as connection:
                begin = time.monotonic()
                connection.sendall(post(fields, b"0\r\n\r\n" + smuggled))
                self.assertIn(answer_of(connection, closes=True)[0], (400, 413))
                self.assertLess(time.monotonic() - begin, 2)
        with connect(self.server) as connection:  # No Host, and two.
            connection.sendall(b"GET /health HTTP/1.1\r\n\r\n" + smuggled)
            self.assertEqual(answer_of(connection, closes=True)[0], 400)
        with connect(self.server) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + smuggled)
            self.assertEqual(answer_of(connection, closes=True)[0], 400)

    def test_wrong_chunks_are_refused_and_closed(self):
        for body in (b"zz\r\n", b"-1\r\n", b"5\r\nabcdeXX0\r\n\r\n", b"fffffffffffffffff\r\n"):
            with self.subTest(body=body), connect(self.server) as connection:
                connection.sendall(post(b"Transfer-Encoding: chunked\r\n", body))
                self.assertIn(answer_of(connection, closes=True)[0], (400, 413))

    def test_a_body_that_ends_early_is_answered_at_once(self):
        with connect(self.server) as connection:
            begin = time.monotonic()
            connection.sendall(post(b"Content-Length: 99\r\n", b"short"))
            connection.shutdown(socket.SHUT_WR)
            self.assertEqual(answer_of(connection, closes=True)[0], 400)
            self.assertLess(time.monotonic() - begin, 1)

    def test_bodies_of_get_are_consumed(self):
        inner = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with connect(self.server) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                               % len(inner) + inner + GET)
            with connection.makefile("rb") as file:
                self.assertEqual([next_answer(file)[0] for _ in range(2)], [200, 200])

    def test_requests_that_come_early_are_answered_in_order(self):
        body = json.dumps({"prompt": "Once", "max_tokens": 2}).encode()
        with connect(self.server) as connection:
            whole = post(b"Content-Length: %d\r\n" % len(body), body)
            connection.sendall(GET + whole + GET + whole + b"GET /no HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with connection.makefile("rb") as file:
                statuses = [next_answer(file)[0] for _ in range(5)]
            self.assertEqual(statuses, [200, 200, 200, 200, 404])

    def test_chunked_bodies_in_small_pieces(self):
        body = json.dumps({"prompt": "Once", "max_tokens": 2}).encode()
        with connect(self.server) as connection:
            connection.sendall(post(b"Transfer-Encoding: chunked\r\n"))
            for byte in body:
                connection.sendall(b"1\r\n" + bytes([byte]) + b"\r\n")
            connection.sendall(b"0\r\n\r\n")
            self.assertEqual(answer_of(connection)[0], 200)

    def test_continue_is_said_before_a_body(self):
        body = json.dumps({"prompt": "Once", "max_tokens": 2}).encode()
        with connect(self.server) as connection:
            connection.sendall(post(b"Expect: 100-continue\r\nContent-Length: %d\r\n" % len(body)))
            self.assertEqual(connection.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.sendall(body)
            self.assertEqual(answer_of(connection)[0], 200)

    def test_errors_repeat_little(self):
        long = "x" * 1_000_000
        for body in ({"prompt": "a", "speculative": {"mode": long}},
                     {"prompt": "a", "speculative": {long: 1}},
                     {"prompt": "a", "grammar": "root ::= " + long},
                     {"prompt": "a", "response_format": {"type": long}},
                     {"prompt": "a", "logit_bias": {long: 1}},
                     {"prompt": "a", "datastore": {"namespace": long}},
                     '{"prompt": "a", "%s": 1, "%s": 1}' % (long, long)):
            status, _, reply = self.server.post("/v1/completions", body)
            self.assertIn(status, (400, 404))
            self.assertLess(json.dumps(reply).count("x"), 250, json.dumps(reply)[:400])
        status, _, reply = self.server.get("/" + "x" * 20000)
        self.assertEqual(status, 404)
        self.assertLess(json.dumps(reply).count("x"), 250)

    def test_long_texts_cost_little(self):
        before = memory_mb(self.server.process)
        text = json.dumps({"content": "Once upon a time. " * 200_000})
        status, _, reply = self.server.post("/tokenize", text)
        self.assertEqual((status, reply["error"]["param"]), (400, "content"))
        begin = time.monotonic()
        prompt = json.dumps({"prompt": "Once upon a time. " * 200_000})
        for _ in range(10):
            status, _, reply = self.server.post("/v1/completions", prompt)
            self.assertEqual(reply["error"]["code"], "context_length_exceeded")
        self.assertLess(time.monotonic() - begin, 5)
        status, _, reply = self.server.post("/tokenize", {"content": "Once upon a time. " * 50_000})
        self.assertEqual((status, reply["count"]), (200, len(reply["tokens"])))
        self.assertLess(memory_mb(self.server.process) - before, 256)
        self.assertLess(memory_mb(self.server.process, "VmRSS") - before, 32)

    def test_json_ends_where_it_ends(self):
        for tail in ("\0", "\0\0 {}", " x", "{}"):
            status, _, reply = self.server.post("/v1/completions", '{"prompt": "a"}' + tail)
            self.assertEqual(status, 400, tail)
            self.assertIn("not valid JSON", reply["error"]["message"])


class Crowds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
        cls.room = min(hard, 16384) - 200

    def test_good_clients_beside_slow_ones(self):
        count = min(5000, self.room)
        with Serving(PROGRAM) as server:
            before = memory_mb(server.process)
            slow = [connect(server) for _ in range(count)]
            for connection in slow:
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
            times = []
            for _ in range(50):
                begin = time.monotonic()
                status = server.get("/health")[0]
                times.append(time.monotonic() - begin)
                self.assertEqual(status, 200)
                for connection in slow[:100]:
                    try:
                        connection.sendall(b"a")
                    except OSError:
                        pass
            begin = time.monotonic()
            self.assertEqual(server.complete(max_tokens=4)[0], 200)
            self.assertLess(time.monotonic() - begin, 2)
            self.assertLess(sorted(times)[len(times) // 2], 0.05)
            with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
                threads = next(int(line.split()[1]) for line in status if line.startswith("Threads"))
            self.assertLess(threads, 32)
            self.assertLess(memory_mb(server.process) - before, 128)
            # They have 10 seconds for their head, whatever they trickle.
            first = slow[0]
            first.settimeout(20)
            self.assertEqual(answer_of(first, closes=True)[0], 408)
            for connection in slow:
                connection.close()
            self.assertEqual(server.get("/health")[0], 200)

    def test_two_hundred_connect_at_once(self):
        with Serving(PROGRAM) as server:
            selector = selectors.DefaultSelector()
            begin = {}
            times = []
            for _ in range(200):
                connection = socket.socket()
                connection.setblocking(False)
                connection.connect_ex(("127.0.0.1", server.port))
                begin[connection] = time.monotonic()
                selector.register(connection, selectors.EVENT_WRITE)
            while len(times) < 200:
                for key, event in selector.select(20):
                    if event & selectors.EVENT_WRITE:
                        key.fileobj.send(GET)
                        selector.modify(key.fileobj, selectors.EVENT_READ)
                    else:
                        self.assertIn(b"200 OK", key.fileobj.recv(4096))
                        times.append(time.monotonic() - begin[key.fileobj])
                        selector.unregister(key.fileobj)
            for connection in begin:
                connection.close()
            times.sort()
            print(f"200 at once: median {times[100] * 1e3:.1f} ms, p99 {times[197] * 1e3:.1f} ms",
                  file=sys.stderr)

    def test_connections_beyond_the_limit_are_told(self):
        with Serving(PROGRAM, "--connections", 20) as server:
            held = [connect(server) for _ in range(20)]
            time.sleep(0.2)
            with connect(server) as connection:
                self.assertEqual(answer_of(connection, closes=True)[0], 503)
            for connection in held:
                connection.close()
            time.sleep(0.2)
            self.assertEqual(server.get("/health")[0], 200)

    def test_few_descriptors(self):
        def limited(count):
            return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
        result = subprocess.run([PROGRAM, "serve", "--port", "0"], preexec_fn=limited(32), text=True,
                                capture_output=True, timeout=60)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"\Aforetoken: [^\n]*32 files[^\n]*\n\Z")
        with Serving(PROGRAM, preexec_fn=limited(120)) as server:
            held = [connect(server) for _ in range(150)]
            told = sum(1 for connection in held[60:] if answer_of(connection)[0] == 503)
            self.assertGreaterEqual(told, 80)
            for connection in held:
                connection.close()
            time.sleep(0.2)
            self.assertEqual(server.get("/health")[0], 200)

    def test_little_memory_for_threads(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        with Serving(PROGRAM, preexec_fn=limited) as server:
            held = [connect(server) for _ in range(min(1000, self.room))]
            self.assertEqual(server.get("/health")[0], 200)
            self.assertEqual(server.complete(max_tokens=4)[0], 200)
            for connection in held:
                connection.close()


class Doors(unittest.TestCase):
    def test_a_port_is_one_servers(self):
        with Serving(PROGRAM) as server:
            result = subprocess.run([PROGRAM, "serve", "--port", str(server.port)], text=True,
                                    capture_output=True, timeout=60)
            self.assertEqual(result.returncode, 2)
            self.assertIn("the port is taken", result.stderr)
            self.assertNotIn("Serving", result.stdout)

    def test_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "keys"
            file.write_text("# of two people\nalice a-key%41\n\nb-key\n")
            with Serving(PROGRAM, "--api-key-file", file) as server:
                def models(**headers):
                    return server.get("/v1/models", headers={k.replace("_", "-"): v
                                                             for k, v in headers.items()})[0]
                self.assertEqual(models(Authorization="Bearer a-key%41"), 200)
                self.assertEqual(models(Authorization="Bearer b-key"), 200)
                self.assertEqual(models(x_api_key="b-key"), 200)
                self.assertEqual(models(Authorization="Bearer a-keyA"), 401)
                self.assertEqual(models(Authorization="Bearer alice"), 401)
                self.assertEqual(models(x_api_key=""), 401)
            for text in ("", "# none\n", "alice key more\n"):
                file.write_text(text)
                self.refuse("--api-key-file", file, saying="key")
            for line, saying in (("alice key namespaces=", "separate"), ("k limit=0", "from 1 on"),
                                 ("alice key namespaces=a,,b", "1 to 64"), ("k limit=many", "from 1 on"),
                                 ("a@b key", "namespaces=a,b"), ("k namespaces=shared", "everybody's"),
                                 ("alice key more", "a name and a key")):
                file.write_text(f"# first\n{line}\n")
                self.refuse("--api-key-file", file, saying="line 2 of")
                self.refuse("--api-key-file", file, saying=saying)
            file.write_text("alice key\n")
            self.refuse("--api-key-file", file, "--datastore", folder, "--namespace", "x",
                        saying="--namespace")
        self.refuse("--api-key", "", saying="an API key is one or more")
        self.refuse("--api-key", "a b", saying="without spaces")

    def test_keys_are_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "keys"
            file.write_text("alice first\n")
            with Serving(PROGRAM, "--api-key-file", file) as server:
                def status(key):
                    return server.get("/v1/models", headers={"x-api-key": key})[0]

                def read_again(text, said):
                    file.write_text(text)
                    server.process.send_signal(signal.SIGHUP)
                    while said not in server.process.stderr.readline():
                        pass
                connection, response = server.stream("/v1/completions", {
                    "prompt": "Once", "max_tokens": 300, "ignore_eos": True}, headers={"x-api-key": "first"})
                self.assertEqual((status("first"), status("second")), (200, 401))
                read_again("bob second\n", "are asked for from now on")
                self.assertEqual((status("first"), status("second")), (401, 200))
                self.assertTrue(response.read().endswith(b"[DONE]\n\n"))
                connection.close()
                read_again("bob a b c\n", "stay as they were")
                self.assertEqual((status("first"), status("second")), (401, 200))

    def refuse(self, *arguments, saying):
        result = subprocess.run([PROGRAM, "serve", "--port", "0", *map(str, arguments)], text=True,
                                capture_output=True, timeout=60)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"\Aforetoken: [^\n]+\n\Z")
        self.assertIn(saying, result.stderr)

    def test_other_hosts_are_refused_on_loopback(self):
        with Serving(PROGRAM, "--allow-host", "box.example") as server:
            def ask(host):
                return server.get("/health", headers={"Host": host})[0]
            for host in ("localhost", "localhost:99", "127.0.0.1:8080", "[::1]:8080", "box.example"):
                self.assertEqual(ask(host), 200, host)
            for host in ("evil.example", "evil.example:8080", "localhost.evil.example", "box.example.x",
                         "127.evil.example", "127.0.0.1.evil.example:8080"):
                self.assertEqual(ask(host), 403, host)

    def test_only_an_open_address_is_warned_of(self):
        for host, warned in (("127.0.0.2", False), ("localhost", False), ("0.0.0.0", True)):
            server = Serving(PROGRAM, "--host", host)
            self.assertEqual(server.end(), 0, server.errors)
            self.assertEqual("anyone who reaches this address" in server.errors, warned, host)

    def test_preflight_admits_what_clients_send(self):
        with Serving(PROGRAM, "--cors", "http://a.example") as server:
            wanted = "authorization, content-type, x-stainless-os, x-stainless-retry-count"
            status, reply, _ = server.request("OPTIONS", "/v1/chat/completions", headers={
                "Origin": "http://a.example", "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": wanted})
            self.assertEqual(status, 204)
            self.assertEqual(reply["Access-Control-Allow-Headers"], wanted)
            self.assertEqual(reply["Access-Control-Allow-Origin"], "http://a.example")

    def test_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = pathlib.Path(folder) / "cert.pem", pathlib.Path(folder) / "key.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                            "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                            "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                            str(key), "-out", str(certificate)], check=True, capture_output=True)
            self.refuse("--ssl-cert", certificate, saying="both or neither")
            self.refuse("--ssl-cert", key, "--ssl-key", key, saying="certificate")
            self.refuse("--ssl-cert", certificate, "--ssl-key", certificate, saying="private key")
            with Serving(PROGRAM, "--ssl-cert", certificate, "--ssl-key", key) as server:
                context = ssl.create_default_context(cafile=certificate)
                for _ in range(2):
                    with context.wrap_socket(connect(server), server_hostname="localhost") as door:
                        for _ in range(2):
                            body = json.dumps({"prompt": "Once", "max_tokens": 8, "stream": True,
                                               "temperature": 0}).encode()
                            door.sendall(post(b"Content-Length: %d\r\n" % len(body), body))
                            text = b""
                            while b"0\r\n\r\n" not in text:
                                text += door.recv(65536)
                            self.assertIn(b"data: [DONE]", text)
                # A client that speaks no TLS is closed, and no other one is held up by it.
                with connect(server) as plain:
                    plain.sendall(GET)
                    plain.settimeout(5)
                    try:
                        while plain.recv(4096):
                            pass
                    except ConnectionError:
                        pass


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
