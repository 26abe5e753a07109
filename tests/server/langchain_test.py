#!/usr/bin/env python3
"""LangChain speaks with the server through its doors of OpenAI's and Ollama's APIs:
langchain_test.py PROGRAM BUILD_FOLDER.

Installs the pinned packages of langchain_client/requirements.txt in BUILD_FOLDER. Skips (exit code
77) where these cannot be downloaded, unless the environment has CI=true."""

import os
import pathlib
import subprocess
import sys

from serving import Serving

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from python_packages import install

SOURCE = pathlib.Path(__file__).parent / "langchain_client"


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    python = install(folder, SOURCE / "requirements.txt")
    with Serving(program, "--chat-template", "hermes") as server:
        # Whatever proxy there is, the server is on this machine; nobody is told of the test.
        environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
                       "LANGSMITH_TRACING": "false"}
        result = subprocess.run([python, SOURCE / "client.py", f"http://127.0.0.1:{server.port}"],
                                timeout=300, env=environment)
    sys.exit(result.returncode)


if __name__ == "__main__":
    main()
