#!/usr/bin/env python3
"""What agents send and by what they judge the answers, through the doors of OpenAI and Anthropic:
agents_test.py PROGRAM [TEST]..."""

import json
import sys
import tempfile
import unittest

from serving import Serving, ServerTest, events

PROGRAM = ""
STORY = [{"role": "user", "content": "Tell me a story about a cat."}]
MODES = ("ar", "ngram", "sd", "ssd", "protocol", "ensemble")
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
GREEDY = {"temperature": 0, "seed": 1}
NOW = {"name": "now", "description": "The time."}


def chat_text(reply):
    return reply["choices"][0]["message"]["content"]


def anthropic_text(reply):
    return reply["content"][0]["text"]


def responses_text(reply):
    return reply["output"][-1]["content"][0]["text"]


class TooLong(ServerTest):
    """A chat that is too long is said in the words of the API, whole and streamed."""

    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "--mode", "ar")
        cls.context = cls.server.get("/props")[2]["context"]

    def refused(self, path, body):
        bodies = []
        for stream in (False, True):
            status, headers, reply = self.server.post(path, {**body, "stream": stream})
            self.assertEqual((status, headers["Content-Type"]), (400, "application/json"))
            bodies.append(reply)
        self.assertEqual(*bodies)
        return bodies[0]

    def test_openai(self):
        # The second has too many bytes to be tokenised.
        for text, count in (("word " * 700, r"\d+"), ("word " * 400_000, r"at least \d+")):
            message = [{"role": "user", "content": text}]
            for path, field, body in (
                    (CHAT, "messages", {"messages": message}),
                    (RESPONSES, "input", {"input": message}),
                    ("/v1/completions", "prompt", {"prompt": text})):
                with self.subTest(path, count=count):
                    error = self.refused(path, body)["error"]
                    self.assertRegex(
                        error["message"],
                        rf"^This model's maximum context length is {self.context} tokens\. However, "
                        rf"your {field} resulted in {count} tokens, .*reduce the length of the {field}")
                    self.assertEqual((error["code"], error["param"], error["type"]),
                                     ("context_length_exceeded", field, "invalid_request_error"))

    def test_anthropic(self):
        for text, count in (("word " * 700, r"\d+"), ("word " * 400_000, r"at least \d+")):
            body = self.refused(MESSAGES, {"max_tokens": 8, "messages": [
                {"role": "user", "content": text}]})
            self.assertEqual((body["type"], body["error"]["type"]),
                             ("error", "invalid_request_error"))
            self.assertRegex(body["error"]["message"],
                             rf"^prompt is too long: {count} tokens > {self.context - 1} maximum$")


