#!/usr/bin/env python3
"""Runs python_clients/clients_test.py with the official `anthropic`, `openai` and `ollama` packages,
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
    with Serving(program) as server:
        # Whatever proxy there is, the server is on this machine.
        environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
                       "FORETOKEN_URL": f"http://127.0.0.1:{server.port}"}
        result = subprocess.run([python, SOURCE / "clients_test.py"], timeout=600, env=environment)
    sys.exit(result.returncode)


if __name__ == "__main__":
    main()
