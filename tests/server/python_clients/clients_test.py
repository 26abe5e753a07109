"""The official Python clients of the APIs that `foretoken serve` speaks, against the server at
FORETOKEN_URL: what they stream is what they get whole, and what OpenAI's chats give."""

import json
import os
import time
import unittest
from typing import Annotated

import anthropic
import ollama
import openai
from pydantic import BaseModel, Field

URL = os.environ["FORETOKEN_URL"]
MODEL = "demo-target"
MESSAGES = [{"role": "user", "content": "Tell me a story about a cat."}]
SYSTEM = "You tell stories."
SEED = 4
TOKENS = 48


def chat(**fields):
    """The text that /v1/chat/completions gives."""
    client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
    options = {"temperature": 0.8, "seed": SEED, "max_tokens": TOKENS, **fields}
    reply = client.chat.completions.create(
        model=MODEL, messages=[{"role": "system", "content": SYSTEM}, *MESSAGES], **options)
    return reply.choices[0].message.content


class Cat(BaseModel):
    name: str
    lives: int


class Cats(BaseModel):
    names: set[Annotated[str, Field(max_length=6)]] = Field(min_length=8, max_length=12)


class Anthropic(unittest.TestCase):
    def setUp(self):
        self.client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
        self.options = {"model": MODEL, "messages": MESSAGES, "system": SYSTEM,
                        "max_tokens": TOKENS, "extra_body": {"seed": SEED, "temperature": 0.8}}

    def test_whole_and_streamed(self):
        whole = self.client.messages.create(**self.options)
        self.assertTrue(whole.id.startswith("msg_"))
        self.assertEqual((whole.type, whole.role, whole.model), ("message", "assistant", MODEL))
        self.assertEqual(whole.content[0].text, chat())
        self.assertEqual(whole.stop_reason, "max_tokens")
        self.assertEqual(whole.usage.output_tokens, TOKENS)
        with self.client.messages.stream(**self.options) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(final.content[0].text, text)
        self.assertEqual(final.stop_reason, whole.stop_reason)
        self.assertEqual(final.usage.output_tokens, TOKENS)
        total = lambda usage: usage.input_tokens + usage.cache_read_input_tokens
        self.assertEqual(total(final.usage), total(whole.usage))
        types = [event.type for event in self.client.messages.create(**self.options, stream=True)]
        self.assertEqual((types[0], types[1], types[-3], types[-2], types[-1]),
                         ("message_start", "content_block_start", "content_block_stop",
                          "message_delta", "message_stop"))
        self.assertEqual(set(types[2:-3]), {"content_block_delta"})

    def test_the_string_that_stopped(self):
        text = chat()
        word = text.split()[5]
        reply = self.client.messages.create(**self.options, stop_sequences=["unheard", word])
        self.assertEqual(reply.stop_reason, "stop_sequence")
        self.assertEqual(reply.stop_sequence, word)
        self.assertEqual(reply.content[0].text, text[:text.index(word)])

    def test_an_answer_can_be_sent_back(self):
        first = self.client.messages.create(**self.options)
        more = [*MESSAGES, {"role": "assistant", "content": first.content},
                {"role": "user", "content": [{"type": "text", "text": "And then?"}]}]
        options = {**self.options, "messages": more}
        self.assertTrue(self.client.messages.create(**options).content[0].text)

    def test_tokens_are_counted(self):
        count = self.client.messages.count_tokens(model=MODEL, messages=MESSAGES, system=SYSTEM)
        usage = self.client.messages.create(**self.options).usage
        self.assertEqual(count.input_tokens, usage.input_tokens + usage.cache_read_input_tokens)

    def test_a_schema(self):
        schema = {"type": "object", "properties": {"color": {"enum": ["red", "blue"]}},
                  "required": ["color"], "additionalProperties": False}
        reply = self.client.messages.create(
            **self.options, output_config={"format": {"type": "json_schema", "schema": schema}})
        self.assertEqual(reply.stop_reason, "end_turn")
        self.assertIn(json.loads(reply.content[0].text)["color"], ("red", "blue"))

    def test_errors(self):
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.client.messages.create(**{**self.options, "extra_body": {"temperature": -1}})
        self.assertEqual(caught.exception.body["error"]["type"], "invalid_request_error")
        self.assertIn("'temperature'", caught.exception.body["error"]["message"])
        with self.assertRaises(anthropic.BadRequestError):
            self.client.messages.create(**self.options, tools=[{"name": "f", "input_schema": {}}])


    def test_models(self):
        model, = self.client.models.list()
        self.assertEqual((model.id, model.type, model.display_name), (MODEL, "model", MODEL))
        self.assertGreater(model.created_at.timestamp(), 1.7e9)
        self.assertEqual(self.client.models.retrieve(MODEL), model)


