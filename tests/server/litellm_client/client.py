"""LiteLLM, on which agents such as aider stand, against the server at argv[1]: it knows each error by
its own class, and what it translates means the same here: client.py URL"""

import json
import sys
import unittest

import litellm

URL = ""
LONG = [{"role": "user", "content": "word " * 700}]
STORY = [{"role": "user", "content": "Tell me a story about a cat."}]
NOW = {"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {
    "type": "object", "properties": {}, "additionalProperties": False}}}


def doors():
    """The model and the address of each API."""
    return ("openai/demo-target", URL + "/v1"), ("anthropic/demo-target", URL)


def complete(model, base, **fields):
    return litellm.completion(model=model, api_base=base, api_key="none", num_retries=0,
                              **{"max_tokens": 24, "temperature": 0, **fields})


class LiteLlm(unittest.TestCase):
    def test_a_prompt_that_is_too_long(self):
        for model, base in doors():
            for stream in (False, True):
                with self.subTest(model, stream=stream):
                    with self.assertRaises(litellm.ContextWindowExceededError):
                        list(complete(model, base, messages=LONG, stream=stream))
        for stream in (False, True):
            with self.assertRaises(litellm.ContextWindowExceededError):
                list(litellm.responses(model="openai/demo-target", api_base=URL + "/v1",
                                       api_key="none", input=LONG, stream=stream))

    def test_what_is_wrong_otherwise(self):
        for model, base in doors():
            with self.subTest(model):
                with self.assertRaises(litellm.BadRequestError) as caught:
                    complete(model, base, messages=STORY, temperature=-1)
                self.assertNotIsInstance(caught.exception, litellm.ContextWindowExceededError)
                with self.assertRaises(litellm.NotFoundError):
                    complete(model, base + "/nowhere", messages=STORY)

    def test_an_answer_goes_on_with_the_last_turn(self):
        rests = set()
        for model, base in doors():
            messages = [*STORY, {"role": "assistant", "content": "Once upon a time, there"}]
            rests.add(complete(model, base, messages=messages).choices[0].message.content)
        self.assertEqual(len(rests), 1, rests)
        self.assertTrue(rests.pop().startswith(" "))

    def test_tools_are_called_and_answered(self):
        for model, base in doors():
            with self.subTest(model):
                call, = complete(model, base, messages=STORY, tools=[NOW], tool_choice="required",
                                 parallel_tool_calls=False,
                                 max_tokens=200).choices[0].message.tool_calls
                self.assertEqual((call.function.name, json.loads(call.function.arguments)),
                                 ("now", {}))
                messages = [*STORY, {"role": "assistant", "content": None, "tool_calls": [
                    {"id": call.id, "type": "function",
                     "function": {"name": "now", "arguments": "{}"}}]},
                    {"role": "tool", "tool_call_id": call.id,
                     "content": [{"type": "text", "text": "Noon."}]}]
                reply = complete(model, base, messages=messages, tools=[NOW])
                self.assertTrue(reply.choices[0].message.content)


if __name__ == "__main__":
    URL = sys.argv.pop(1)
    litellm.suppress_debug_info = True
    unittest.main(verbosity=2)
