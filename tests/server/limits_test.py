"""What the program does where memory, threads, descriptors, namespaces or a file's bytes run out.

python3 tests/server/limits_test.py build/release/apps/foretoken/foretoken [TEST...]
"""

import concurrent.futures
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from serving import Serving

PROGRAM = os.path.abspath(sys.argv.pop(1))
ONE_SENTENCE = r"\A(foretoken: note: [^\n]*\n)*foretoken: [^\n]+\n\Z"
MB = 1 << 20


def limited(kind, count, user=None):
    """For subprocess: sets a limit, and becomes a user whom nothing else runs as."""
    def apply():
        resource.setrlimit(kind, (count, count))
        if user is not None:
            os.setgid(user)
            os.setuid(user)
    return apply


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], text=True, capture_output=True,
                          timeout=120, stdin=subprocess.DEVNULL, **options)


def serve_once(**options):
    """Starts a server and ends it: (exit code, standard error)."""
    server = Serving(PROGRAM, "--shutdown-seconds", 0, wait=False, **options)
    line = server.process.stdout.readline()
    code = server.end()
    return line.startswith("Serving"), code, server.errors


class AtStart(unittest.TestCase):
    """Wherever it runs out, it says so in one sentence and ends with 1; it never hangs."""

    def check(self, code, errors, saying):
        # SentencePiece says of memory that it lacks that its model is bad: 2.
        self.assertEqual(code, 2 if "SentencePiece" in errors else 1, errors)
        self.assertRegex(errors, ONE_SENTENCE)
        self.assertRegex(errors, saying)

    def test_little_memory(self):
        refused = 0
        for megabytes in (80, 84, 88, 92, 96, 104, 112, 128, 160, 256):
            limit = limited(resource.RLIMIT_AS, megabytes * MB)
            saying = r"not enough memory|starts no further thread|annot allocate memory|SentencePiece"
            with self.subTest(megabytes=megabytes):
                result = run("run", "--max-tokens", "4", "--mode", "ssd", "Once", preexec_fn=limit)
                if result.returncode != 0:
                    refused += 1
                    self.check(result.returncode, result.stderr, saying)
                good, code, errors = serve_once(preexec_fn=limit)
                if not good:
                    refused += 1
                    self.check(code, errors, saying)
        self.assertGreater(refused, 2)  # So little memory that no engine fits.

    @unittest.skipUnless(os.getuid() == 0, "needs root to become a user that runs nothing else")
    def test_few_threads(self):
        user = 64000 + os.getpid() % 1000
        with tempfile.TemporaryDirectory(prefix="foretoken_limits.") as folder:
            os.chmod(folder, 0o755)
            program = shutil.copy(PROGRAM, folder)  # Where that user may read it.
            models = pathlib.Path(folder, "models")
            source = pathlib.Path(__file__).resolve().parents[2] / "models"
            shutil.copytree(source, models)
            subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
            environment = {**os.environ, "HOME": folder, "XDG_CACHE_HOME": folder}
            command = ["--target", models / "demo-target", "--draft", models / "demo-draft"]
            served = 0
            for threads in range(1, 13):
                limit = limited(resource.RLIMIT_NPROC, threads, user)
                with self.subTest(threads=threads):
                    server = subprocess.Popen(
                        [program, "serve", "--port", "0", *command], text=True, env=environment,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit)
                    line = server.stdout.readline()
                    server.send_signal(signal.SIGTERM)
                    _, errors = server.communicate(timeout=60)
                    if line.startswith("Serving"):
                        served += 1
                        self.assertEqual(server.returncode, 0, errors)
                    else:
                        self.assertEqual(served, 0, errors)
                        self.check(server.returncode, errors, "starts no further thread")
            self.assertGreater(served, 0)


