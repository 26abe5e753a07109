"""An agent of pydantic-ai with tools for the files of the current folder:
agent.py URL DOOR REQUEST... The requests follow each other in one conversation. Prints, as JSON,
what it has answered, and why it has pruned its messages."""

import json
import pathlib
import sys

from pydantic_ai import Agent, ModelContextWindowExceededError
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelRequest, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import (
    OpenAIChatModel, OpenAIResponsesModel, OpenAIResponsesModelSettings)
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


def read(path: str) -> str:
    """Reads a file."""
    return pathlib.Path(path).read_text()


def edit(path: str, old: str, new: str) -> dict:
    """Replaces a text in a file."""
    text = pathlib.Path(path).read_text()
    if old not in text:
        return {"error": "There is no such text."}
    pathlib.Path(path).write_text(text.replace(old, new, 1))
    return {"replaced": 1}


def model_at(url, door):
    openai = OpenAIProvider(base_url=url + "/v1", api_key="none")
    if door == "chat":
        return OpenAIChatModel("scripted", provider=openai)
    if door == "responses":
        return OpenAIResponsesModel("scripted", provider=openai)
    if door == "kept-responses":
        return OpenAIResponsesModel(
            "scripted", provider=openai,
            settings=OpenAIResponsesModelSettings(openai_previous_response_id="auto"))
    return AnthropicModel("scripted", provider=AnthropicProvider(base_url=url, api_key="none"))


class Pruning:
    """Leaves out, once it is switched on, what was said by and to tools for earlier requests."""

    on = False

    def __call__(self, messages):
        if not self.on:
            return messages
        last = max(i for i, message in enumerate(messages) if isinstance(message, ModelRequest)
                   and any(isinstance(part, UserPromptPart) for part in message.parts))
        return [message for i, message in enumerate(messages) if i >= last or not any(
            isinstance(part, (ToolCallPart, ToolReturnPart)) for part in message.parts)]


async def follow(_, events):
    """What a user interface draws; here it has the answer streamed."""
    async for _ in events:
        pass


def main():
    url, door, *requests = sys.argv[1:]
    pruning = Pruning()
    agent = Agent(model_at(url, door), instructions="You mend files.", tools=[read, edit],
                  model_settings={"max_tokens": 1024}, capabilities=[ProcessHistory(pruning)])
    messages, answers, pruned = [], [], []
    for request in requests:
        try:
            result = agent.run_sync(request, message_history=messages, event_stream_handler=follow)
        except ModelContextWindowExceededError as refusal:
            pruned.append({"status": refusal.status_code, "message": str(refusal)})
            pruning.on = True
            result = agent.run_sync(request, message_history=messages, event_stream_handler=follow)
        messages = result.all_messages()
        answers.append({"text": result.output, "usage": {
            "inputTokens": result.usage.input_tokens, "outputTokens": result.usage.output_tokens}})
    print(json.dumps({"answers": answers, "pruned": pruned}))


if __name__ == "__main__":
    main()
