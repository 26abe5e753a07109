"""The official Python clients call tools in a loop, streaming, against the server at
FORETOKEN_TOOLS_URL, whose template has tools: the model is made to call, and is given the answer."""

import json
import os
import unittest

import anthropic
import ollama
import openai

URL = os.environ["FORETOKEN_TOOLS_URL"]
MODEL = "demo-target"
QUESTION = {"role": "user", "content": "What is the weather?"}
PARAMETERS = {"type": "object", "additionalProperties": False, "required": ["place", "days"],
              "properties": {"place": {"type": "string", "enum": ["here", "there"]},
                             "days": {"type": "integer", "minimum": 1, "maximum": 9}}}
FUNCTION = {"name": "weather", "description": "The weather.", "parameters": PARAMETERS,
            "strict": True}


def weather(place, days):
    """What the tool answers; wrong arguments are an error."""
    assert place in ("here", "there") and days in range(1, 10)
    return f"Sunny for {days} days {place}."


class OpenAi(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)

    def test_chat(self):
        options = {"model": MODEL, "tools": [{"type": "function", "function": FUNCTION}],
                   "max_tokens": 100, "parallel_tool_calls": False}
        with self.client.chat.completions.stream(**options, messages=[QUESTION],
                                                 tool_choice="required") as stream:
            done = [event for event in stream
                    if event.type == "tool_calls.function.arguments.done"]
            choice = stream.get_final_completion().choices[0]
        self.assertEqual(choice.finish_reason, "tool_calls")
        call, = choice.message.tool_calls
        self.assertEqual([(event.name, event.arguments) for event in done],
                         [(call.function.name, call.function.arguments)])
        called = {"name": call.function.name, "arguments": call.function.arguments}
        messages = [QUESTION,
                    {"role": "assistant", "tool_calls": [
                        {"id": call.id, "type": "function", "function": called}]},
                    {"role": "tool", "tool_call_id": call.id,
                     "content": weather(**call.function.parsed_arguments)}]
        reply = self.client.chat.completions.create(**{**options, "max_tokens": 20},
                                                    messages=messages)
        self.assertTrue(reply.choices[0].message.content)
        self.assertIsNone(reply.choices[0].message.tool_calls)

    def test_responses(self):
        options = {"model": MODEL, "tools": [{"type": "function", **FUNCTION}],
                   "max_output_tokens": 100}
        items = [QUESTION]
        with self.client.responses.stream(**options, input=items, tool_choice="required",
                                          parallel_tool_calls=False) as stream:
            texts = "".join(event.delta for event in stream
                            if event.type == "response.function_call_arguments.delta")
            reply = stream.get_final_response()
        call, = reply.output
        self.assertEqual((call.type, call.name, call.arguments), ("function_call", "weather", texts))
        items += [call.model_dump(exclude={"parsed_arguments"}),
                  {"type": "function_call_output", "call_id": call.call_id,
                   "output": weather(**json.loads(call.arguments))}]
        self.assertTrue(self.client.responses.create(**options, input=items).output_text)


class Anthropic(unittest.TestCase):
    def test_messages(self):
        client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
        tool = {"name": "weather", "description": "The weather.", "input_schema": PARAMETERS}
        options = {"model": MODEL, "tools": [tool], "max_tokens": 100}
        choice = {"type": "any", "disable_parallel_tool_use": True}
        with client.messages.stream(**options, messages=[QUESTION], tool_choice=choice) as stream:
            texts = "".join(event.partial_json for event in stream if event.type == "input_json")
            message = stream.get_final_message()
        self.assertEqual(message.stop_reason, "tool_use")
        call, = message.content
        self.assertEqual((call.type, call.name, call.input),
                         ("tool_use", "weather", json.loads(texts)))
        messages = [QUESTION, {"role": "assistant", "content": message.content},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id,
                                                  "content": weather(**call.input)}]}]
        reply = client.messages.create(**options, messages=messages)
        self.assertTrue(reply.content[0].text)
        count = client.messages.count_tokens(model=MODEL, tools=[tool], messages=messages)
        self.assertEqual(count.input_tokens,
                         reply.usage.input_tokens + reply.usage.cache_read_input_tokens)


class Ollama(unittest.TestCase):
    def test_answers_of_tools_are_read(self):
        client = ollama.Client(host=URL)
        call = {"function": {"name": "weather", "arguments": {"place": "here", "days": 2}}}
        messages = [QUESTION, {"role": "assistant", "tool_calls": [call]},
                    {"role": "tool", "tool_name": "weather", "content": weather("here", 2)}]
        reply = client.chat(MODEL, messages=messages, options={"num_predict": 20},
                            tools=[{"type": "function", "function": {**FUNCTION}}])
        self.assertTrue(reply.message.content)
        self.assertIsNone(reply.message.tool_calls)


if __name__ == "__main__":
    unittest.main(verbosity=2)