class WhileServing(unittest.TestCase):
    def test_memory(self):
        with Serving(PROGRAM) as server:
            pid = server.process.pid
            before = server.complete(max_tokens=8, temperature=0)[2]["choices"]
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            size = 1024 * int(re.search(r"VmSize:\s+(\d+) kB", status).group(1))
            resource.prlimit(pid, resource.RLIMIT_AS, (size + 2 * MB, resource.RLIM_INFINITY))
            for _ in range(8):
                status, headers, body = server.complete(max_tokens=8)
                self.assertEqual(status, 503, body)
                self.assertIn("not enough memory", body["error"]["message"])
                self.assertEqual(server.get("/health")[0], 200)
            # What passes the door finds memory or is refused too.
            resource.prlimit(pid, resource.RLIMIT_AS, (size + 20 * MB, resource.RLIM_INFINITY))
            large = [[7] * 200 for _ in range(64)]
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(
                    lambda i: server.complete(large[:1 + i % 8], max_tokens=8)[0], range(32)))
            self.assertLessEqual(set(answers), {200, 429, 503})
            resource.prlimit(pid, resource.RLIMIT_AS,
                             (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            after = server.complete(max_tokens=8, temperature=0)
            self.assertEqual(after[0], 200, after)
            self.assertEqual(after[2]["choices"], before)
            server.wait_idle()

    def test_descriptors_that_namespaces_use(self):
        with tempfile.TemporaryDirectory() as folder, \
                Serving(PROGRAM, "--mode", "ar", "--datastore", folder, "--learn",
                        preexec_fn=limited(resource.RLIMIT_NOFILE, 120)) as server:
            answers = [server.complete(max_tokens=1, datastore={"namespace": f"name{i}"})
                       for i in range(70)]
            self.assertEqual(answers[0][0], 200)
            refused = [body for status, _, body in answers if status != 200]
            self.assertTrue(refused)
            for body in refused:
                self.assertIn("could not be opened", body["error"]["message"])
            # Whoever connects now is answered or let go, at once.
            for _ in range(20):
                with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
                    connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
                                       b"Connection: close\r\n\r\n")
                    connection.settimeout(5)
                    try:
                        answer = connection.recv(1 << 16)
                    except ConnectionResetError:
                        answer = b""
                    self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 "), answer)
            status, _, body = server.complete(max_tokens=1)
            self.assertEqual(status, 200, body)
        self.assertIn("Too many open files", server.errors)  # The operator learns why.

    def test_made_up_namespaces(self):
        with tempfile.TemporaryDirectory() as folder, \
                Serving(PROGRAM, "--mode", "ar", "--datastore", folder, "--learn") as server:
            def ask(name, learn):
                status, _, body = server.complete(
                    max_tokens=2, datastore={"namespace": name, "learn": learn})
                self.assertEqual(status, 200, (name, body))
            ask("alice", True)
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda i: ask(f"made-up-{i}", False), range(300)))
            ask("bob", True)
            names = {path.name for path in pathlib.Path(folder).iterdir()}
            self.assertLessEqual({"alice", "bob", "default"}, names)
            self.assertLessEqual(len(names), 256)

    def test_a_segment_that_is_truncated(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder, "text.txt")
            store = pathlib.Path(folder, "store")
            text.write_text("Once upon a time there was a little girl named Lily. " * 4000)
            result = run("datastore", "build", "-d", store, text)
            self.assertEqual(result.returncode, 0, result.stderr)
            segment, = pathlib.Path(store, "shared").glob("*.segment")
            fields = {"max_tokens": 48, "temperature": 0}
            with Serving(PROGRAM, "--mode", "sssd", "--datastore", store) as server:
                status, _, before = server.complete(**fields)
                self.assertEqual(status, 200, before)
                self.assertIsNone(server.get("/stats")[2]["datastore"]["failure"])
                os.truncate(segment, 4096)
                for _ in range(3):
                    status, _, after = server.complete(**fields)
                    self.assertEqual(status, 200, after)
                    self.assertEqual(after["choices"], before["choices"])
                failure = server.get("/stats")[2]["datastore"]["failure"]
                self.assertIn(segment.name, failure)
                self.assertNotIn("/", failure)  # Clients hear nothing of the operator's folders.
            result = run("datastore", "verify", "-d", store)
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn(str(segment), result.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
