"""Pinned packages for tests, by npm. A test is skipped (exit code 77) without node, or where npm
reaches no registry."""

import shutil
import subprocess
import sys

SKIPPED = 77


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def install(source, folder):
    """Copies the program in `source` into `folder` and has npm install there what its package-lock
    names, unless that is there."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        skip("node or npm is not installed")
    lock = (source / "package-lock.json").read_bytes()
    stamp = folder / "installed-lock.json"
    folder.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        shutil.copy(path, folder)
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
