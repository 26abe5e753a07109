#!/usr/bin/env python3
"""Slots saved by one run of the server and restored by another: slots_test.py PROGRAM [TEST]..."""

import os
import pathlib
import stat
import sys
import tempfile
import threading
import unittest

from serving import Serving

PROGRAM = ""
MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
MODES = ["ar", "sd", "ssd", "ngram", "auto"]
PROMPT = "".join(f"Once upon a time there was a dog called {name}. It liked to run and play. "
                 for name in ("Tom", "Max", "Ben", "Sam", "Leo", "Kim", "Amy", "Sue") * 2)


class Slots(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "slots"

    def serve(self, *arguments):
        return Serving(PROGRAM, "-np", 2, "--slot-save-path", self.folder, *arguments)

    def complete(self, server, mode="ar", seed=7, headers=None, **fields):
        status, _, body = server.post("/completion", {
            "prompt": PROMPT, "n_predict": 48, "seed": seed, "temperature": 0.8,
            "return_tokens": True, "speculative": {"mode": mode}, **fields}, headers=headers)
        self.assertEqual(status, 200, body)
        return body

    def act(self, server, action, filename=None, slot=0, headers=None):
        body = {} if filename is None else {"filename": filename}
        status, _, answer = server.post(f"/slots/{slot}?action={action}", body, headers=headers)
        return status, answer

    def done(self, *arguments, **options):
        status, answer = self.act(*arguments, **options)
        self.assertEqual(status, 200, answer)
        return answer

    def test_another_run_goes_on_with_the_same_tokens_in_every_mode(self):
        with self.serve() as server:
            expected = {mode: self.complete(server, mode)["tokens"] for mode in MODES}
            self.assertEqual(len({tuple(tokens) for tokens in expected.values()}), 1)
            self.complete(server, id_slot=1)
            slots = server.get("/slots")[2]
            self.assertGreater(slots[1]["n_tokens"], 200)
            saved = self.done(server, "save", "dogs.bin", slot=1)
            self.assertEqual((saved["id_slot"], saved["filename"]), (1, "dogs.bin"))
            self.assertGreater(saved["n_saved"], 200)
            self.assertGreater(saved["timings"]["save_ms"], 0)
        path = self.folder / "dogs.bin"
        self.assertEqual(path.stat().st_size, saved["n_written"])
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.folder.stat().st_mode), 0o700)
        for mode in MODES:
            with self.serve() as server:
                restored = self.done(server, "restore", "dogs.bin")
                self.assertEqual(restored["n_restored"], saved["n_saved"])
                self.assertEqual(restored["n_read"], saved["n_written"])
                body = self.complete(server, mode)
                self.assertEqual(body["tokens"], expected[mode], mode)
                evaluated = body["tokens_evaluated"]
                self.assertEqual(body["tokens_cached"], (evaluated - 1) // 32 * 32, mode)

    def test_erased_is_forgotten(self):
        with self.serve() as server:
            first = self.complete(server)
            self.assertEqual(self.complete(server)["tokens_cached"],
                             (first["tokens_evaluated"] - 1) // 32 * 32)
            self.assertGreater(self.done(server, "erase")["n_erased"], 200)
            again = self.complete(server)
            self.assertEqual((again["tokens_cached"], again["tokens"]), (0, first["tokens"]))
            self.assertEqual(self.done(server, "erase", slot=1)["n_erased"], 0)

    def test_what_does_not_fit_is_refused_in_a_sentence(self):
        with self.serve() as server:
            self.complete(server)
            self.done(server, "save", "dogs.bin")
            whole = (self.folder / "dogs.bin").read_bytes()
            for at in (0, 9, 40, 200, len(whole) // 2, len(whole) - 1):
                damaged = bytearray(whole)
                damaged[at] ^= 4
                (self.folder / "bad.bin").write_bytes(damaged)
                status, answer = self.act(server, "restore", "bad.bin")
                self.assertEqual(status, 400, (at, answer))
            (self.folder / "short.bin").write_bytes(whole[:-100])
            self.assertEqual(self.act(server, "restore", "short.bin")[0], 400)
            for name in ("../dogs.bin", "/etc/passwd", "", "a/b", ".x"):
                for action in ("save", "restore"):
                    status, answer = self.act(server, action, name)
                    self.assertEqual(status, 400, answer)
                    self.assertIn("filename", answer["error"]["message"])
            status, answer = self.act(server, "restore", "none.bin")
            self.assertEqual(status, 400)
            self.assertNotIn(str(self.folder), str(answer))
            for slot, action in ((2, "save"), (-1, "save"), (0, "copy"), ("x", "save")):
                self.assertEqual(self.act(server, action, "a.bin", slot=slot)[0], 400)
            self.assertIn("error", self.act(server, "save", "a.bin", slot=1)[1])
        for arguments in (("-m", MODELS / "demo-draft"), ("--kv", "q8_0"),
                          ("--precision", "f32")):
            with self.serve(*arguments) as server:
                status, answer = self.act(server, "restore", "dogs.bin")
                self.assertEqual(status, 400, arguments)
                self.assertIn("dogs.bin", answer["error"]["message"])
        with Serving(PROGRAM) as server:
            status, answer = self.act(server, "save", "a.bin")
            self.assertEqual((status, answer["error"]["type"]), (501, "not_supported_error"))

    def test_texts_and_files_are_their_keys_alone(self):
        keys = pathlib.Path(tempfile.mkdtemp(dir=self.folder.parent)) / "keys"
        keys.write_text("alice key-a\nbob key-b\n")
        alice, bob = ({"Authorization": f"Bearer key-{name}"} for name in "ab")
        with self.serve("--api-key-file", keys) as server:
            self.complete(server, headers=alice)
            self.assertEqual(self.act(server, "save", "x.bin", headers=bob)[0], 400)
            self.assertEqual(self.act(server, "save", "x.bin")[0], 401)
            self.done(server, "save", "x.bin", headers=alice)
            self.assertGreater(server.get("/slots", headers=alice)[2][0]["n_tokens"], 0)
            self.assertEqual(server.get("/slots", headers=bob)[2][0]["n_tokens"], 0)
            self.assertEqual(self.act(server, "restore", "x.bin", headers=bob)[0], 400)
            self.complete(server, headers=bob, id_slot=0)
            self.assertEqual(self.act(server, "save", "x.bin", headers=bob)[0], 400)
            self.done(server, "restore", "x.bin", headers=alice)

    def test_others_go_on_while_slots_are_saved_and_restored(self):
        with self.serve() as server:
            expected = self.complete(server)["tokens"]
            wrong = []

            def work(seed):
                for _ in range(6):
                    if self.complete(server)["tokens"] != expected:
                        wrong.append(seed)

            threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                status, answer = self.act(server, "save", "busy.bin")
                self.assertIn(status, (200, 400, 503), answer)
                status, answer = self.act(server, "restore", "busy.bin", slot=1)
                self.assertIn(status, (200, 400, 503), answer)
                self.act(server, "erase", slot=1)
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])
            server.wait_idle()
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".tmp")], [])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
