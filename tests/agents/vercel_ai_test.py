#!/usr/bin/env python3
"""An agent of Vercel's ai package mends a file, by each of its providers, and goes on when its
conversation has become too long: vercel_ai_test.py SCRIPTED_SERVER BUILD_FOLDER [TEST]..."""

import json
import pathlib
import sys

from scripted import AgentTest, LibraryTasks, main

import npm_packages

SOURCE = pathlib.Path(__file__).resolve().parent / "vercel_ai"


class VercelAi(LibraryTasks, AgentTest):
    PROGRAM = ""
    DOORS = ("chat", "strict-chat", "responses", "messages")

    def run_requests(self, server, door, *requests):
        return json.loads(self.run_agent(server, "node", self.PROGRAM, server.url, door, *requests))


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv.pop(2)).resolve()
    npm_packages.install(SOURCE, folder)
    VercelAi.PROGRAM = folder / "agent.mjs"
    main()
