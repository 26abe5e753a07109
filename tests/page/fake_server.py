#!/usr/bin/env python3
"""A server with the API that the page uses, whose answers are canned: fake_server.py [PORT] [KEY].

Serves the page from the source tree, so that it can be worked on without building anything: reload
and see. Answers come at a pace that can be watched, in rounds whose proposals, hits and misses are
drawn from a fixed seed. What a prompt contains decides how it is answered: "[refuse]" with HTTP
429, "[break]" with an error in mid-stream, "[cut]" with a stream that just ends, "[drop]" with a
connection that breaks, "[differ]" with a mode that departs from the others, "[markup]" with HTML,
"[long]" with many tokens, "[markdown]" with a bit of everything that Markdown has, and a prompt
that begins with "[echo]" with the rest of it.
"""

import http.server
import json
import pathlib
import random
import re
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "apps" / "foretoken" / "server" / "page"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
MODES = ["ar", "sd", "ssd", "sd2", "ngram", "sssd", "auto"]
DRAFTS = {"sd": "demo-draft", "ssd": "demo-draft", "sd2": "demo-eagle3"}
ROUND_MS = {"ar": 9.0, "sd": 14.0, "ssd": 10.0, "sd2": 12.0, "ngram": 9.6, "sssd": 10.2, "auto": 10.0}
LOOKAHEAD = 6
STORY = (
    "Once upon a time, there was a little dragon named Milo. Milo lived in a warm cave on a high "
    "hill.\nHe had green wings and a long tail, but he was sad because he could not make fire. "
    "“Do not worry,” said his mom. “Your fire will come when you need it.”\n\nOne cold night, the "
    "snow fell and the fire in the village went out. The people were shivering 😀. Milo flew down "
    "the hill, took a deep breath, and out came a small, bright flame! The people clapped and "
    "cheered, and Milo was not sad any more.")

MARKDOWN = """\
## How to bake bread

You need **flour**, *water*, salt and a little `yeast`. ~~Sugar~~ is not needed.
Let it rest, then see [the long story](https://example.org/bread?a=1&b=2 "more") or https://example.org/x.

1. Mix everything in a bowl:
   - 500 g flour
   - 350 ml water
2. Wait for an hour.
3. Bake at 230 °C.

- [x] buy flour
- [ ] clean the oven

> Patience is the ingredient
> that nobody lists.

```python
def knead(dough, minutes=10):
    # Turns and folds it until it is smooth.
    for minute in range(minutes):
        dough = dough.fold().turn(90)  # A line that is long enough to need a scroll bar of its own on a phone.
    return dough if dough.smooth else knead(dough, 5)
```

| Flour | Water | Time |
|:------|------:|:----:|
| wheat | 70 %  | 1 h  |
| rye   | 85 %  | 16 h |

---

That is all. Enjoy it!"""


def security_policy():
    header = (PAGE / "page.h").read_text(encoding="utf-8")
    definition = header[header.index("kPageSecurityPolicy"):]
    return "".join(re.findall(r'"([^"]*)"', definition[:definition.index(";\n")]))


def tokens_of(text):
    return re.findall(r" ?\w+|\s+|[^\w\s]", text)


def token_id(text):
    return sum(byte << (8 * (i % 3)) for i, byte in enumerate(text.encode()))


