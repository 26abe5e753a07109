#!/usr/bin/env python3
"""Models fetched by name from a hub that works: hub_test.py PROGRAM SOURCE_DIRECTORY [TEST]..."""

import json
import os
import pathlib
import pty
import subprocess

import hub_case
from hub_case import PROGRAM, MODELS, HubCase, contents, folder_files

FOLDER = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
          "tokenizer.model", "special_tokens_map.json", "model.safetensors")


def wanted_of(files):
    return [path for path in FOLDER if path in files]


def gguf_files(*paths):
    return {path: contents(2000, path) for path in paths} | {"README.md": b"about"}


class PullTest(HubCase):
    def test_folders_come_into_the_cache_in_its_layout(self):
        files = folder_files() | {"consolidated.safetensors": b"twice", "model.bin": b"old"}
        repository = self.hub.add("org/demo", files)
        path = self.pull("org/demo")
        self.assertEqual(path, self.cache / "models--org--demo" / "snapshots" / repository.commit)
        self.assert_cached("org/demo", wanted_of(files))
        folder = self.model_folder("org/demo")
        self.assertEqual((folder / "refs" / "main").read_text(), repository.commit)
        self.assertEqual({path.name for path in folder.iterdir()}, {"blobs", "refs", "snapshots"})
        self.assertEqual([blob for blob in (folder / "blobs").iterdir() if "." in blob.name], [])

        # Again: only whether something is new.
        self.hub.forget_requests()
        self.assertEqual(self.pull("org/demo"), path)
        self.assertEqual(len(self.hub.requests), 1)
        self.assertIn("/api/models/org/demo/revision/main", self.hub.requests[0].path)

    def test_names_stand_for_paths_in_commands(self):
        self.hub.add("org/target", folder_files())
        self.hub.add("org/draft", folder_files("demo-draft"))
        story = ("run", "Once upon a time", "-n", 24, "--temp", 0, "--mode", "sd", "-k", 4)
        by_name = self.succeed(*story, "-hf", "org/target", "-hfd", "org/draft")
        self.assertEqual(by_name, self.succeed(*story, "-m", MODELS / "demo-target", "-md",
                                               MODELS / "demo-draft"))
        # From the cache without a question, and called by its name.
        self.hub.forget_requests()
        told = json.loads(self.succeed(*story, "--hf-repo", "org/target", "-hfd", "org/draft",
                                       "--json"))
        self.assertEqual((told["model"], told["draft"]), ("org/target", "org/draft"))
        self.assertEqual(self.succeed("tokenize", "-hf", "org/target", "Once"),
                         self.succeed("tokenize", "Once"))
        shown = json.loads(self.succeed("inspect", "-hf", "org/target", "-hfd", "org/draft",
                                        "--no-measuring", "--json"))
        self.assertTrue(shown["same_vocabulary"])
        own = json.loads(self.succeed("run", "Once", "-n", 4, "-hf", "org/target", "-md",
                                      "self:q4_0", "--mode", "sd", "--json"))
        self.assertEqual(own["draft"], "org/target:q4_0")
        self.assertEqual(self.hub.requests, [])
        self.refuse("not both", "run", "x", "-hf", "org/target", "-m", MODELS / "demo-target")
        self.refuse("not both", "run", "x", "-hfd", "org/draft", "-md", MODELS / "demo-draft")
        self.refuse("not both", "bench", "-hf", "org/target", "--synthetic", "llama-135m")
        # A command line counts more than a variable.
        self.succeed(*story, "-hf", "org/target", "-hfd", "org/draft",
                     FORETOKEN_TARGET="/nonexistent")

    def test_quantisations_files_and_parts_are_chosen(self):
        split = [f"Q8_0/m-Q8_0-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
        self.hub.add("org/gguf", gguf_files("m-Q4_K_M.gguf", "m-F16.gguf", "m-IQ2_M.gguf", *split))
        path = self.pull("org/gguf")
        self.assertEqual(path.name, "m-Q4_K_M.gguf")
        self.assert_cached("org/gguf", ["m-Q4_K_M.gguf"])
        self.assertEqual(self.pull("org/gguf:q8_0").name, "m-Q8_0-00001-of-00003.gguf")
        self.assert_cached("org/gguf", ["m-Q4_K_M.gguf", *split])
        self.assertEqual(self.pull("org/gguf:m-F16.gguf").name, "m-F16.gguf")
        self.refuse("org/gguf has no Q5_K_M; it has F16, IQ2_M, Q4_K_M, Q8_0", "pull",
                    "org/gguf:Q5_K_M")
        self.refuse("models of a hub are called ORG/NAME", "pull", "org/../gguf")
        self.hub.add("org/tensorflow", {"config.json": b"{}", "tf_model.h5": b"x"})
        self.refuse("org/tensorflow holds no model that runs here", "pull", "org/tensorflow")
        self.assertFalse(self.model_folder("org/tensorflow").exists())
        self.hub.add("org/pytorch", {"config.json": b"{}", "pytorch_model.bin": b"x",
                                     "training_args.bin": b"y"})
        self.pull("org/pytorch")
        self.assert_cached("org/pytorch", ["config.json", "pytorch_model.bin"])

    def test_new_revisions_are_pulled_and_old_ones_stay(self):
        repository = self.hub.add("org/gguf", gguf_files("m-Q4_K_M.gguf", "m-Q8_0.gguf"))
        old = repository.commit
        self.pull("org/gguf")
        repository.put(repository.files | {"m-Q4_K_M.gguf": b"better"})
        # Named without a question about it the old one is still what it was.
        self.hub.forget_requests()
        self.refuse("m-Q4_K_M.gguf", "inspect", "-hf", "org/gguf")  # These bytes are no model.
        self.assertEqual(self.hub.requests, [])
        self.assertEqual(self.pull("org/gguf").read_bytes(), b"better")
        self.assertEqual((self.model_folder("org/gguf") / "refs" / "main").read_text(),
                         repository.commit)
        self.assert_cached("org/gguf", ["m-Q4_K_M.gguf"], old)
        self.assert_cached("org/gguf", ["m-Q4_K_M.gguf"])
        repository.put({"m-Q8_0.gguf": b"tried"}, "some/branch")
        self.assertEqual(self.pull("org/gguf@some/branch").read_bytes(), b"tried")
        self.assertEqual(self.pull(f"org/gguf@{old}:Q8_0"),
                         self.model_folder("org/gguf") / "snapshots" / old / "m-Q8_0.gguf")
        self.refuse("has no revision 'none'", "pull", "org/gguf@none")

    def test_contents_lie_elsewhere_and_the_token_stays_here(self):
        self.hub.token = "hf_secret"
        self.hub.add("org/gguf", gguf_files("m-Q4_K_M.gguf"))
        for redirect in ("other", "same"):
            self.hub.redirect = redirect
            self.hub.forget_requests()
            path = self.pull("org/gguf", HF_TOKEN="hf_secret")
            self.assert_cached("org/gguf", ["m-Q4_K_M.gguf"])
            path.resolve().unlink()  # To be fetched again.
            followed = [request for request in self.hub.requests
                        if request.path.startswith("/content/")]
            self.assertEqual(len(followed), 1)
            self.assertEqual(followed[0].url == self.hub.url, redirect == "same")
            for request in self.hub.requests:
                here = request.url == self.hub.url
                self.assertEqual(request.headers.get("Authorization"),
                                 "Bearer hf_secret" if here else None, request.path)
        # Where a login leaves it.
        (self.folder / "token").write_text("hf_secret\n")
        self.pull("org/gguf")
        self.refuse("does not let org/gguf be read without a token", "pull", "org/gguf",
                    HF_HUB_DISABLE_IMPLICIT_TOKEN="1")
        self.refuse("does not let org/gguf be read with this token", "pull", "org/gguf",
                    HF_TOKEN="hf_other")

    def test_offline_the_cache_must_do(self):
        files = folder_files()
        self.hub.add("org/demo", files)
        self.hub.add("org/gguf", gguf_files("m-Q8_0.gguf", "m-F16.gguf"))
        self.pull("org/demo")
        self.pull("org/gguf")
        self.hub.forget_requests()
        offline = {"HF_HUB_OFFLINE": "1"}
        self.assertEqual(self.pull("org/gguf", **offline).name, "m-Q8_0.gguf")
        self.succeed("run", "Once", "-n", 2, "-hf", "org/demo", **offline)
        self.refuse("HF_HUB_OFFLINE forbids", "pull", "org/gguf:F16", **offline)
        self.refuse("the cache has nothing of org/other, and HF_HUB_OFFLINE forbids", "run", "x",
                    "-hf", "org/other", **offline)
        self.assertEqual(self.hub.requests, [])

    def test_a_hub_that_is_gone_is_done_without(self):
        self.hub.add("org/gguf", gguf_files("m-Q8_0.gguf"))
        self.pull("org/gguf")
        gone = {"HF_ENDPOINT": "http://127.0.0.1:1"}
        # Whether there is a Q4_K_M by now cannot be asked.
        result = self.run_program("inspect", "-hf", "org/gguf", **gone)
        self.assertIn("what is cached of org/gguf is used", result.stderr)
        self.assertIn("m-Q8_0.gguf", result.stderr)  # Whose bytes are no model.
        self.fail_with(1, "failed", "pull", "org/gguf", **gone)

    def test_a_terminal_shows_how_far_it_is(self):
        self.hub.add("org/gguf", {"m-Q4_K_M.gguf": contents(4 << 20, 1)})
        self.hub.pause = 0.02
        reader, terminal = pty.openpty()
        process = subprocess.Popen([PROGRAM, "pull", "org/gguf"], stdout=subprocess.DEVNULL,
                                   stderr=terminal, env=self.environment())
        os.close(terminal)
        shown = b""
        try:
            while data := os.read(reader, 4096):
                shown += data
        except OSError:  # The terminal's other end is closed.
            pass
        os.close(reader)
        self.assertEqual(process.wait(), 0)
        self.assertRegex(shown, rb"\[#+\.+\] +\d+%  Fetching m-Q4_K_M.gguf, 4.19 MB in all")
        self.assertTrue(shown.endswith(b"\r\x1b[K"))  # Nothing of it stays.


class CacheTest(HubCase):
    def listed(self):
        return {(model["name"], model["commit"]): model
                for model in json.loads(self.succeed("list", "--json"))}

    def test_the_cache_is_listed(self):
        self.assertEqual(self.succeed("list"), f"No models in {self.cache}\n")
        self.assertEqual(self.listed(), {})
        repository = self.hub.add("org/gguf", gguf_files("m-Q4_K_M.gguf", "m-Q8_0.gguf"))
        self.hub.add("other/demo", folder_files())
        self.pull("org/gguf")
        self.pull("org/gguf:Q8_0")
        self.pull("other/demo")
        listed = self.listed()
        self.assertEqual(len(listed), 2)
        model = listed["org/gguf", repository.commit]
        self.assertEqual((model["refs"], model["bytes"]), (["main"], 4000))
        self.assertEqual([file["path"] for file in model["files"]],
                         ["m-Q4_K_M.gguf", "m-Q8_0.gguf"])
        self.assertRegex(self.succeed("list"), r"(?m)^org/gguf +main +2 +4.00 kB$")

    def test_models_are_removed(self):
        repository = self.hub.add("org/gguf", gguf_files("m-Q4_K_M.gguf", "m-Q8_0.gguf"))
        old = repository.commit
        for name in ("org/gguf", "org/gguf:Q8_0"):
            self.pull(name)
        repository.put(repository.files | {"m-Q4_K_M.gguf": b"better"})
        self.pull("org/gguf")
        self.refuse("rm asks before it removes", "rm", "org/gguf")
        self.refuse("the cache has no org/gguf:F16", "rm", "--yes", "org/gguf:F16")
        self.refuse("the cache has no org/none", "rm", "--yes", "org/none")
        self.assertEqual(self.succeed("rm", "-y", f"org/gguf@{old}:Q8_0"),
                         f"org/gguf@{old}:Q8_0: 2.00 kB freed\n")
        self.assert_cached("org/gguf", ["m-Q4_K_M.gguf"], old)
        self.succeed("rm", "-y", "org/gguf@main")
        self.assertEqual([commit for _, commit in self.listed()], [old])
        self.succeed("rm", "-y", "org/gguf")
        self.assertFalse(self.model_folder("org/gguf").exists())
        self.assertEqual(self.listed(), {})

    def test_removing_asks(self):
        self.hub.add("org/gguf", gguf_files("m-Q4_K_M.gguf"))
        self.pull("org/gguf")
        for answer, code in ((b"n\n", 1), (b"y\n", 0)):
            reader, terminal = pty.openpty()
            os.write(reader, answer)
            result = subprocess.run([PROGRAM, "rm", "org/gguf"], stdin=terminal,
                                    capture_output=True, env=self.environment(), timeout=30)
            os.close(reader)
            os.close(terminal)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(b"Remove org/gguf, 2.00 kB, from", result.stderr)
            self.assertEqual(self.model_folder("org/gguf").exists(), code == 1)

    def test_what_is_being_fetched_is_not_removed(self):
        self.hub.add("org/gguf", {"m-Q4_K_M.gguf": contents(4 << 20, 1)})
        self.hub.pause = 0.02
        process = self.start("pull", "org/gguf")
        self.wait_until(lambda: self.hub.sent.get("m-Q4_K_M.gguf", 0) > 1 << 20)
        self.fail_with(1, "org/gguf is being fetched", "rm", "-y", "org/gguf")
        self.assertEqual(process.wait(30), 0)
        self.assert_cached("org/gguf", ["m-Q4_K_M.gguf"])

    def test_what_an_interrupted_fetch_left_is_removed(self):
        self.hub.add("org/gguf", {"m-Q4_K_M.gguf": contents(4 << 20, 1)})
        self.hub.pause = 0.02
        process = self.start("pull", "org/gguf")
        self.wait_until(lambda: self.hub.sent.get("m-Q4_K_M.gguf", 0) > 1 << 20)
        process.kill()
        process.wait(30)
        self.succeed("rm", "-y", "org/gguf")
        self.assertFalse(self.model_folder("org/gguf").exists())


if __name__ == "__main__":
    hub_case.main()
