"""Chats with which every chat template of the tests is rendered, as variables of templates."""

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather \"now\" <b>é</b>",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "A city,\ne.g. \"Oslo\""},
                "unit": {"type": "string", "enum": ["celsius", "kelvin"], "default": "celsius"},
                "days": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
                "maybe": {"type": ["string", "null"], "default": 1.50},
                "nested": {"type": "object", "properties": {"a": {"type": "number"}, "b": {}},
                           "required": ["a"]},
                "either": {"oneOf": [{"type": "boolean"}, {"type": "array"}]},
            },
            "required": ["place"],
        },
    },
}
NOTHING = {"type": "function",
           "function": {"name": "nothing", "description": "", "parameters": {"type": "object",
                                                                             "properties": {}}}}

USER = {"role": "user", "content": "Hi there"}
ASSISTANT = {"role": "assistant", "content": "Hello! How can I help?"}
SYSTEM = {"role": "system", "content": "Be short."}


def call(identity, arguments):
    return {"id": identity, "type": "function",
            "function": {"name": "weather", "arguments": arguments}}


def result(identity, content):
    return {"role": "tool", "name": "weather", "tool_call_id": identity, "content": content}


def said(content, **more):
    return {"role": "assistant", "content": content, **more}


CHATS = [
    [],
    [USER],
    [SYSTEM, USER],
    [USER, ASSISTANT, USER],
    [SYSTEM, USER, ASSISTANT, USER],
    [SYSTEM, USER, ASSISTANT],
    [SYSTEM, *[USER, ASSISTANT] * 5, USER],
    [{"role": "user", "content": ""}],
    [{"role": "system", "content": ""}, {"role": "user", "content": "  padded \n"}],
    [{"role": "user", "content": "naïve Straße 日本語 😀\u200d \u2028 <|im_end|> </s> {{ x }} \"q\" \\n\n\tq"}],
    [USER, said("<think>\nwell\n</think>\n\nYes"), {"role": "user", "content": "More"}],
    [USER, said("Yes", reasoning_content="because"), USER, said("No", reasoning_content="\nso\n")],
    [SYSTEM, USER, said("", tool_calls=[call("call_1234", {"place": "Oslo", "days": [1, 2],
                                                          "x": 1.5, "n": None, "b": True})]),
     result("call_1234", "{\"t\": 20}"), said("20 degrees"), USER],
    [USER, said(None, tool_calls=[call("abcdefghi", {"place": "é"}), call("jklmnopqr", {})]),
     result("abcdefghi", "sun"), result("jklmnopqr", "rain")],
    [USER, {"role": "assistant", "tool_calls": [call("short", "{\"place\": \"Oslo\"}")]},
     result("short", "x")],
    [{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": " two"}]}],
    [{"role": "user", "content": [{"type": "image", "image": "x"}, {"type": "text", "text": "this?"}]}],
    [USER, USER],
    [ASSISTANT],
    [{"role": "wizard", "content": "?"}],
]

VARIABLES = [
    {},
    {"add_generation_prompt": False},
    {"tools": [WEATHER, NOTHING]},
    {"tools": [NOTHING], "enable_thinking": False, "reasoning_effort": "high"},
    {"documents": [{"title": "T", "text": "body"}, {"text": "b", "Title": "a longer one"}],
     "enable_thinking": True},
]


def inputs():
    """The variables of every rendering."""
    common = {"tools": None, "documents": None, "add_generation_prompt": True, "bos_token": "<s>",
              "eos_token": "</s>"}
    return [{"messages": chat, **common, **variables} for chat in CHATS for variables in VARIABLES]
