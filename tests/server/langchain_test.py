#!/usr/bin/env python3
"""LangChain speaks with the server through its doors of OpenAI's and Ollama's APIs:
langchain_test.py PROGRAM BUILD_FOLDER."""

import pathlib

from client_programs import run_python

if __name__ == "__main__":
    # Nobody is told of the test.
    run_python(pathlib.Path(__file__).parent / "langchain_client", "--chat-template", "hermes",
               LANGSMITH_TRACING="false")
