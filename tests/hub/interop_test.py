#!/usr/bin/env python3
"""One cache for Foretoken and for the Hub's own Python package: interop_test.py PROGRAM
SOURCE_DIRECTORY BUILD_FOLDER [TEST]..."""

import json
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(SOURCE.parent))
from python_packages import install

BUILD = pathlib.Path(sys.argv.pop(3)).resolve()

import hub_case
from hub_case import HubCase, contents, folder_files

PYTHON = install(BUILD, SOURCE / "requirements.txt")

SCAN = """
import json
from huggingface_hub import scan_cache_dir
cache = scan_cache_dir()
print(json.dumps({"warnings": [str(warning) for warning in cache.warnings], "repos": {
    repo.repo_id: {revision.commit_hash: {"refs": sorted(revision.refs),
                                          "size": revision.size_on_disk,
                                          "files": sorted(file.file_name for file in revision.files)}
                   for revision in repo.revisions}
    for repo in cache.repos}}))
"""
SNAPSHOT = """
import sys
from huggingface_hub import snapshot_download
print(snapshot_download(sys.argv[1], allow_patterns=sys.argv[3:] or None,
                        local_files_only=sys.argv[2] == "local"))
"""
DOWNLOAD = """
import sys
from huggingface_hub import hf_hub_download
print(hf_hub_download(sys.argv[1], sys.argv[2], revision=sys.argv[3]))
"""
DELETE = """
import sys
from huggingface_hub import scan_cache_dir
scan_cache_dir().delete_revisions(sys.argv[1]).execute()
"""


class InteropTest(HubCase):
    def python(self, script, *arguments):
        result = subprocess.run([PYTHON, "-c", script, *arguments], capture_output=True, text=True,
                                env=self.environment(HF_HUB_DISABLE_TELEMETRY="1"), timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def test_they_read_what_we_fetched(self):
        files = folder_files()
        demo = self.hub.add("org/demo", files)
        gguf = self.hub.add("org/gguf", {"sub/m-Q4_K_M.gguf": contents(3 << 20, 1)})
        path = self.pull("org/demo")
        self.pull("org/gguf")
        self.hub.forget_requests()
        self.assertEqual(self.python(SNAPSHOT, "org/demo", "local"), str(path))
        self.assertEqual(self.hub.requests, [])
        wanted = sorted(file.name for file in path.iterdir())
        scanned = json.loads(self.python(SCAN))
        self.assertEqual(scanned["warnings"], [])
        self.assertEqual(scanned["repos"], {
            "org/demo": {demo.commit: {"refs": ["main"], "files": wanted,
                                       "size": sum(len(files[name]) for name in wanted)}},
            "org/gguf": {gguf.commit: {"refs": ["main"], "files": ["m-Q4_K_M.gguf"],
                                       "size": 3 << 20}}})
        # They ask what is new, and fetch nothing again.
        for name in wanted:
            self.assertEqual(self.python(DOWNLOAD, "org/demo", name, "main"), str(path / name))
        self.assertEqual(self.hub.sent, {})

        self.python(DELETE, gguf.commit)
        self.assertEqual(self.python(SNAPSHOT, "org/demo", "local"), str(path))
        self.hub.forget_requests()
        self.pull("org/gguf")
        self.assertEqual(self.hub.sent, {"sub/m-Q4_K_M.gguf": 3 << 20})

    def test_we_read_what_they_fetched(self):
        files = folder_files()
        repository = self.hub.add("org/demo", files)
        self.hub.add("org/gguf", {"sub/m-Q4_K_M.gguf": contents(3 << 20, 1), "m-F16.gguf": b"x"})
        self.hub.redirect = "other"
        path = self.python(SNAPSHOT, "org/demo", "fetch")
        self.python(DOWNLOAD, "org/gguf", "sub/m-Q4_K_M.gguf", "main")
        self.hub.forget_requests()
        told = self.succeed("run", "Once upon a time", "-n", 16, "--temp", 0, "-hf", "org/demo",
                            "--mode", "ar")
        self.assertEqual(told, self.succeed("run", "Once upon a time", "-n", 16, "--temp", 0, "-m",
                                            hub_case.MODELS / "demo-target", "--mode", "ar"))
        # What these bytes lack to be a model is said of their file in the cache.
        self.refuse("m-Q4_K_M.gguf", "inspect", "-hf", "org/gguf")
        listed = json.loads(self.succeed("list", "--json"))
        self.assertEqual([(model["name"], len(model["files"])) for model in listed],
                         [("org/demo", len(files)), ("org/gguf", 1)])
        self.assertEqual(listed[0]["path"], path)
        self.assertEqual(self.hub.requests, [])
        # Pulled, it is asked for and not fetched.
        self.assertEqual(str(self.pull("org/demo")), path)
        self.assertEqual(self.hub.sent, {})
        self.succeed("rm", "-y", "org/demo")
        self.assertEqual(list(json.loads(self.python(SCAN))["repos"]), ["org/gguf"])
        self.assertEqual(json.loads(self.python(SCAN))["warnings"], [])
        self.assertFalse((self.model_folder("org/demo") / "blobs").exists())
        self.assertIsNotNone(repository)

    def test_what_we_left_half_is_nothing_to_them(self):
        self.hub.add("org/gguf", {"m-Q4_K_M.gguf": contents(5 << 20, 1)})
        self.hub.pause = 0.01
        process = self.start("pull", "org/gguf")
        self.wait_until(lambda: self.hub.sent.get("m-Q4_K_M.gguf", 0) > 2 << 20)
        process.kill()
        process.wait(30)
        self.hub.pause = 0
        self.assertEqual(json.loads(self.python(SCAN)),
                         {"warnings": [], "repos": {"org/gguf": {}}})
        self.python(SNAPSHOT, "org/gguf", "fetch")
        self.assert_cached("org/gguf", ["m-Q4_K_M.gguf"])
        self.pull("org/gguf")

    def test_both_at_once_fetch_once(self):
        self.hub.add("org/gguf", {"m-Q4_K_M.gguf": contents(5 << 20, 1)})
        self.hub.pause = 0.02
        theirs = subprocess.Popen([PYTHON, "-c", SNAPSHOT, "org/gguf", "fetch"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  env=self.environment())
        self.addCleanup(lambda: (theirs.kill(), theirs.wait(), theirs.stdout.close()))
        self.wait_until(lambda: self.hub.sent.get("m-Q4_K_M.gguf", 0) > 1 << 20)
        self.pull("org/gguf")
        self.assertEqual(theirs.wait(60), 0)
        self.assert_cached("org/gguf", ["m-Q4_K_M.gguf"])
        self.assertEqual(self.hub.sent, {"m-Q4_K_M.gguf": 5 << 20})


if __name__ == "__main__":
    hub_case.main()
