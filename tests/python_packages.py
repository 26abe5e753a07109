"""Pinned packages for tests, by pip in virtual environments. A test whose packages cannot be had is
skipped (exit code 77), unless the environment has CI=true: then it fails."""

import os
import pathlib
import subprocess
import sys

SKIPPED = 77


def unavailable(reason):
    if os.environ.get("CI") == "true":
        sys.exit(f"failed: {reason}, and with CI=true this test may not be skipped")
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def pip(folder, *arguments):
    """Runs pip in the virtual environment in `folder`, which is made where there is none. Returns
    its Python."""
    python = folder / "environment" / "bin" / "python"
    commands = [[python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]]
    if not python.exists():
        commands.insert(0, [sys.executable, "-m", "venv", folder / "environment"])
    for command in commands:
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            last = (result.stderr.strip().splitlines() or ["no message"])[-1]
            unavailable(f"{' '.join(map(str, command))} failed: {last}")
    return python


def install(folder, requirements):
    """The Python of an environment in `folder` that has what the file `requirements` lists, with
    every package that these need."""
    wanted = requirements.read_bytes()
    stamp = folder / "installed.txt"
    python = folder / "environment" / "bin" / "python"
    if python.exists() and stamp.exists() and stamp.read_bytes() == wanted:
        return python
    folder.mkdir(parents=True, exist_ok=True)
    python = pip(folder, "install", "--no-deps", "--requirement", requirements)
    stamp.write_bytes(wanted)
    return python


def run_with(folder, requirements):
    """Starts this program again by the Python of such an environment, unless that runs it now."""
    if pathlib.Path(sys.prefix).resolve() == folder.resolve() / "environment":
        return
    python = install(folder.resolve(), requirements)
    os.execv(python, [str(python), *sys.argv])
