"""LangChain's chat model of OpenAI's API calls a tool of a server and is given its answer:
client.py BASE_URL, against a server whose template has tools."""

import sys

from langchain_core.messages import AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


def main():
    chat = ChatOpenAI(base_url=sys.argv[1] + "/v1", api_key="none", model="demo-target", seed=1,
                      max_tokens=100, max_retries=0)
    calling = chat.bind_tools([double], tool_choice="required", strict=True,
                              parallel_tool_calls=False)
    question = HumanMessage("Double it.")
    whole = calling.invoke([question])
    call, = whole.tool_calls
    assert call["name"] == "double" and isinstance(call["args"]["number"], int), call
    assert whole.response_metadata["finish_reason"] == "tool_calls"

    streamed = AIMessageChunk("")
    for chunk in calling.stream([question]):
        streamed += chunk
    assert [(one["name"], one["args"]) for one in streamed.tool_calls] == \
        [(call["name"], call["args"])], streamed.tool_calls

    answer = double.invoke(call)
    assert isinstance(answer, ToolMessage) and answer.content == str(2 * call["args"]["number"])
    reply = chat.bind_tools([double]).bind(max_tokens=20).invoke([question, whole, answer])
    assert reply.content and not reply.tool_calls, reply
    print("LangChain called", call["args"], "and was answered")


if __name__ == "__main__":
    main()
