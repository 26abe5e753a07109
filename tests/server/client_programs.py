"""Runs clients' programs against servers that they find at the URLs in their environment: what tests
of unmodified clients share."""

import os
import pathlib
import subprocess
import sys

from serving import Serving

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import npm_packages
import python_packages


def here(**environment):
    """The environment of a client of this machine's servers, whatever proxy there is."""
    return {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **environment}


def url(server):
    return f"http://127.0.0.1:{server.port}"


def run_python(source, *arguments, **environment):
    """Runs client.py of the folder `source` with the URL of a server that has these arguments, and
    ends as it does. The calling test's own arguments are PROGRAM BUILD_FOLDER: pip installs there
    what requirements.txt beside client.py lists; the test is skipped (exit code 77) where that
    cannot be downloaded, unless the environment has CI=true."""
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    python = python_packages.install(folder, source / "requirements.txt")
    with Serving(program, *arguments) as server:
        result = subprocess.run([python, source / "client.py", url(server)], timeout=300,
                                env=here(**environment))
    sys.exit(result.returncode)


def run_node(source):
    """Runs the tests in the folder `source` by node with the URLs of a server and of one whose
    template has tools, and ends as they do. The calling test's own arguments are PROGRAM
    BUILD_FOLDER: npm installs there what package-lock.json beside the tests names; the test is
    skipped without node or where npm reaches no registry."""
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    npm_packages.install(source, folder)
    tests = sorted(path.name for path in source.glob("*_test.mjs"))
    with Serving(program) as server, Serving(program, "--chat-template", "hermes") as caller:
        result = subprocess.run(["node", "--test", *tests], cwd=folder, timeout=300,
                                env=here(FORETOKEN_URL=url(server),
                                         FORETOKEN_TOOLS_URL=url(caller)))
    sys.exit(result.returncode)