class Turns(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "-np", 4, "--modes", ",".join(MODES))

    def chat(self, messages, **fields):
        return chat_text(self.succeed(self.server.post(
            CHAT, {"messages": messages, "max_tokens": 48, **GREEDY, **fields})))

    def test_an_answer_goes_on_with_the_last_turn(self):
        whole = self.chat(STORY)
        words = whole.split(" ")
        begun = " ".join(words[:6])
        turns = [*STORY, {"role": "assistant", "content": begun}]
        rest = self.chat(turns)
        self.assertTrue((begun + rest).startswith(whole), (begun, rest, whole))
        self.assertTrue(rest.startswith(" "))  # The text goes on; it does not begin.
        self.assertEqual(rest, self.chat(turns, continue_final_message=True,
                                         add_generation_prompt=False))
        prefix = [*STORY, {"role": "assistant", "content": begun, "prefix": True}]
        self.assertEqual(rest, self.chat(prefix))
        self.assertNotEqual(rest, self.chat(turns, add_generation_prompt=True))
        reply = self.succeed(self.server.post(
            MESSAGES, {"messages": turns, "max_tokens": 48, **GREEDY}))
        self.assertEqual(anthropic_text(reply), rest)
        ollama = self.succeed(self.server.post("/api/chat", {
            "messages": turns, "stream": False, "options": {"num_predict": 48, **GREEDY}}))
        self.assertEqual(ollama["message"]["content"], rest)
        written = self.succeed(self.server.post("/apply-template", {"messages": turns}))["prompt"]
        self.assertTrue(written.endswith(begun), written)
        begins = self.succeed(self.server.post(
            "/apply-template", {"messages": turns, "add_generation_prompt": True}))["prompt"]
        self.assertFalse(begins.endswith(begun), begins)
        usage = reply["usage"]
        count = self.succeed(self.server.post(MESSAGES + "/count_tokens", {"messages": turns}))
        self.assertEqual(count["input_tokens"],
                         usage["input_tokens"] + usage["cache_read_input_tokens"])

    def test_a_prediction_changes_no_token(self):
        whole = self.chat(STORY, max_tokens=96)
        words = whole.split(" ")
        words[10] = "elephant"  # The prediction is wrong in one place.
        for text in (whole, " ".join(words), "Something else altogether."):
            prediction = {"type": "content", "content": text}
            for mode in MODES:
                body = self.succeed(self.server.post(CHAT, {
                    "messages": STORY, "max_tokens": 96, **GREEDY, "prediction": prediction,
                    "speculative": {"mode": mode}}))
                self.assertEqual(chat_text(body), whole, mode)
        # Where the request does not say how to speculate, it is from the prediction.
        used = {}
        for text in (whole, "no"):
            body = self.succeed(self.server.post(CHAT, {
                "messages": STORY, "max_tokens": 96, **GREEDY,
                "prediction": {"type": "content", "content": text}}))
            used[text] = body["usage"]
            details = body["usage"]["completion_tokens_details"]
            self.assertEqual(details["accepted_prediction_tokens"],
                             body["usage"]["draft_n_accepted"])
        self.assertEqual(used[whole]["mode"], "protocol")
        self.assertGreater(used[whole]["completion_tokens_details"]["accepted_prediction_tokens"],
                           60)
        self.assertLess(used[whole]["rounds"], used["no"]["rounds"] / 2)

    def test_texts_from_other_systems(self):
        for text in ("a\r\nb", "\ufeffa", "a\u0000b", "a\ud83d", "\udc00"):
            with self.subTest(text=repr(text)):
                body = json.dumps({"messages": [{"role": "user", "content": text}],
                                   "max_tokens": 2, "response_format": {"type": "text"}})
                self.succeed(self.server.post(CHAT, "\ufeff".encode() + body.encode()))
        schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"const": 7}}}
        marked = "\ufeff" + json.dumps({"messages": STORY, "response_format": schema})
        self.assertEqual(chat_text(self.succeed(self.server.post(CHAT, marked.encode()))), "7")

    def test_forms_of_other_servers_are_kept_to(self):
        schema = {"type": "object", "properties": {"b": {"const": 1}, "a": {"enum": [2, 3]}},
                  "required": ["b", "a"], "additionalProperties": False}
        for fields in ({"response_format": {"type": "json_object", "schema": schema}},
                       {"response_format": {"type": "json_schema", "schema": schema}},
                       {"json_schema": schema}, {"guided_json": schema},
                       {"guided_json": json.dumps(schema)}, {"format": schema},
                       {"structured_outputs": {"json": schema}}):
            with self.subTest(fields=fields):
                value = json.loads(self.chat(STORY, **fields))
                self.assertEqual((list(value), value["b"]), (["b", "a"], 1))
                self.assertIn(value["a"], (2, 3))
        for fields in ({"guided_choice": ["red \"x\"", "blué"]},
                       {"structured_outputs": {"choice": ["red \"x\"", "blué"]}}):
            self.assertIn(self.chat(STORY, **fields), ("red \"x\"", "blué"))
        self.assertEqual(self.chat(STORY, guided_grammar='root ::= "yes"'), "yes")
        for fields, param in (({"guided_regex": "a+"}, "guided_regex"),
                              ({"structured_outputs": {"regex": "a"}}, "structured_outputs.regex"),
                              ({"response_format": {"type": "structural_tag"}},
                               "response_format.type")):
            status, _, body = self.server.post(CHAT, {"messages": STORY, **fields})
            self.assertEqual((status, body["error"]["param"]), (400, param))


