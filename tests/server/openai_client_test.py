#!/usr/bin/env python3
"""The official `openai` npm package speaks with the server: openai_client_test.py PROGRAM
BUILD_FOLDER."""

import pathlib

from client_programs import run_node

SOURCE = pathlib.Path(__file__).parent / "openai_client"

if __name__ == "__main__":
    run_node(SOURCE)
