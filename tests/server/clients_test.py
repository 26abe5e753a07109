#!/usr/bin/env python3
"""Runs the tests in python_clients with the official `anthropic`, `openai` and `ollama` packages,
which pip installs into a virtual environment in BUILD_FOLDER: clients_test.py PROGRAM BUILD_FOLDER.
Skips (exit code 77) where pip reaches no registry, unless CI=true: then it fails."""

import os
import pathlib
import subprocess
import sys

from serving import Serving

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from python_packages import install

SOURCE = pathlib.Path(__file__).parent / "python_clients"


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    python = install(folder, SOURCE / "requirements.txt")
    thoughts = SOURCE / "thoughts.jinja"
    with (Serving(program) as server, Serving(program, "--chat-template", "hermes") as caller,
          Serving(program, "--chat-template", thoughts) as thinker):
        # Whatever proxy there is, the servers are on this machine.
        environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
                       "FORETOKEN_URL": f"http://127.0.0.1:{server.port}",
                       "FORETOKEN_TOOLS_URL": f"http://127.0.0.1:{caller.port}",
                       "FORETOKEN_THOUGHTS_URL": f"http://127.0.0.1:{thinker.port}"}
        codes = [subprocess.run([python, SOURCE / name], timeout=600, env=environment).returncode
                 for name in ("clients_test.py", "tools_test.py", "thoughts_test.py")]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
