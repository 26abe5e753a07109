#!/usr/bin/env python3
"""Runs openai_client/client_test.mjs with the official `openai` npm package, which npm installs into
BUILD_FOLDER: openai_client_test.py PROGRAM BUILD_FOLDER. Skips (exit code 77) without node or where
npm reaches no registry."""

import os
import pathlib
import shutil
import subprocess
import sys

from serving import Serving

SKIPPED = 77
SOURCE = pathlib.Path(__file__).parent / "openai_client"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def install(folder):
    """Has npm install the client into a folder, unless it is there; or skips the test."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        skip("node or npm is not installed")
    lock = (SOURCE / "package-lock.json").read_bytes()
    stamp = folder / "installed-lock.json"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc", "client_test.mjs"):
        shutil.copy(SOURCE / name, folder)
    if stamp.exists() and stamp.read_bytes() == lock:
        return
    result = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder,
                            capture_output=True, text=True)
    if result.returncode != 0:
        network = any(word in result.stderr for word in
                      ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ECONNRESET"))
        if network:
            skip("npm reaches no package registry")
        sys.exit(f"npm ci failed:\n{result.stderr}")
    stamp.write_bytes(lock)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    install(folder)
    with Serving(program) as server, Serving(program, "--chat-template", "hermes") as caller:
        result = subprocess.run(["node", "--test", "client_test.mjs"], cwd=folder, timeout=300,
                                env={**os.environ,
                                     "FORETOKEN_URL": f"http://127.0.0.1:{server.port}",
                                     "FORETOKEN_TOOLS_URL": f"http://127.0.0.1:{caller.port}"})
    sys.exit(result.returncode)


if __name__ == "__main__":
    main()
