"""What tests of models that are fetched by name have in common: PROGRAM SOURCE_DIRECTORY [TEST]..."""

import hashlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from command_line import CLEAN_ENVIRONMENT, MODELS, PROGRAM, foretoken
from small_hub import SmallHub, blob_name

HUB_VARIABLES = ("HF_", "HUGGING", "TRANSFORMERS_OFFLINE", "XDG_CACHE_HOME", "http_proxy",
                 "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


def contents(size, seed):
    return random.Random(seed).randbytes(size)


def folder_files(name="demo-target"):
    """A bundled model as a hub has it."""
    files = {path.name: path.read_bytes() for path in (MODELS / name).iterdir() if path.is_file()}
    return files | {"README.md": b"# A model\n", ".gitattributes": b"* text\n"}


class HubCase(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_hub."))
        self.addCleanup(shutil.rmtree, self.folder)
        self.hub = SmallHub()
        self.hub.__enter__()
        self.addCleanup(self.hub.__exit__)
        self.cache = self.folder / "hub"

    def environment(self, **variables):
        clean = {name: value for name, value in CLEAN_ENVIRONMENT.items()
                 if not name.startswith(HUB_VARIABLES)}
        return clean | {"HF_ENDPOINT": self.hub.url, "HF_HOME": str(self.folder),
                        "HOME": str(self.folder), "HF_HUB_DOWNLOAD_TIMEOUT": "10"} | variables

    def run_program(self, *arguments, **variables):
        return subprocess.run([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=120, env=self.environment(**variables))

    def start(self, *arguments, **variables):
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment(**variables))
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close(),
                                 process.stderr.close()))
        return process

    def succeed(self, *arguments, **variables):
        result = self.run_program(*arguments, **variables)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def pull(self, name, **variables):
        return pathlib.Path(self.succeed("pull", name, **variables).rstrip("\n"))

    def fail_with(self, code, saying, *arguments, **variables):
        """One sentence, and that exit code."""
        result = self.run_program(*arguments, **variables)
        self.assertEqual(result.returncode, code, (result.stdout, result.stderr))
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"\Aforetoken: [^\n]+\n\Z")
        self.assertIn(saying, result.stderr)

    def refuse(self, saying, *arguments, **variables):
        self.fail_with(2, saying, *arguments, **variables)

    def model_folder(self, name):
        return self.cache / ("models--" + name.replace("/", "--"))

    def assert_cached(self, name, paths, commit=None):
        """The snapshot has these files and no others, with the hub's contents, as links to blobs of
        the right names."""
        repository = self.hub.repositories[name]
        commit = commit or repository.commit
        folder = self.model_folder(name)
        snapshot = folder / "snapshots" / commit
        found = {str(path.relative_to(snapshot)) for path in snapshot.rglob("*")
                 if not path.is_dir()}
        self.assertEqual(found, set(paths))
        for path in paths:
            content = repository.commits[commit][path]
            link = os.readlink(snapshot / path)
            self.assertFalse(os.path.isabs(link))
            self.assertEqual((snapshot / path).resolve(),
                             (folder / "blobs" / blob_name(path, content)).resolve())
            self.assertEqual((snapshot / path).read_bytes(), content)

    def assert_nothing_usable(self, name):
        """Nothing in snapshots and refs, and no blob that is not whole."""
        folder = self.model_folder(name)
        for part in ("snapshots", "refs"):
            self.assertEqual(list((folder / part).rglob("*")), [])
        for blob in (folder / "blobs").glob("*"):
            if len(blob.name) == 64:
                self.assertEqual(hashlib.sha256(blob.read_bytes()).hexdigest(), blob.name)
            else:
                self.assertRegex(blob.name, r"\A[0-9a-f]{40}\Z|\.incomplete\Z")

    def wait_until(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.002)


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    unittest.main()
