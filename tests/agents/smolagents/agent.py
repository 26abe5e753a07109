"""An agent of smolagents with tools for the files of the current folder:
agent.py URL KIND REQUEST... KIND says how it acts: by `calls` of tools or by `code`. The
requests follow each other in one conversation. The last line that it prints is JSON: what it has
answered and how often it has had to shorten its memory."""

import json
import pathlib
import sys

import openai
from smolagents import AgentGenerationError, CodeAgent, LogLevel, OpenAIModel, ToolCallingAgent, tool


@tool
def read(path: str) -> str:
    """Reads a file.

    Args:
        path: Where it is.
    """
    return pathlib.Path(path).read_text()


@tool
def edit(path: str, old: str, new: str) -> int:
    """Replaces a text in a file. Returns how often it was there.

    Args:
        path: Where the file is.
        old: The text.
        new: What stands there then.
    """
    file = pathlib.Path(path)
    count = file.read_text().count(old)
    file.write_text(file.read_text().replace(old, new))
    return count


def main():
    url, kind, *requests = sys.argv[1:]
    model = OpenAIModel("scripted", api_base=url + "/v1", api_key="none")
    agent = {"calls": ToolCallingAgent, "code": CodeAgent}[kind](
        tools=[read, edit], model=model, max_steps=5, verbosity_level=LogLevel.OFF,
        stream_outputs=True)
    answers, shortened = [], 0
    for request in requests:
        try:
            answers.append(agent.run(request, reset=False))
        except AgentGenerationError as failure:
            refusal = failure.__cause__
            if not isinstance(refusal, openai.BadRequestError) or \
                    refusal.code != "context_length_exceeded":
                raise
            shortened += 1
            answers.append(agent.run(request, reset=True))
    print()
    print(json.dumps({"answers": answers, "shortened": shortened}))


if __name__ == "__main__":
    main()
