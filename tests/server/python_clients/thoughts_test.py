"""The official Python clients give thoughts a budget, against the server at FORETOKEN_THOUGHTS_URL,
whose template opens a thought that its model never ends by itself."""

import os
import unittest

import anthropic
import openai

URL = os.environ["FORETOKEN_THOUGHTS_URL"]
MODEL = "demo-target"
QUESTION = {"role": "user", "content": "Tell me a story."}


class Thoughts(unittest.TestCase):
    def test_anthropic(self):
        client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
        options = {"model": MODEL, "max_tokens": 60, "messages": [QUESTION]}
        thinking = {"type": "enabled", "budget_tokens": 12}
        message = client.messages.create(**options, thinking=thinking, extra_body={"seed": 2})
        self.assertEqual([block.type for block in message.content], ["thinking", "text"])
        with client.messages.stream(**options, thinking=thinking,
                                    extra_body={"seed": 2}) as stream:
            streamed = stream.get_final_message()
        self.assertEqual([block.model_dump() for block in streamed.content],
                         [block.model_dump() for block in message.content])
        message = client.messages.create(**options, thinking={"type": "disabled"})
        self.assertEqual([block.type for block in message.content], ["text"])

    def test_openai(self):
        client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)

        def ask(budget):
            completion = client.chat.completions.create(
                model=MODEL, messages=[QUESTION], seed=2, max_tokens=60,
                extra_body={"thinking_budget_tokens": budget})
            return completion.choices[0].message

        unlimited, some = ask(-1), ask(12)
        self.assertEqual(unlimited.content, "")
        self.assertTrue(some.content)
        self.assertTrue(unlimited.reasoning_content.startswith(some.reasoning_content))
        response = client.responses.create(model=MODEL, input="Tell me a story.",
                                           max_output_tokens=60,
                                           extra_body={"thinking_budget_tokens": 12})
        self.assertEqual([item.type for item in response.output], ["reasoning", "message"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