class Responses(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
        self.options = {"model": MODEL, "input": MESSAGES, "instructions": SYSTEM,
                        "max_output_tokens": TOKENS, "temperature": 0.8,
                        "extra_body": {"seed": SEED}}

    def test_whole_and_streamed(self):
        whole = self.client.responses.create(**self.options)
        self.assertTrue(whole.id.startswith("resp_"))
        self.assertEqual(whole.output_text, chat())
        self.assertEqual(whole.status, "incomplete")
        self.assertEqual(whole.incomplete_details.reason, "max_output_tokens")
        self.assertEqual(whole.usage.output_tokens, TOKENS)
        self.assertEqual(whole.temperature, 0.8)
        self.assertEqual(whole.instructions, SYSTEM)
        numbers, deltas, last = [], [], None
        for event in self.client.responses.create(**self.options, stream=True):
            numbers.append(event.sequence_number)
            if event.type == "response.output_text.delta":
                deltas.append(event.delta)
            last = event
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertEqual("".join(deltas), whole.output_text)
        self.assertEqual(last.type, "response.incomplete")
        self.assertEqual(last.response.output_text, whole.output_text)

    def test_the_stream_helper_and_a_schema(self):
        options = {**self.options, "max_output_tokens": 400}
        parsed = self.client.responses.parse(**options, text_format=Cat)
        self.assertEqual(parsed.status, "completed")
        self.assertIsInstance(parsed.output_parsed, Cat)
        with self.client.responses.stream(**options, text_format=Cat) as stream:
            text = "".join(event.delta for event in stream
                           if event.type == "response.output_text.delta")
            final = stream.get_final_response()
        self.assertEqual(final.output_text, text)
        self.assertEqual(final.output_parsed, parsed.output_parsed)

    def test_an_answer_can_be_sent_back(self):
        first = self.client.responses.create(**self.options)
        more = [*MESSAGES, *first.output, {"role": "user", "content": "And then?"}]
        self.assertTrue(self.client.responses.create(**{**self.options, "input": more}).output_text)

    def test_logprobs(self):
        reply = self.client.responses.create(
            **self.options, include=["message.output_text.logprobs"], top_logprobs=2)
        logprobs = reply.output[0].content[0].logprobs
        self.assertEqual(len(logprobs), TOKENS)
        self.assertEqual(len(logprobs[0].top_logprobs), 2)

    def test_errors(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.responses.create(**self.options, previous_response_id="resp_1")
        self.assertEqual(caught.exception.param, "previous_response_id")


class Embeddings(unittest.TestCase):
    TEXTS = ["Once upon a time", "The dog ran to the park."]

    def test_openai(self):
        client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
        # Left to itself the client asks for base64, and decodes it.
        reply = client.embeddings.create(model=MODEL, input=self.TEXTS)
        numbers = client.embeddings.create(model=MODEL, input=self.TEXTS, encoding_format="float")
        self.assertEqual([entry.index for entry in reply.data], [0, 1])
        self.assertGreater(reply.usage.prompt_tokens, len(self.TEXTS))
        self.assertEqual(reply.usage, numbers.usage)
        for entry, same in zip(reply.data, numbers.data):
            self.assertEqual(len(entry.embedding), 256)
            self.assertAlmostEqual(sum(value * value for value in entry.embedding), 1, places=5)
            for value, other in zip(entry.embedding, same.embedding):
                self.assertAlmostEqual(value, other, delta=1e-7)
        with self.assertRaises(openai.BadRequestError) as caught:
            client.embeddings.create(model=MODEL, input="a", dimensions=64)
        self.assertEqual(caught.exception.param, "dimensions")

    def test_ollama(self):
        client = ollama.Client(host=URL)
        reply = client.embed(MODEL, self.TEXTS)
        numbers = openai.OpenAI(base_url=URL + "/v1", api_key="none").embeddings.create(
            model=MODEL, input=self.TEXTS, encoding_format="float")
        self.assertEqual([list(vector) for vector in reply.embeddings],
                         [entry.embedding for entry in numbers.data])
        self.assertEqual(reply.prompt_eval_count, numbers.usage.prompt_tokens)
        old = client.embeddings(MODEL, self.TEXTS[0])
        self.assertEqual(list(old.embedding), numbers.data[0].embedding)


class Ollama(unittest.TestCase):
    def setUp(self):
        self.client = ollama.Client(host=URL)
        self.messages = [{"role": "system", "content": SYSTEM}, *MESSAGES]
        self.options = {"temperature": 0.8, "seed": SEED, "num_predict": TOKENS}

    def test_chats(self):
        whole = self.client.chat(MODEL, self.messages, options=self.options)
        self.assertEqual(whole.message.content, chat())
        self.assertEqual(whole.done_reason, "length")
        self.assertEqual(whole.eval_count, TOKENS)
        self.assertGreater(whole.total_duration, whole.eval_duration)
        parts = list(self.client.chat(MODEL, self.messages, options=self.options, stream=True))
        self.assertEqual("".join(part.message.content for part in parts), whole.message.content)
        self.assertEqual([part.done for part in parts], [False] * (len(parts) - 1) + [True])
        self.assertEqual(parts[-1].eval_count, TOKENS)

    def test_generations(self):
        options = {"prompt": MESSAGES[0]["content"], "system": SYSTEM, "options": self.options}
        whole = self.client.generate(MODEL, **options)
        self.assertEqual(whole.response, chat())
        parts = self.client.generate(MODEL, **options, stream=True)
        self.assertEqual("".join(part.response for part in parts), whole.response)

    def test_a_raw_prompt(self):
        raw = self.client.generate(MODEL, "Once upon a time", raw=True, options=self.options)
        client = openai.OpenAI(base_url=URL + "/v1", api_key="none")
        completion = client.completions.create(model=MODEL, prompt="Once upon a time", seed=SEED,
                                               temperature=0.8, max_tokens=TOKENS)
        self.assertEqual(raw.response, completion.choices[0].text)

    def test_formats(self):
        options = {**self.options, "num_predict": 400}
        reply = self.client.chat(MODEL, self.messages, options=options,
                                 format=Cat.model_json_schema())
        Cat.model_validate_json(reply.message.content)
        # A set, whose items all differ.
        reply = self.client.chat(MODEL, self.messages, options=options,
                                 format=Cats.model_json_schema())
        written = json.loads(reply.message.content)["names"]
        self.assertEqual(len(Cats.model_validate_json(reply.message.content).names), len(written))
        reply = self.client.chat(MODEL, self.messages, options=self.options, format="json")
        self.assertTrue(reply.message.content.startswith("{"))

    def test_models(self):
        self.assertEqual([model.model for model in self.client.list().models], [MODEL])
        for name in (MODEL, MODEL + ":latest", "other"):  # One model answers by any name.
            shown = self.client.show(name)
            self.assertEqual(shown.capabilities, ["completion"])
            self.assertEqual((shown.details.format, shown.details.family), ("safetensors", "llama"))
            self.assertEqual(shown.details.quantization_level, "BF16")
            self.assertGreater(shown.modelinfo["general.parameter_count"], 0)
            self.assertEqual(shown.modelinfo["llama.context_length"], 512)
            self.assertIn("<|im_start|>", shown.template)
        running, = self.client.ps().models
        self.assertEqual((running.model, running.context_length), (MODEL, 512))
        self.assertGreater(running.size, 0)
        listed, = self.client.list().models
        self.assertEqual(running.details, listed.details)

    def test_pulling_and_removing(self):
        self.assertEqual(self.client.pull(MODEL).status, "success")
        parts = list(self.client.pull(MODEL, stream=True))
        self.assertEqual(parts[-1].status, "success")
        for change in (lambda: self.client.pull("llama3"), lambda: self.client.delete(MODEL),
                       lambda: self.client.copy(MODEL, "other")):
            with self.assertRaises(ollama.ResponseError) as caught:
                change()
            self.assertEqual(caught.exception.status_code, 403)

    def test_an_empty_prompt_loads(self):
        self.assertEqual(self.client.generate(MODEL).done_reason, "load")
        self.assertEqual(self.client.chat(MODEL, keep_alive="10m").done_reason, "load")
        expires = self.client.ps().models[0].expires_at
        self.assertAlmostEqual(expires.timestamp(), time.time() + 600, delta=60)
        self.assertEqual(self.client.chat(MODEL, self.messages, keep_alive=-1,
                                          options=self.options).done_reason, "length")
        self.assertGreater(self.client.ps().models[0].expires_at.year, 9000)

    def test_errors(self):
        with self.assertRaises(ollama.ResponseError) as caught:
            self.client.chat(MODEL, self.messages, options={"temperature": -1.0})
        self.assertEqual(caught.exception.status_code, 400)
        self.assertIn("'options.temperature'", caught.exception.error)
        with self.assertRaises(ollama.ResponseError):
            self.client.chat(MODEL, self.messages, tools=[{"type": "function"}])


if __name__ == "__main__":
    unittest.main()
