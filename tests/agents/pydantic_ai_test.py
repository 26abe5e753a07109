#!/usr/bin/env python3
"""An agent of pydantic-ai mends a file, by each of its models, and goes on when its conversation
has become too long: pydantic_ai_test.py SCRIPTED_SERVER BUILD_FOLDER [TEST]..."""

import json
import pathlib
import sys

from scripted import AgentTest, LibraryTasks, main

import python_packages

SOURCE = pathlib.Path(__file__).resolve().parent / "pydantic_ai"


class PydanticAi(LibraryTasks, AgentTest):
    PYTHON = ""
    DOORS = ("chat", "responses", "kept-responses", "messages")

    def run_requests(self, server, door, *requests):
        return json.loads(self.run_agent(server, self.PYTHON, SOURCE / "agent.py", server.url, door,
                                         *requests))


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv.pop(2)).resolve()
    PydanticAi.PYTHON = python_packages.install(folder, SOURCE / "requirements.txt")
    main()
