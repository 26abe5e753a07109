"""What the scripts that make golden files share."""

import importlib.metadata
import json
import pathlib
import platform
import sys

HERE = pathlib.Path(__file__).resolve().parent


def versions(*packages):
    """Of Python and of packages, for what is written with them."""
    return {"python": platform.python_version(),
            **{package: importlib.metadata.version(package) for package in packages}}


def write_each(kind, chosen, attempt, seeds):
    """Writes kind/NAME/golden.json for each name: what the first of `seeds` gives for which
    attempt(folder, name, seed) is a dictionary, and not a text that says why it does not fit."""
    for name in chosen:
        print(name, flush=True)
        folder = HERE / kind / name
        folder.mkdir(parents=True, exist_ok=True)
        for seed in seeds:
            golden = attempt(folder, name, seed)
            if isinstance(golden, dict):
                break
            print(f"  seed {seed}: {golden}", flush=True)
        else:
            sys.exit(f"{name}: no seed fits")
        (folder / "golden.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
