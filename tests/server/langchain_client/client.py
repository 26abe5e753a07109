"""LangChain's chat models of OpenAI's and of Ollama's API call a tool of a server and are given its
answer: client.py BASE_URL, against a server whose template has tools."""

import sys

from langchain_core.messages import AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM
from langchain_openai import ChatOpenAI


@tool
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


# What a program that fills in everything sends: Ollama's defaults.
OPTIONS = {"mirostat": 0, "mirostat_eta": 0.1, "mirostat_tau": 5.0, "num_ctx": 2048, "num_gpu": 1,
           "num_thread": 2, "repeat_last_n": 64, "repeat_penalty": 1.1, "tfs_z": 1.0, "top_k": 40,
           "top_p": 0.9, "keep_alive": "5m"}


def ollama():
    url = sys.argv[1]
    # It asks for the model's name before anything else.
    chat = ChatOllama(base_url=url, model="demo-target", seed=1, num_predict=100, temperature=0.8,
                      validate_model_on_init=True, **OPTIONS)
    question = HumanMessage("Double it.")
    reply = chat.invoke([question])
    streamed = AIMessageChunk("")
    for chunk in chat.stream([question]):
        streamed += chunk
    assert streamed.content == reply.content and reply.content, (streamed, reply)
    again = chat.bind_tools([double]).invoke([question])
    answered = chat.invoke([question, again, ToolMessage("4", tool_call_id="1", name="double")])
    assert answered.content, answered
    text = OllamaLLM(base_url=url, model="demo-target", num_predict=8).invoke("Once upon a time")
    assert text, text
    first, second = OllamaEmbeddings(base_url=url, model="demo-target").embed_documents(["a", "b"])
    assert len(first) == 256 and first != second


def main():
    ollama()
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