class Claude(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "--mode", "ar", "--chat-template", "hermes")

    def test_a_header_that_changes_leaves_the_prefix_cached(self):
        prompt = "You are a kind storyteller. Tell short stories of animals. " * 8

        def ask(cch, question):
            header = f"x-anthropic-billing-header: cc_version=2.1.77.e19; cc_entrypoint=cli; cch={cch};"
            return self.succeed(self.server.post(MESSAGES, {
                "max_tokens": 4, "messages": [{"role": "user", "content": question}],
                "system": [{"type": "text", "text": header},
                           {"type": "text", "text": prompt,
                            "cache_control": {"type": "ephemeral"}}]}))["usage"]

        first, second = ask("00000", "A cat?"), ask("fa690", "A dog?")
        self.assertEqual(first["cache_read_input_tokens"], 0)
        # Whole blocks of 32 tokens are found again.
        read, new = second["cache_read_input_tokens"], second["input_tokens"]
        self.assertGreater(read, 90)
        self.assertLess(new, 64)

    def test_tools_of_other_kinds_are_left_out(self):
        tools = [{"type": "web_search_20250305", "name": "web_search"},
                 {"type": "bash_20250124", "name": "bash"},
                 {"name": "now", "input_schema": {"type": "object", "properties": {},
                                                  "additionalProperties": False}}]
        body = {"max_tokens": 200, "messages": STORY, "tools": tools}
        status, headers, reply = self.server.post(MESSAGES, {**body, "tool_choice": {"type": "any"}})
        self.assertEqual(status, 200, reply)
        self.assertEqual((reply["content"][0]["name"], reply["content"][0]["input"]), ("now", {}))
        self.assertEqual(headers["X-Foretoken-Ignored"],
                         "tools[0].type=web_search_20250305, tools[1].type=bash_20250124")
        status, _, reply = self.server.post(MESSAGES, {
            **body, "tool_choice": {"type": "tool", "name": "bash"}})
        self.assertEqual(status, 400)
        self.assertIn("'bash', which is none of the functions", reply["error"]["message"])


