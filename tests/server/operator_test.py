"""`foretoken serve` as its operator sees it: signals, the speculator's process, and the files that a
server leaves behind.

Usage: operator_test.py PROGRAM
"""

import os
import pathlib
import signal
import socket
import stat
import sys
import tempfile
import time
import unittest

from serving import Serving

PROGRAM = None


def rights(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def children_of(process):
    """The ids of a process's children."""
    return [int(child) for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


class Speculator(unittest.TestCase):
    """`--draft-process`: the draft runs in a process of its own."""

    ASKED = {"max_tokens": 24, "temperature": 0.8, "seed": 3, "ignore_eos": True}

    def serve(self):
        return Serving(PROGRAM, "--draft-process", "--mode", "ssd", "--fallback", "jit")

    def child(self, server):
        children = children_of(server.process)
        self.assertEqual(len(children), 1)
        return children[0]

    def text(self, server, timeout=60):
        status, _, body = server.post("/v1/completions",
                                      {"prompt": "Once upon a time", **self.ASKED},
                                      timeout=timeout)
        self.assertEqual(status, 200, body)
        return body["choices"][0]["text"]

    def test_one_that_stands_still_is_replaced_and_changes_no_token(self):
        with self.serve() as server:
            expected = self.text(server)
            first = self.child(server)
            os.kill(first, signal.SIGSTOP)
            started = time.monotonic()
            self.assertEqual(self.text(server), expected)
            self.assertLess(time.monotonic() - started, 15)
            second = self.child(server)
            self.assertNotEqual(second, first)
            # A second one is healed too, after a pause, while requests are answered.
            os.kill(second, signal.SIGSTOP)
            deadline = time.monotonic() + 60
            while self.child(server) == second:
                self.assertEqual(self.text(server), expected)
                self.assertLess(time.monotonic(), deadline)
            self.assertEqual(self.text(server), expected)
        self.assertIn("does not answer", server.errors)
        self.assertIn("started again", server.errors)

    def test_it_has_no_connections_of_clients(self):
        with self.serve() as server:
            self.text(server)
            with socket.create_connection(("127.0.0.1", server.port)) as idle:
                idle.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertIn(b"200", idle.recv(4096))
                first = self.child(server)
                os.kill(first, signal.SIGKILL)  # The next one begins while a client is connected.
                deadline = time.monotonic() + 30
                while children_of(server.process) in ([], [first]):
                    self.text(server)
                    self.assertLess(time.monotonic(), deadline)
                files = pathlib.Path(f"/proc/{self.child(server)}/fd")
                opened = {int(file.name): os.readlink(file) for file in files.iterdir()}
                self.assertEqual([name for name in opened.values() if "socket:" in name and
                                  name not in (opened.get(0), opened.get(1), opened.get(2))], [])
                self.assertIn("memfd:foretoken-channel", opened[3])
                # What the server itself opens is closed wherever another program begins.
                for file in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir():
                    if int(file.name) <= 2:
                        continue
                    info = pathlib.Path(f"/proc/{server.process.pid}/fdinfo/{file.name}")
                    flags = int(info.read_text().split("flags:")[1].split()[0], 8)
                    self.assertTrue(flags & os.O_CLOEXEC, os.readlink(file))


class Signals(unittest.TestCase):
    def test_a_hangup_lets_running_requests_end(self):
        with Serving(PROGRAM, "--mode", "ar") as server:
            connection, response = server.stream("/v1/completions",
                                                 {"prompt": "Once", "max_tokens": 200,
                                                  "ignore_eos": True})
            response.readline()
            server.process.send_signal(signal.SIGHUP)
            self.assertIn(b"[DONE]", response.read())
            connection.close()
            self.assertEqual(server.process.wait(60), 0)

    def test_nohup_keeps_it(self):
        ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with Serving(PROGRAM, "--mode", "ar", preexec_fn=ignore) as server:
            server.process.send_signal(signal.SIGHUP)
            time.sleep(0.5)
            self.assertEqual(server.get("/health")[0], 200)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_what_users_say_is_its_owners_alone(self):
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        store = self.folder / "store"
        with Serving(PROGRAM, "--mode", "sd", "--datastore", store, "--learn", "--log-file",
                     self.folder / "log", "--learn-draft", self.folder / "learned") as server:
            for seed in range(4):
                self.assertEqual(server.complete(max_tokens=24, seed=seed)[0], 200)
        self.assertEqual(rights(self.folder / "log"), 0o600)
        written = [path for top in (store, self.folder / "learned" / "captures")
                   for path in [top, *top.rglob("*")]]
        self.assertTrue(any(path.suffix == ".log" for path in written), written)
        self.assertTrue(any(path.suffix == ".safetensors" for path in written), written)
        for path in written:
            self.assertEqual(rights(path), 0o700 if path.is_dir() else 0o600, path)

    def test_clients_do_not_read_where_files_lie(self):
        (self.folder / "store" / "bob").mkdir(parents=True)
        (self.folder / "store" / "bob" / "MANIFEST").write_text("no manifest")
        with Serving(PROGRAM, "--mode", "ar", "--datastore", self.folder / "store",
                     "--learn") as server:
            status, _, body = server.complete(max_tokens=4, datastore={"namespace": "bob"})
            self.assertGreaterEqual(status, 400)
            self.assertIn("the namespace 'bob' could not be opened", body["error"]["message"])
            self.assertNotIn(str(self.folder), body["error"]["message"])
            status, _, body = server.complete(max_tokens=4, datastore={"namespace": "b/b"})
            self.assertIn("1 to 64 letters", body["error"]["message"])
        self.assertIn(str(self.folder / "store" / "bob"), server.errors)

    def test_a_log_that_cannot_be_written_is_said_once(self):
        with Serving(PROGRAM, "--mode", "ar", "--log-file", "/dev/full") as server:
            for _ in range(3):
                self.assertEqual(server.get("/health")[0], 200)
        self.assertEqual(server.errors.count("cannot write the log '/dev/full'"), 1, server.errors)
        self.assertIn("No space left on device", server.errors)

    def test_keys_that_all_may_read_are_warned_of(self):
        keys = self.folder / "keys"
        keys.write_text("alice secret\n")
        for mode, warned in ((0o644, True), (0o600, False), (0o640, False)):
            keys.chmod(mode)
            with Serving(PROGRAM, "--mode", "ar", "--api-key-file", keys) as server:
                pass
            self.assertEqual("may read the keys in" in server.errors, warned, server.errors)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
