"""What the scripts that make golden files share."""

import importlib.metadata
import pathlib
import platform

HERE = pathlib.Path(__file__).resolve().parent


def versions(*packages):
    """Of Python and of packages, for what is written with them."""
    return {"python": platform.python_version(),
            **{package: importlib.metadata.version(package) for package in packages}}