class Codex(ServerTest):
    """Requests as Codex sends them, and responses that go on with earlier ones."""

    TOOLS = [{"type": "function", **NOW, "strict": False}, {"type": "web_search"},
             {"type": "custom", "name": "apply_patch",
              "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}},
             {"type": "local_shell"},
             {"type": "namespace", "name": "mcp__clock", "description": "A clock.",
              "tools": [{"type": "function", **NOW, "parameters": {}}]}]

    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "--mode", "ar", "--chat-template", "hermes")

    def respond(self, **fields):
        # Between two braces there may be some white space.
        return self.server.post(RESPONSES, {"input": STORY, "max_output_tokens": 200, **GREEDY,
                                            **fields})

    def test_functions_beside_tools_of_other_types(self):
        status, headers, reply = self.respond(tools=self.TOOLS, tool_choice="required",
                                              parallel_tool_calls=False)
        self.assertEqual(status, 200, reply)
        self.assertIn("tools[1].type=web_search", headers["X-Foretoken-Ignored"])
        call, = reply["output"]
        self.assertEqual((call["type"], call["name"], json.loads(call["arguments"])),
                         ("function_call", "now", {}))
        reply = self.succeed(self.respond(tools=self.TOOLS, tool_choice={
            "type": "function", "namespace": "mcp__clock", "name": "now"}))
        call = reply["output"][0]
        self.assertEqual((call["namespace"], call["name"]), ("mcp__clock", "now"))
        # Both come back with their answers.
        items = [*STORY, call, {"type": "function_call_output", "call_id": call["call_id"],
                                "output": [{"type": "input_text", "text": "Noon."},
                                           {"type": "input_image", "image_url": "data:,"}]}]
        status, headers, reply = self.respond(input=items, tools=self.TOOLS[:1])
        self.assertEqual(status, 200, reply)
        self.assertEqual(headers["X-Foretoken-Ignored"], "input[2].output[1].type=input_image")
        for choice in ({"type": "web_search"}, {"type": "custom", "name": "apply_patch"}):
            self.assertEqual(self.respond(tools=self.TOOLS, tool_choice=choice)[0], 400)
        # With none of them the template is told of no tools.
        self.assertEqual(self.respond(tools=[{"type": "web_search"}])[0], 200)

    def test_a_tool_that_takes_a_text(self):
        tools = [{"type": "custom", "name": "note", "description": "Writes it down."}]
        body = {"tools": tools, "tool_choice": "required", "parallel_tool_calls": False,
                "max_output_tokens": 300}
        call, = self.succeed(self.respond(**body))["output"]
        self.assertEqual((call["type"], call["name"]), ("custom_tool_call", "note"))
        self.assertIsInstance(call["input"], str)
        items = [*STORY, call, {"type": "custom_tool_call_output", "call_id": call["call_id"],
                                "output": "Done."}]
        self.succeed(self.respond(input=items, tools=tools, max_output_tokens=4))

    def test_a_response_goes_on_with_an_earlier_one(self):
        first = self.succeed(self.respond(instructions="Be kind."))
        self.assertTrue(first["store"])
        question = [{"role": "user", "content": "And then?"}]
        second = self.succeed(self.respond(input=question, previous_response_id=first["id"]))
        self.assertEqual(second["previous_response_id"], first["id"])
        whole = self.succeed(self.respond(input=[*STORY, *first["output"], *question]))
        self.assertEqual(responses_text(second), responses_text(whole))
        self.assertEqual(second["usage"]["input_tokens"], whole["usage"]["input_tokens"])
        third = self.succeed(self.respond(input="More.", previous_response_id=second["id"],
                                          stream=False))
        self.assertGreater(third["usage"]["input_tokens"], second["usage"]["input_tokens"])
        path = f"{RESPONSES}/{first['id']}"
        self.assertEqual(self.succeed(self.server.get(path)), first)
        gone = self.succeed(self.server.request("DELETE", path))
        self.assertEqual(gone, {"id": first["id"], "object": "response", "deleted": True})
        self.assertEqual(self.server.get(path)[0], 404)
        status, _, body = self.respond(previous_response_id=first["id"])
        self.assertEqual((status, body["error"]["param"], body["error"]["code"]),
                         (400, "previous_response_id", "previous_response_not_found"))
        # What followed it is still there.
        self.succeed(self.respond(input="Why?", previous_response_id=second["id"]))
        unkept = self.succeed(self.respond(store=False))
        self.assertFalse(unkept["store"])
        self.assertEqual(self.server.get(f"{RESPONSES}/{unkept['id']}")[0], 404)
        self.assertEqual(self.server.request("POST", path, {})[0], 405)

    def test_parts_of_answers_may_be_named(self):
        tools = [{"type": "function", **NOW}]
        first = self.succeed(self.respond(tools=tools, tool_choice="required",
                                          parallel_tool_calls=False))
        call, = first["output"]
        named = {"type": "item_reference", "id": call["id"]}
        answer = {"type": "function_call_output", "call_id": call["call_id"], "output": "Noon."}
        second = self.succeed(self.respond(input=[*STORY, named, answer], tools=tools,
                                           max_output_tokens=8))
        whole = self.succeed(self.respond(input=[*STORY, call, answer], tools=tools,
                                          max_output_tokens=8))
        self.assertEqual(responses_text(second), responses_text(whole))
        self.assertEqual(second["usage"]["input_tokens"], whole["usage"]["input_tokens"])
        # The rest of a longer conversation names what an answer to it was.
        said, = second["output"]
        items = [*STORY, named, answer, {"type": "item_reference", "id": said["id"]}]
        self.succeed(self.respond(input=[*items, {"role": "user", "content": "And then?"}],
                                  max_output_tokens=8))
        self.succeed(self.server.request("DELETE", f"{RESPONSES}/{second['id']}"))
        status, _, body = self.respond(input=items)
        self.assertEqual((status, body["error"]["param"]), (400, f"input[{len(STORY) + 2}].id"))
        self.assertIn(f"Item with id '{said['id']}' not found", body["error"]["message"])

    def test_calls_are_remembered_with_their_response(self):
        tools = [{"type": "function", **NOW}]
        first = self.succeed(self.respond(tools=tools, tool_choice="required",
                                          parallel_tool_calls=False))
        call, = first["output"]
        answer = [{"type": "function_call_output", "call_id": call["call_id"], "output": "Noon."}]
        second = self.succeed(self.respond(input=answer, tools=tools,
                                           previous_response_id=first["id"]))
        whole = self.succeed(self.respond(input=[*STORY, call, *answer], tools=tools))
        self.assertEqual(second["usage"]["input_tokens"], whole["usage"]["input_tokens"])


