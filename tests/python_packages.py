"""Pinned packages for tests, in virtual environments. uv makes these: it keeps unpacked packages in
a cache of its user's and links them, so that an environment takes a second where pip needs half a
minute. uv itself comes by pip, once for each user. A test whose packages cannot be had is skipped
(exit code 77), unless the environment has CI=true: then it fails."""

import contextlib
import fcntl
import os
import pathlib
import subprocess
import sys

SKIPPED = 77
UV = "uv==0.13.8"
# ctest gives some tests a cache of their own; what is downloaded is kept for all of them.
CACHE = pathlib.Path.home() / ".cache"


def unavailable(reason):
    if os.environ.get("CI") == "true":
        sys.exit(f"failed: {reason}, and with CI=true this test may not be skipped")
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True,
                            env={**os.environ, "XDG_CACHE_HOME": str(CACHE)})
    if result.returncode != 0:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        unavailable(f"{' '.join(map(str, command))} failed: {last}")


@contextlib.contextmanager
def held(folder):
    """Makes `folder` and lets one process at a time install there."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def tool(name):
    """The path of uv or pip in an environment of the user's that has both."""
    folder = CACHE / "foretoken_tests" / UV.replace("==", "-")
    programs = folder / "environment" / "bin"
    with held(folder):
        if not (programs / "uv").exists():
            run(sys.executable, "-m", "venv", "--clear", folder / "environment")
            run(programs / "python", "-m", "pip", "--quiet", "install", UV)
    return programs / name


def download_source(folder, package):
    """Leaves the archive of the package's source in `folder`."""
    run(tool("pip"), "--quiet", "--disable-pip-version-check", "download", "--no-deps",
        "--no-binary", ":all:", "--dest", folder, package)


def install(folder, requirements):
    """The Python of an environment in `folder` that has what the file `requirements` lists, which
    is every package that these need."""
    wanted = requirements.read_bytes()
    stamp = folder / "installed.txt"
    python = folder / "environment" / "bin" / "python"
    uv = tool("uv")
    with held(folder):
        if not (python.exists() and stamp.exists() and stamp.read_bytes() == wanted):
            stamp.unlink(missing_ok=True)
            run(uv, "--quiet", "venv", "--clear", "--python", sys.executable,
                folder / "environment")
            run(uv, "--quiet", "pip", "install", "--python", python, "--no-deps", "--requirement",
                requirements)
            stamp.write_bytes(wanted)
    return python


def run_with(folder, requirements):
    """Starts this program again by the Python of such an environment, unless that runs it now."""
    if pathlib.Path(sys.prefix).resolve() == folder.resolve() / "environment":
        return
    python = install(folder.resolve(), requirements)
    os.execv(python, [str(python), *sys.argv])