def rounds_of(tokens, mode, seed):
    """What `speculation_trace` would say of each round."""
    draw = random.Random(f"{mode} {seed}")
    at = 0
    number = 0
    speculates = mode in ("ssd", "auto")
    hit = None  # Whether the lookup after the round before was a hit; none: there was none.
    while at < len(tokens):
        number += 1
        lookahead = min(LOOKAHEAD, len(tokens) - at - 1)
        source = {"ar": "none", "sd": "draft", "sd2": "draft2", "ngram": "ngram",
                  "sssd": "retrieval"}.get(mode, "cache")
        if hit is False:
            source = "jit"
        if mode == "ar" or number == 1 or (mode == "ngram" and draw.random() < 0.5):
            lookahead, source = 0, "none"  # The first round is the prompt's own pass.
        accepted = 0
        while accepted < lookahead and draw.random() < 0.76:
            accepted += 1
        guesses = draw.sample([" the", " a", " was", " to", " and", " he"], 6)
        proposed = tokens[at:at + accepted] + guesses[:lookahead - accepted]
        origin = "fallback" if hit is False else "accepted"
        emitted = [{"id": token_id(text), "text": text, "origin": origin}
                   for text in tokens[at:at + accepted]]
        bonus = tokens[at + accepted]
        emitted.append({"id": token_id(bonus), "text": bonus, "origin": "bonus"})
        at += len(emitted)
        hit = draw.random() < 0.8 if speculates and at < len(tokens) else None
        yield {"round": number, "mode": mode, "source": source, "proposed": proposed,
               "accepted": accepted, "hit": hit, "ms": ROUND_MS[mode] * draw.uniform(0.9, 1.15),
               "tokens": emitted}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api_key = ""
    seen = []  # (path, body) of every POST.
    polls = 0  # Requests for /stats.
    pace = 1.0  # How long a round takes, relative to what it claims.
    failing = False  # Whether every request is refused.
    names = ["demo-target"]  # The models' names.

    def log_message(self, *arguments):
        pass

    def reply(self, status, content, kind="application/json", headers=()):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, message):
        self.reply(status, {"error": {"message": message, "type": "invalid_request_error",
                                      "param": None, "code": None}})

    def authorised(self):
        if not self.api_key or self.headers.get("Authorization") == f"Bearer {self.api_key}":
            return True
        self.refuse(401, "this server wants its API key in the header 'Authorization: Bearer KEY'")
        return False

    def do_GET(self):
        path = self.path.split("?")[0]
        name = "index.html" if path == "/" else path.removeprefix("/page/")
        file = PAGE / name
        if (path == "/" or path.startswith("/page/")) and ".." not in name and file.is_file():
            self.reply(200, file.read_bytes(), TYPES[file.suffix],
                       [("Content-Security-Policy", security_policy())])
        elif path in ("/props", "/stats", "/v1/models"):
            if self.authorised():
                self.reply(200, getattr(self, path.rsplit("/", 1)[-1])())
        else:
            self.refuse(404, f"there is no {path} here")

    def props(self):
        model = urllib.parse.unquote(self.path.partition("?model=")[2]) or self.names[0]
        return {"version": "fake", "model": model, "context": 512, "chat": True,
                "modes": MODES, "drafts": DRAFTS, "speculation": {"mode": "ssd", "lookahead": LOOKAHEAD}}

    def models(self):
        return {"object": "list", "data": [{"id": name, "object": "model"} for name in self.names]}

    def stats(self):
        Handler.polls += 1
        now = time.monotonic()
        wave = random.Random(int(now))
        modes = {mode: {"requests": 3 * i + 1, "rounds": 900 + 400 * i, "tokens": 1200 + 1900 * i}
                 for i, mode in enumerate(MODES)}
        return {
            "tokens_per_second": 640 + 120 * wave.random(), "running": 3, "waiting": 0,
            "kv": {"used": 214, "cached": 120, "free": 690, "total": 1024, "usage": 0.209},
            "acceptance": {"drafts": 4100, "draft_tokens": 21800, "accepted_tokens": 14100,
                           "rate": 0.647, "length": 3.41,
                           "by_position": [0.86, 0.74, 0.63, 0.55, 0.47, 0.41]},
            "hits": {"lookups": 3200, "rate": 0.787,
                     "by_position": [{"position": k, "lookups": 500 - 40 * k, "rate": rate}
                                     for k, rate in enumerate([0.71, 0.72, 0.70, 0.74, 0.73, 0.75, 0.93])]},
            "round_time": {"target_s": 31.2, "wait_s": 4.4, "host_s": 1.9},
            "modes": modes,
            "tokens_by_origin": {"accepted": 12100, "fallback": 2000, "bonus": 7900},
            "requests": {"stop": 12, "length": 40},
        }

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.authorised():
            return
        Handler.seen.append((self.path, body))
        if self.path != "/v1/chat/completions":
            self.refuse(404, f"there is no {self.path} here")
            return
        self.close_connection = True
        prompt = body["messages"][-1]["content"]
        if self.failing or "[refuse]" in prompt:
            self.refuse(429, "the queue of 64 requests is full; try again in a second")
            return
        try:
            self.stream(prompt, body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # The page stopped the answer.

    def event(self, **members):
        data = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "demo-target",
                "choices": [], **members}
        self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
        self.wfile.flush()

    def stream(self, prompt, body):
        mode = body.get("speculative", {}).get("mode", "ssd")
        story = STORY.replace("green", "red") if "[differ]" in prompt and mode == "sd" else STORY
        if "[markup]" in prompt:
            story = "<b>Bold</b> <img src=x onerror=alert(1)> & <script>alert(2)</script>" + story
        if "[markdown]" in prompt:
            story = MARKDOWN
        if prompt.startswith("[echo]"):
            story = prompt.removeprefix("[echo]").lstrip(" ")
        whole = tokens_of(story * (12 if "[long]" in prompt else 1))
        tokens = whole[:body.get("max_tokens", len(whole))]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if "[drop]" in prompt:
            self.send_header("Content-Length", "1000000")  # Which never come.
        self.end_headers()

        def choice(delta, finish=None):
            return [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]

        self.event(choices=choice({"role": "assistant", "content": ""}))
        usage = {"prompt_tokens": 21, "completion_tokens": 0, "mode": mode, "rounds": 0, "draft_n": 0,
                 "draft_n_accepted": 0, "hit_rate": None}
        lookups = hits = 0
        decode_ms = 0.0
        for trace in rounds_of(tokens, mode, body["seed"]):
            time.sleep(self.pace * trace["ms"] / 1000)
            text = "".join(token["text"] for token in trace["tokens"])
            self.event(choices=choice({"content": text}),
                       **({"speculation": trace} if body.get("speculation_trace") else {}))
            usage["rounds"] += 1
            usage["completion_tokens"] += len(trace["tokens"])
            usage["draft_n"] += len(trace["proposed"])
            usage["draft_n_accepted"] += trace["accepted"]
            lookups += trace["hit"] is not None
            hits += trace["hit"] is True
            decode_ms += trace["ms"] if trace["round"] > 1 else 0
            if trace["round"] == 5 and ("[cut]" in prompt or "[drop]" in prompt):
                return
            if trace["round"] == 5 and "[break]" in prompt:
                self.wfile.write(b'data: {"error":{"message":"the engine lost its model"}}\n\n')
                return
        usage["hit_rate"] = hits / lookups if lookups else None
        timings = {"predicted_n": usage["completion_tokens"], "predicted_ms": decode_ms,
                   "predicted_per_second": 1000 * (usage["completion_tokens"] - 1) /
                   (decode_ms or 1)}
        finish = "stop" if len(tokens) == len(whole) else "length"
        self.event(choices=choice({}, finish), timings=timings)
        self.event(usage=usage, timings=timings)
        self.wfile.write(b"data: [DONE]\n\n")


def start(port=0, api_key="", pace=1.0):
    """A listening server; its port is server.server_address[1]. The caller runs serve_forever."""
    handler = type("ThisHandler", (Handler,), {"api_key": api_key, "pace": pace})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    return server


if __name__ == "__main__":
    fake = start(int(sys.argv[1]) if len(sys.argv) > 1 else 8099, *sys.argv[2:3])
    print(f"http://127.0.0.1:{fake.server_address[1]}/", flush=True)
    fake.serve_forever()
