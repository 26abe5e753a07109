#!/usr/bin/env python3
"""Streams a chat with nothing but Python's standard library: stream.py [URL] [PROMPT]

Start `foretoken serve` first (./run serve)."""

import json
import sys
import urllib.request

url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
prompt = sys.argv[2] if len(sys.argv) > 2 else "Tell me a story about a brave dog."

request = urllib.request.Request(
    url + "/v1/chat/completions",
    json.dumps({
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": 200, "temperature": 0.8, "seed": 7,
        "stream": True, "stream_options": {"include_usage": True},
    }).encode(),
    {"Content-Type": "application/json"})

usage = {}
with urllib.request.urlopen(request) as response:
    for line in response:
        if not line.startswith(b"data: ") or line == b"data: [DONE]\n":
            continue
        event = json.loads(line[len(b"data: "):])
        for choice in event["choices"]:
            print(choice["delta"].get("content", ""), end="", flush=True)
        usage = event.get("usage") or usage
print(f"\n\n{usage['completion_tokens']} tokens in {usage['rounds']} rounds "
      f"({usage['acceptance_length']} tokens per round), mode {usage['mode']}")
