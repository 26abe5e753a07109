#!/usr/bin/env python3
"""LiteLLM speaks with the server in two APIs: litellm_test.py PROGRAM BUILD_FOLDER."""

import pathlib

from client_programs import run_python

if __name__ == "__main__":
    # No list of prices is fetched.
    run_python(pathlib.Path(__file__).parent / "litellm_client", "--mode", "ar", "--chat-template",
               "hermes", LITELLM_LOCAL_MODEL_COST_MAP="True")
