#!/usr/bin/env python3
"""Runs the tests in python_clients with the official `anthropic`, `openai` and `ollama` packages,
which pip installs into a virtual environment in BUILD_FOLDER: clients_test.py PROGRAM BUILD_FOLDER.
Skips (exit code 77) where pip reaches no registry, unless CI=true: then it fails."""

import pathlib
import subprocess
import sys

from client_programs import here, python_packages, url
from serving import Serving

SOURCE = pathlib.Path(__file__).parent / "python_clients"


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    python = python_packages.install(folder, SOURCE / "requirements.txt")
    thoughts = SOURCE / "thoughts.jinja"
    with (Serving(program) as server, Serving(program, "--chat-template", "hermes") as caller,
          Serving(program, "--chat-template", thoughts) as thinker):
        environment = here(FORETOKEN_URL=url(server), FORETOKEN_TOOLS_URL=url(caller),
                           FORETOKEN_THOUGHTS_URL=url(thinker))
        codes = [subprocess.run([python, SOURCE / name], timeout=600, env=environment).returncode
                 for name in ("clients_test.py", "tools_test.py", "thoughts_test.py")]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
