#!/usr/bin/env python3
"""The official `@anthropic-ai/sdk` and `ollama` npm packages speak with the server:
node_clients_test.py PROGRAM BUILD_FOLDER."""

import pathlib

from client_programs import run_node

if __name__ == "__main__":
    run_node(pathlib.Path(__file__).parent / "node_clients")