class Keys(unittest.TestCase):
    def test_responses_are_kept_for_the_key_that_asked(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("alice k-1\nbob k-2\n")
            file.flush()
            with Serving(PROGRAM, "--mode", "ar", "--api-key-file", file.name) as server:
                alice, bob = ({"Authorization": f"Bearer {key}"} for key in ("k-1", "k-2"))
                body = {"input": STORY, "max_output_tokens": 4}
                response = server.post(RESPONSES, body, headers=alice)[2]
                path = f"{RESPONSES}/{response['id']}"
                after = {**body, "previous_response_id": response["id"]}
                self.assertEqual(server.post(RESPONSES, after, headers=bob)[0], 400)
                item, = response["output"]
                named = {**body, "input": [*STORY, {"type": "item_reference", "id": item["id"]}]}
                self.assertEqual(server.post(RESPONSES, named, headers=bob)[0], 400)
                self.assertEqual(server.post(RESPONSES, named, headers=alice)[0], 200)
                self.assertEqual(server.get(path, headers=bob)[0], 404)
                self.assertEqual(server.request("DELETE", path, headers=bob)[0], 404)
                self.assertEqual(server.get(path)[0], 401)
                self.assertEqual(server.get(path, headers=alice)[2], response)
                self.assertEqual(server.post(RESPONSES, after, headers=alice)[0], 200)


class OldFunctions(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "--mode", "ar", "--chat-template", "hermes")

    def test_they_are_called_in_their_form(self):
        body = {"messages": STORY, "functions": [NOW], "function_call": {"name": "now"},
                "max_tokens": 200, **GREEDY}
        choice = self.succeed(self.server.post(CHAT, body))["choices"][0]
        self.assertEqual(choice["finish_reason"], "function_call")
        # One that says nothing of its parameters takes none.
        call = choice["message"]["function_call"]
        self.assertEqual((call["name"], json.loads(call["arguments"])), ("now", {}))
        connection, response = self.server.stream(CHAT, body)
        parts = list(events(response))
        connection.close()
        calls = [part["choices"][0]["delta"]["function_call"] for part in parts
                 if "function_call" in part["choices"][0]["delta"]]
        self.assertEqual(calls[0]["name"], "now")
        self.assertEqual("".join(part["arguments"] for part in calls), call["arguments"])
        self.assertEqual(parts[-1]["choices"][0]["finish_reason"], "function_call")
        messages = [*STORY, choice["message"],
                    {"role": "function", "name": "now", "content": "Noon."}]
        self.succeed(self.server.post(CHAT, {"messages": messages, "functions": [NOW],
                                             "max_tokens": 4}))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
