#!/usr/bin/env python3
"""Runs openai_client/client_test.mjs with the official `openai` npm package, which npm installs into
BUILD_FOLDER: openai_client_test.py PROGRAM BUILD_FOLDER. Skips (exit code 77) without node or where
npm reaches no registry."""

import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import npm_packages
from serving import Serving

SOURCE = pathlib.Path(__file__).parent / "openai_client"


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    npm_packages.install(SOURCE, folder)
    with Serving(program) as server, Serving(program, "--chat-template", "hermes") as caller:
        result = subprocess.run(["node", "--test", "client_test.mjs"], cwd=folder, timeout=300,
                                env={**os.environ,
                                     "FORETOKEN_URL": f"http://127.0.0.1:{server.port}",
                                     "FORETOKEN_TOOLS_URL": f"http://127.0.0.1:{caller.port}"})
    sys.exit(result.returncode)


if __name__ == "__main__":
    main()
