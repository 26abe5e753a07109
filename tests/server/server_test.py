#!/usr/bin/env python3
"""The server's API and its behaviour when things go wrong: server_test.py PROGRAM [TEST]..."""

import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from serving import Serving, ServerTest, events

PROGRAM = ""
MODES = ("ar", "ngram", "ensemble", "sd", "ssd")


class Shared(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "-np", 8, "--queue", 16)

    def refuse(self, answer, status, param=None, code=None, saying=""):
        got, _, body = answer
        self.assertEqual(got, status, body)
        error = body["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertIn(saying, error["message"])
        self.assertNotIn("\n", error["message"])
        self.assertEqual(error["param"], param, error)
        if code is not None:
            self.assertEqual(error["code"], code)


class Api(Shared):
    def test_chat(self):
        body = self.succeed(self.server.chat(temperature=0, speculative={"mode": "ssd"}))
        self.assertEqual(body["object"], "chat.completion")
        self.assertEqual(body["model"], "demo-target")
        choice = body["choices"][0]
        self.assertEqual(choice["message"]["role"], "assistant")
        self.assertGreater(len(choice["message"]["content"]), 20)
        self.assertIn(choice["finish_reason"], ("stop", "length"))
        usage = body["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertEqual(usage["mode"], "ssd")
        self.assertGreater(usage["draft_n_accepted"], 0)
        self.assertAlmostEqual(usage["acceptance_length"],
                               usage["completion_tokens"] / usage["rounds"], places=2)
        self.assertEqual(body["timings"]["predicted_n"], usage["completion_tokens"])
        self.assertGreater(body["timings"]["predicted_per_second"], 0)

    def test_every_mode_gives_the_same_text(self):
        for options in ({"temperature": 0}, {"temperature": 1, "seed": 7},
                        {"temperature": 0.8, "seed": 3, "top_k": 20, "top_p": 0.9, "min_p": 0.02,
                         "repetition_penalty": 1.1, "frequency_penalty": 0.2,
                         "presence_penalty": 0.1, "logit_bias": {"100": -5}}):
            texts = set()
            for mode in MODES:
                body = self.succeed(self.server.complete(max_tokens=48, **options,
                                                         speculative={"mode": mode}))
                self.assertEqual(body["usage"]["mode"], mode)
                texts.add(body["choices"][0]["text"])
            for wish in ({"lookahead": 3}, {"fanout": 5}, {"lookahead": 2, "fanout": [3, 0, 2]},
                         {"fallback": "ngram"}, {"fallback": "none"}, {"off": True},
                         {"mode": "auto"}):
                body = self.succeed(self.server.complete(max_tokens=48, **options,
                                                         speculative=wish))
                texts.add(body["choices"][0]["text"])
            self.assertEqual(len(texts), 1, texts)

    def test_a_stream_says_what_the_whole_reply_says(self):
        fields = {"messages": [{"role": "user", "content": "Tell me about a cat."}],
                  "max_tokens": 60, "temperature": 0.9, "seed": 11, "n": 2}
        whole = self.succeed(self.server.post("/v1/chat/completions", fields))
        connection, response = self.server.stream(
            "/v1/chat/completions", {**fields, "stream_options": {"include_usage": True}})
        self.assertTrue(response.headers["Content-Type"].startswith("text/event-stream"))
        texts = ["", ""]
        finish = [None, None]
        roles = [0, 0]
        usage = None
        for event in events(response):
            self.assertEqual(event["object"], "chat.completion.chunk")
            if not event["choices"]:
                usage = event["usage"]
                continue
            self.assertIsNone(event["usage"])
            choice = event["choices"][0]
            index = choice["index"]
            roles[index] += choice["delta"].get("role") == "assistant"
            texts[index] += choice["delta"].get("content", "")
            finish[index] = choice["finish_reason"] or finish[index]
        connection.close()
        self.assertEqual(texts, [c["message"]["content"] for c in whole["choices"]])
        self.assertEqual(finish, [c["finish_reason"] for c in whole["choices"]])
        self.assertEqual(roles, [1, 1])
        self.assertNotEqual(texts[0], texts[1])
        self.assertEqual(usage["completion_tokens"], whole["usage"]["completion_tokens"])
        self.assertEqual(usage["seed"], 11)

    def test_choices_have_the_seeds_after_the_first(self):
        both = self.succeed(self.server.complete(seed=5, n=2, max_tokens=24))["choices"]
        second = self.succeed(self.server.complete(seed=6, max_tokens=24))["choices"][0]
        self.assertEqual(both[1]["text"], second["text"])

    def test_without_a_seed_it_is_random_and_told(self):
        first = self.succeed(self.server.complete(max_tokens=24))
        again = self.succeed(self.server.complete(max_tokens=24, seed=first["usage"]["seed"]))
        self.assertEqual(first["choices"][0]["text"], again["choices"][0]["text"])
        other = self.succeed(self.server.complete(max_tokens=24))
        self.assertNotEqual(first["usage"]["seed"], other["usage"]["seed"])

    def test_trace_shows_every_round(self):
        for mode in MODES:
            connection, response = self.server.stream(
                "/v1/completions", {"prompt": "Once upon a time", "max_tokens": 40,
                                    "temperature": 0, "speculation_trace": True,
                                    "speculative": {"mode": mode}})
            rounds = []
            text = ""
            for event in events(response):
                text += event["choices"][0]["text"]
                if "speculation" in event:
                    rounds.append(event["speculation"])
            connection.close()
            self.assertEqual([r["round"] for r in rounds], list(range(1, len(rounds) + 1)))
            tokens = [t for r in rounds for t in r["tokens"]]
            self.assertEqual(len(tokens), 40)
            self.assertEqual("".join(t["text"] for t in tokens), text)
            for trace in rounds:
                self.assertEqual(trace["mode"], mode)
                self.assertEqual(trace["source"] == "none", not trace["proposed"])
                self.assertLessEqual(trace["accepted"], len(trace["proposed"]))
                origins = [t["origin"] for t in trace["tokens"]]
                self.assertLessEqual(len(origins), trace["accepted"] + 1)
                self.assertNotIn("bonus", origins[:-1])
            if mode == "ar":
                self.assertEqual(len(rounds), 40)
            else:
                self.assertLess(len(rounds), 40)
            if mode == "ssd":
                self.assertIn(True, [r["hit"] for r in rounds])
            else:
                self.assertEqual({r["hit"] for r in rounds}, {None})

    def test_logprobs(self):
        body = self.succeed(self.server.chat(temperature=0, logprobs=True, top_logprobs=3,
                                             max_tokens=8))
        content = body["choices"][0]["logprobs"]["content"]
        self.assertEqual(len(content), body["usage"]["completion_tokens"])
        for entry in content:
            self.assertEqual(len(entry["top_logprobs"]), 3)
            self.assertEqual(entry["token"], entry["top_logprobs"][0]["token"])  # Greedy.
            self.assertLessEqual(entry["logprob"], 0)
        body = self.succeed(self.server.complete(temperature=0, logprobs=2, max_tokens=8))
        choice = body["choices"][0]
        self.assertEqual("".join(choice["logprobs"]["tokens"]), choice["text"])
        self.assertEqual(len(choice["logprobs"]["token_logprobs"]), 8)
        for token, offset in zip(choice["logprobs"]["tokens"], choice["logprobs"]["text_offset"]):
            self.assertEqual(choice["text"][offset:offset + len(token)], token)

    def test_stop_echo_and_lengths(self):
        full = self.succeed(self.server.complete(temperature=0, max_tokens=60))["choices"][0]
        self.assertEqual(full["finish_reason"], "length")
        self.assertIn("Lily", full["text"])
        cut = self.succeed(self.server.complete(temperature=0, max_tokens=60, stop="Lily"))
        self.assertEqual(cut["choices"][0]["text"], full["text"][:full["text"].index("Lily")])
        self.assertEqual(cut["choices"][0]["finish_reason"], "stop")
        echo = self.succeed(self.server.complete(temperature=0, max_tokens=60, echo=True))
        self.assertEqual(echo["choices"][0]["text"], "Once upon a time" + full["text"])
        default = self.succeed(self.server.complete(temperature=0, ignore_eos=True))
        self.assertEqual(default["usage"]["completion_tokens"], 16)

    def test_many_prompts(self):
        tokens = self.succeed(self.server.post(
            "/tokenize", {"content": "Once upon a time", "add_special": True}))["tokens"]
        body = self.succeed(self.server.post("/v1/completions", {
            "prompt": ["Once upon a time", tokens, "Tom had a dog"], "n": 2, "seed": 1,
            "max_tokens": 20}))
        texts = [choice["text"] for choice in body["choices"]]
        self.assertEqual([choice["index"] for choice in body["choices"]], list(range(6)))
        self.assertEqual(texts[0:2], texts[2:4])
        self.assertNotEqual(texts[0], texts[4])

    def test_tokenize_and_back(self):
        text = "Lily saw a big, red ball — été 🙂"
        body = self.succeed(self.server.post("/tokenize", {"content": text, "with_pieces": True}))
        self.assertEqual(body["count"], len(body["tokens"]))
        back = self.succeed(self.server.post(
            "/detokenize", {"tokens": [t["id"] for t in body["tokens"]]}))
        self.assertEqual(back["content"], text)

    def test_information(self):
        self.assertEqual(self.succeed(self.server.get("/health")), {"status": "ok"})
        models = self.succeed(self.server.get("/v1/models"))
        self.assertEqual([model["id"] for model in models["data"]], ["demo-target"])
        props = self.succeed(self.server.get("/props"))
        self.assertEqual(set(props["modes"]), {*MODES, "auto"})
        self.assertEqual(props["speculation"]["mode"], "auto")
        self.assertEqual(props["limits"]["batch"], 8)
        self.assertEqual(props["not_used"], [])
        self.assertEqual(props["recent_kv"]["total"], 0)  # No layer sees a window.
        self.assertEqual(self.succeed(self.server.get("/lora-adapters")), [])
        self.succeed(self.server.complete(max_tokens=50, temperature=0,
                                          speculative={"mode": "ssd"}))
        stats = self.server.wait_idle()
        self.assertGreater(stats["acceptance"]["rate"], 0)
        self.assertGreater(stats["hits"]["rate"], 0)
        self.assertGreater(stats["modes"]["ssd"]["tokens"], 0)
        self.succeed(self.server.complete(max_tokens=50, temperature=0,
                                          speculative={"mode": "auto"}))
        stats = self.server.wait_idle()
        self.assertNotIn("auto", stats["modes"])  # What it chose counts.
        self.assertEqual(sum(plan["rounds"] for plan in stats["plans"]),
                         sum(mode["rounds"] for mode in stats["modes"].values()))
        metrics = self.succeed(self.server.get("/metrics"))
        for name in ("foretoken_spec_decode_num_drafts_total",
                     "foretoken_spec_decode_num_draft_tokens_total",
                     "foretoken_spec_decode_num_accepted_tokens_total",
                     'foretoken_spec_decode_num_accepted_tokens_per_pos_total{model="demo-target",position="0"}',
                     'foretoken_round_seconds_total{model="demo-target",part="target"}',
                     'foretoken_requests_total{model="demo-target",outcome="stop"}',
                     'foretoken_time_to_first_token_seconds_bucket'):
            self.assertIn("\n" + name, metrics)


    def test_what_means_nothing_is_named(self):
        answer = self.server.chat(tempersture=1, model="gpt-5", stream_options=None)
        self.assertEqual(self.succeed(answer)["model"], "demo-target")
        self.assertEqual(answer[1]["X-Foretoken-Ignored"], "tempersture")
        self.assertNotIn("X-Foretoken-Ignored", self.server.chat()[1])
        connection, response = self.server.stream("/v1/completions", {"prompt": "a", "é,\n": 1})
        self.assertEqual(response.headers["X-Foretoken-Ignored"], "????")
        response.read()
        connection.close()

    def test_models(self):
        model = self.succeed(self.server.get("/v1/models"))["data"][0]
        self.assertLess(abs(model["created"] - time.time()), 3600)
        self.assertEqual(self.succeed(self.server.get("/v1/models/demo-target")), model)
        self.assertEqual(self.server.get("/v1/models/gpt-5")[0], 404)

    def test_logprobs_print_as_what_they_are(self):
        body = self.server.request("POST", "/v1/completions", headers={
            "Content-Type": "application/json"}, body=json.dumps(
                {"prompt": "Once", "temperature": 0, "logprobs": 1, "max_tokens": 20}))[2]
        for value in body["choices"][0]["logprobs"]["token_logprobs"]:
            self.assertLessEqual(len(repr(value)), 16)


class Refusals(Shared):
    def test_bad_requests(self):
        chat = self.server.chat
        self.refuse(chat(temperature=-1), 400, "temperature")
        self.refuse(chat(speculative={"mode": "trie"}), 400, "speculative.mode", saying="choose")
        self.refuse(chat(speculative={"lookahead": 60}), 400, "speculative.lookahead")
        self.refuse(chat(speculative={"lookahead": 2, "fanout": [1, 2]}), 400,
                    "speculative.fanout", saying="or 3")
        self.refuse(chat(speculative={"fanout": 0, "mode": "ssd"}), 400, "speculative.fanout")
        self.refuse(chat(logit_bias={"999999": 1}), 400, "logit_bias")
        self.refuse(self.server.complete([5, 999999]), 400, "prompt", saying="vocabulary")
        self.refuse(self.server.complete("word " * 20000), 400, "prompt",
                    "context_length_exceeded", "reduce the length")
        self.refuse(self.server.post("/v1/chat/completions", "{nope"), 400, saying="not valid JSON")
        self.refuse(self.server.post("/v1/chat/completions", ""), 400, saying="empty")
        self.refuse(self.server.post("/v1/chat/completions", "a=b", headers={
            "Content-Type": "text/plain", "Origin": "http://evil.example"}), 415)
        self.refuse(self.server.post("/v1/chat/completions", "a=b", headers={
            "Content-Type": "text/plain"}), 400, saying="not valid JSON")
        self.refuse(self.server.get("/v1/chat/completions"), 405, saying="POST only")
        self.refuse(self.server.get("/nothing"), 404, code="unknown_url")
        self.refuse(self.server.post("/tokenize", {}), 400, "content")
        self.refuse(self.server.post("/detokenize", {"tokens": [-1]}), 400, "tokens")

    def test_too_large_a_body(self):
        body = json.dumps({"prompt": "a" * 5_000_000})
        self.refuse(self.server.post("/v1/completions", body), 413, code="body_too_large")

    def test_nonsense_on_the_wire_ends_no_server(self):
        for bytes_sent in (b"\x00\xff\x00\r\n\r\n", b"GET\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n",
                           b"POST /v1/completions HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
                           b"POST /v1/completions HTTP/1.1\r\nContent-Length: 99\r\n\r\nshort",
                           b"A" * 100000):
            with socket.create_connection(("127.0.0.1", self.server.port), 10) as connection:
                try:
                    connection.sendall(bytes_sent)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(4096):
                        pass
                except ConnectionError:
                    pass
        self.succeed(self.server.get("/health"))

    def test_keep_alive_after_an_error(self):
        connection = self.server.connect()
        for body in ('{"n":0}', "nope", json.dumps({"prompt": "a", "max_tokens": 2})):
            connection.request("POST", "/v1/completions", body,
                               {"Content-Type": "application/json"})
            response = connection.getresponse()
            status = response.status
            response.read()
        self.assertEqual(status, 200)
        connection.close()

    def test_cors_is_off(self):
        headers = self.server.get("/health")[1]
        self.assertNotIn("Access-Control-Allow-Origin", headers)
        headers = self.server.request("OPTIONS", "/v1/chat/completions")[1]
        self.assertNotIn("Access-Control-Allow-Headers", headers)


class Faults(unittest.TestCase):
    """Tests with servers of their own."""

    ENDLESS = {"prompt": "Once upon a time", "max_tokens": 100000, "ignore_eos": True,
               "temperature": 1}

    def test_disconnects_free_everything(self):
        with Serving(PROGRAM, "-np", 4) as server:
            for stream in (True, False):
                connections = []
                for _ in range(8):
                    connection = socket.create_connection(("127.0.0.1", server.port), 20)
                    body = json.dumps({**self.ENDLESS, "stream": stream}).encode()
                    connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                                       b"Content-Type: application/json\r\nContent-Length: %d"
                                       b"\r\n\r\n%s" % (len(body), body))
                    connections.append(connection)
                time.sleep(0.2)
                for connection in connections:
                    connection.close()
                server.wait_idle()
            outcomes = server.get("/stats")[2]["requests"]
            self.assertGreater(outcomes["client_gone"] + outcomes["length"], 0)
            self.assertEqual(sum(outcomes.values()), 16)

    def test_full_queue(self):
        with Serving(PROGRAM, "-np", 1, "--queue", 2) as server:
            # A fast machine ends streams while others are opened: open until one is refused.
            streams = []
            while not streams or streams[-1][1].status == 200:
                self.assertLess(len(streams), 200)
                address = f"127.0.0.{2 + len(streams)}"  # Each a client of its own.
                streams.append(server.stream("/v1/completions", self.ENDLESS, address))
            refused = streams[-1][1]
            self.assertEqual(refused.status, 429)
            self.assertEqual(json.loads(refused.read())["error"]["code"], "queue_full")
            self.assertGreaterEqual(int(refused.headers["Retry-After"]), 1)
            self.assertEqual(server.complete(n=3)[0], 429)
            self.assertEqual(server.get("/health")[0], 200)
            for connection, response in streams:
                response.close()
                connection.close()
            server.wait_idle()
            # Streams that were still on their way to the engine count until it has seen them off.
            deadline = time.monotonic() + 20
            while (status := server.complete()[0]) == 429 and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual(status, 200)

    def test_one_client_cannot_take_every_place(self):
        with Serving(PROGRAM, "-np", 2, "--queue", 8) as server:
            # Only this machine calls: whoever does is one user.
            self.assertEqual(server.get("/props")[2]["limits"]["client_sequences"], 10)
        with Serving(PROGRAM, "-np", 2, "--queue", 8, "--client-limit", 5) as server:
            self.assertEqual(server.get("/props")[2]["limits"]["client_sequences"], 5)
            status, _, body = server.complete(n=6, max_tokens=4)
            self.assertEqual((status, body["error"]["param"]), (400, "n"))
            many = {**self.ENDLESS, "n": 4}
            connection, response = server.stream("/v1/completions", many, "127.0.0.2")
            self.assertEqual(response.status, 200)
            other, refused = server.stream("/v1/completions", many, "127.0.0.2")
            self.assertEqual(refused.status, 429)
            self.assertEqual(json.loads(refused.read())["error"]["code"], "client_limit")
            self.assertGreaterEqual(int(refused.headers["Retry-After"]), 1)
            other.close()
            self.assertEqual(server.complete(max_tokens=4)[0], 200)  # From another address.
            response.close()
            connection.close()

    def test_a_large_request_keeps_nobody_out(self):
        with Serving(PROGRAM, "-np", 4) as server:
            connection, response = server.stream("/v1/completions", {**self.ENDLESS, "n": 32})
            while server.get("/stats")[2]["waiting"] < 20:
                time.sleep(0.01)
            begin = time.monotonic()
            status, _, body = server.complete(max_tokens=8, temperature=0)
            self.assertEqual(status, 200)
            self.assertLess(time.monotonic() - begin, 1)
            self.assertGreater(server.get("/stats")[2]["waiting"], 10)
            connection.close()
            server.wait_idle()
            alone = server.complete(max_tokens=8, temperature=0)[2]["choices"][0]["text"]
            self.assertEqual(body["choices"][0]["text"], alone)

    def test_tokens_of_a_request_are_bounded(self):
        with Serving(PROGRAM, "--max-request-tokens", 1000) as server:
            status, _, body = server.complete(n=10, max_tokens=200)
            self.assertEqual((status, body["error"]["param"]), (400, "max_tokens"))
            self.assertIn("1000", body["error"]["message"])
            self.assertEqual(server.complete(n=4, max_tokens=200)[0], 200)

    def test_timeouts(self):
        with Serving(PROGRAM, "--request-timeout", 0.05, "-np", 1) as server:
            status, _, body = server.post("/v1/completions", {**self.ENDLESS, "n": 8})
            self.assertEqual(status, 504, body)
            self.assertEqual(body["error"]["type"], "timeout_error")
            connection, response = server.stream("/v1/completions", {**self.ENDLESS, "n": 8})
            last = list(events(response))[-1]
            self.assertEqual(last["error"]["code"], "request_timeout")
            connection.close()
            server.wait_idle()

    def test_api_key(self):
        with tempfile.TemporaryDirectory() as folder:
            key_file = pathlib.Path(folder) / "key"
            key_file.write_text("secret\n")
            with Serving(PROGRAM, "--api-key-file", key_file, "--cors", "http://a.example") as server:
                self.assertEqual(server.get("/health")[0], 200)
                for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"},
                                {"Authorization": "Bearer secret2"}):
                    for path in ("/v1/models", "/metrics", "/stats", "/props"):
                        status, reply, body = server.get(path, headers=headers)
                        self.assertEqual(status, 401)
                        self.assertEqual(reply["WWW-Authenticate"], "Bearer")
                        self.assertEqual(body["error"]["code"], "invalid_api_key")
                good = {"Authorization": "Bearer secret"}
                status, reply, _ = server.get("/v1/models", headers=good)
                self.assertEqual(status, 200)
                self.assertEqual(reply["Access-Control-Allow-Origin"], "http://a.example")
                body = {"prompt": "a", "max_tokens": 2}
                self.assertEqual(server.post("/v1/completions", body, headers=good)[0], 200)
                self.assertEqual(server.post("/v1/completions", body)[0], 401)
                reply = server.request("OPTIONS", "/v1/completions")[1]
                self.assertIn("Authorization", reply["Access-Control-Allow-Headers"])

    def test_shutdown_lets_streams_finish(self):
        server = Serving(PROGRAM, "--shutdown-seconds", 30, "-np", 1)
        # More than one batch, so that some still wait when the end is called.
        streams = [server.stream("/v1/completions",
                                 {**self.ENDLESS, "max_tokens": 400, "seed": 1})
                   for _ in range(4)]
        ender = threading.Thread(target=server.end)
        ender.start()
        texts = set()
        for connection, response in streams:
            chunks = list(events(response))
            texts.add("".join(c["choices"][0]["text"] for c in chunks))
            self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], "length")
            connection.close()
        ender.join()
        self.assertEqual(len(texts), 1)
        self.assertEqual(server.process.returncode, 0, server.errors)

    def test_shutdown_ends_what_does_not_finish(self):
        server = Serving(PROGRAM, "--shutdown-seconds", 2, "-np", 1)
        connection, response = server.stream("/v1/completions", {**self.ENDLESS, "n": 60})
        whole = []
        waiter = threading.Thread(target=lambda: whole.append(
            server.post("/v1/completions", {**self.ENDLESS, "n": 60})))
        waiter.start()
        while server.get("/stats")[2]["waiting"] < 100:
            time.sleep(0.01)
        ender = threading.Thread(target=server.end)
        ender.start()
        refused = 200
        while refused == 200 and ender.is_alive():
            try:
                refused = server.get("/health")[0]
            except OSError:
                break
        self.assertEqual(refused, 503)
        last = list(events(response))[-1]
        self.assertEqual(last["error"]["code"], "shutting_down")
        connection.close()
        waiter.join()
        ender.join()
        self.assertEqual(whole[0][0], 503)
        self.assertEqual(server.process.returncode, 0, server.errors)

    # A text has ever more readings, and none of them may end before the '!'.
    AMBIGUOUS = 'root ::= x "!"\nx ::= [a-zA-Z ,.] x? x?'

    def test_a_grammar_too_ambiguous_ends_its_own_request(self):
        with Serving(PROGRAM, "-np", 4) as server:
            body = {"prompt": "Once", "grammar": self.AMBIGUOUS, "max_tokens": 200, "seed": 1}
            status, _, reply = server.post("/v1/completions", body)
            self.assertEqual(status, 400, reply)
            self.assertEqual(reply["error"]["code"], "grammar_too_ambiguous")
            self.assertEqual(reply["error"]["param"], "grammar")
            self.assertIn("the grammar is too ambiguous", reply["error"]["message"])
            connection, response = server.stream("/v1/completions", {**body, "stream": True})
            chunks = list(events(response))
            self.assertGreater(len(chunks), 1)
            self.assertEqual(chunks[-1]["error"]["code"], "grammar_too_ambiguous")
            connection.close()
            server.wait_idle()
            self.assertEqual(server.complete()[0], 200)

    def test_choices_go_on_beside_one_whose_grammar_is_too_ambiguous(self):
        with Serving(PROGRAM, "-np", 4) as server:
            end = server.post("/tokenize", {"content": "a!"})[2]["tokens"][-1]
            body = {"prompt": "Once", "grammar": self.AMBIGUOUS, "max_tokens": 200, "seed": 1, "n": 4,
                    "logit_bias": {str(end): 6}}  # Some end before they are too ambiguous.
            status, _, reply = server.post("/v1/completions", body)
            self.assertEqual(status, 200, reply)
            ends = [choice["finish_reason"] for choice in reply["choices"]]
            self.assertEqual(set(ends), {"stop", "length"})
            for choice in reply["choices"]:
                self.assertEqual(choice["text"].endswith("!"), choice["finish_reason"] == "stop")
            self.assertLess(reply["usage"]["completion_tokens"], 200)  # No choice has 'max_tokens'.
            connection, response = server.stream("/v1/completions", body)
            chunks = [chunk["choices"][0] for chunk in events(response)]
            connection.close()
            ended = {chunk["index"]: chunk["finish_reason"] for chunk in chunks if chunk["finish_reason"]}
            self.assertEqual([ended[i] for i in range(4)], ends)
            self.assertIn('requests_total{model="demo-target",outcome="length"} 2', server.get("/metrics")[2])

    def test_shutdown_beside_a_costly_grammar(self):
        server = Serving(PROGRAM, "--shutdown-seconds", 1, "-np", 8)
        body = {"prompt": "Once", "max_tokens": 500, "n": 8, "seed": 1}
        answers = []
        waiters = []
        for i in range(2):
            # Its own text each, so that nothing of the other's is known.
            grammar = f"{self.AMBIGUOUS} # {i}"
            waiters.append(threading.Thread(target=lambda g=grammar: answers.append(
                server.post("/v1/completions", {**body, "grammar": g}))))
            waiters[-1].start()
        while server.get("/stats")[2]["running"] < 8:
            time.sleep(0.01)
        begin = time.monotonic()
        server.end()
        self.assertLess(time.monotonic() - begin, 15)
        for waiter in waiters:
            waiter.join()
        self.assertEqual(len(answers), 2)
        self.assertEqual(server.process.returncode, 0, server.errors)

    def test_bad_starts(self):
        def refuse(*arguments, saying):
            result = subprocess.run([PROGRAM, "serve", *map(str, arguments)], text=True,
                                    capture_output=True, timeout=60)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertRegex(result.stderr, r"\Aforetoken: [^\n]+\n\Z")
            self.assertIn(saying, result.stderr)
        refuse("--target", "/nonexistent", "--port", 0, saying="/nonexistent")
        refuse("--host", "203.0.113.1", "--port", 0, saying="cannot listen")
        refuse("--api-key-file", "/nonexistent", saying="API key")
        refuse("--modes", "ar,fast", saying="'fast'")
        refuse("--learn", saying="--datastore DIR")
        refuse("--mode", "rest", saying="--datastore DIR")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            refuse("--port", taken.getsockname()[1], saying="cannot listen")

    def test_log(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "log"
            with Serving(PROGRAM, "--log-file", file, "--mode", "sd") as server:
                answer = server.chat(max_tokens=8, temperature=0)
                self.assertRegex(answer[1]["X-Request-Id"], "^req-[0-9a-f]{16}$")
                own = server.get("/nothing", headers={"X-Request-Id": "mine-1"})
                self.assertEqual(own[1]["X-Request-Id"], "mine-1")
                bad = server.get("/health", headers={"X-Request-Id": "a b"})
                self.assertRegex(bad[1]["X-Request-Id"], "^req-")
                connection, response = server.stream("/v1/completions", self.ENDLESS)
                connection.sock.close()
                connection.close()
                response.close()
                server.wait_idle()
            lines = file.read_text().splitlines()
            self.assertRegex(lines[0], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z 127\.0\.0\.1 POST "
                             r"/v1/chat/completions 200 \d+\.\dms id=req-[0-9a-f]{16} "
                             r"model=demo-target tokens=\d+\+8 mode=sd accepted=\d+/\d+$")
            self.assertIn("GET /nothing 404", lines[1])
            self.assertIn("id=mine-1", lines[1])
            self.assertRegex("\n".join(lines), r"/v1/completions (499|200) ")
        refused = subprocess.run([PROGRAM, "serve", "--port", "0", "--log-file", "/no/such/log"],
                                 capture_output=True, text=True, timeout=60)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("cannot write the log '/no/such/log'", refused.stderr)

    def test_strict_fields(self):
        with Serving(PROGRAM, "--strict-fields", "--mode", "ar") as server:
            status, _, body = server.chat(tempersture=1)
            self.assertEqual((status, body["error"]["param"]), (400, "tempersture"))

    def test_offered_modes(self):
        with Serving(PROGRAM, "--modes", "ar,sd", "--mode", "sd") as server:
            self.assertEqual(server.get("/props")[2]["modes"], ["ar", "sd", "ngram"])
            self.assertEqual(server.complete(speculative={"mode": "ssd"})[0], 400)
            self.assertEqual(server.complete(speculative={"mode": "ar"})[0], 200)

    def test_datastore(self):
        fields = dict(max_tokens=60, temperature=0, speculative={"mode": "sssd", "lookahead": 8})

        def tell(server, namespace, learn):
            status, _, body = server.complete(
                datastore={"namespace": namespace, "learn": learn}, **fields)
            self.assertEqual(status, 200, body)
            return body["choices"][0]["text"], body["usage"]["rounds"]

        with tempfile.TemporaryDirectory() as folder:
            with Serving(PROGRAM, "--mode", "ar", "--datastore", folder, "--learn") as server:
                self.assertIn("sssd", server.get("/props")[2]["modes"])
                text, cold = tell(server, "alice", True)
                for name in ("shared", "a/b"):
                    status, _, body = server.complete(datastore={"namespace": name})
                    self.assertEqual(status, 400)
                    self.assertEqual(body["error"]["param"], "datastore.namespace")
            # What alice's request added is there after a restart, for her alone.
            with Serving(PROGRAM, "--mode", "ar", "--datastore", folder, "--learn") as server:
                for name, learns, rounds in (("bob", False, cold), ("bob", False, cold)):
                    self.assertEqual(tell(server, name, learns), (text, rounds))
                again, warm = tell(server, "alice", False)
                self.assertEqual(again, text)
                self.assertLess(2 * warm, cold)
                self.assertEqual(server.get("/stats")[2]["datastore"],
                                 {"failure": None, "lost_outputs": 0})
                # Nobody owns a namespace here: what retrieval found stays unseen.
                connection, response = server.stream("/v1/completions", {
                    "prompt": "Once upon a time", "speculation_trace": True,
                    "datastore": {"namespace": "alice", "learn": False}, **fields})
                shown = [text for event in events(response) if "speculation" in event
                         for text in event["speculation"]["proposed"]]
                connection.close()
                self.assertEqual(set(shown), {None})
            self.assertIn("every client reads what the outputs of others taught", server.errors)
        with Serving(PROGRAM, "--mode", "ar") as server:
            status, _, body = server.complete(datastore={})
            self.assertEqual((status, body["error"]["param"]), (400, "datastore"))
            self.assertIn("--datastore DIR", body["error"]["message"])

    def test_tenants(self):
        prompt = "Once upon a time there was a girl who had a cat and a dog and a very big red ball. " * 4
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder) / "keys"
            keys.write_text("alice a-key namespaces=alice,team limit=2\nbob b-key\n")

            def ask(key, **more):
                body = {"prompt": prompt, "max_tokens": 40, "temperature": 0,
                        "speculative": {"mode": "sssd"}, **more}
                return server.post("/v1/completions", body, headers={"x-api-key": key})

            def cached(answer):
                return self.usage(answer)["prompt_tokens_details"]["cached_tokens"]

            with Serving(PROGRAM, "--mode", "ar", "--datastore", folder + "/store", "--learn",
                         "--api-key-file", keys) as server:
                first = ask("a-key")
                self.assertEqual(cached(first), 0)
                self.assertGreater(cached(ask("a-key", datastore={"namespace": "team"})), 0)
                other = ask("b-key")
                self.assertEqual(cached(other), 0)  # Nothing of what alice sent.
                self.assertEqual(self.usage(other)["rounds"], self.usage(first)["rounds"])
                self.assertEqual(other[2]["choices"], first[2]["choices"])
                for key, name in (("a-key", "bob"), ("b-key", "team"), ("b-key", "made-up")):
                    status, _, body = ask(key, datastore={"namespace": name})
                    self.assertEqual((status, body["error"]["param"], body["error"]["code"]),
                                     (403, "datastore.namespace", "namespace_not_owned"))
                self.assertEqual(ask("a-key", n=2)[0], 200)
                status, _, body = ask("a-key", n=3)
                self.assertEqual((status, body["error"]["param"]), (400, "n"))
                self.assertEqual(ask("b-key", n=3)[0], 200)
            self.assertNotIn("every client", server.errors)
            made = sorted(path.name for path in pathlib.Path(folder, "store").iterdir())
            self.assertEqual(made, ["alice", "bob", "team"])

    def usage(self, answer):
        self.assertEqual(answer[0], 200, answer[2])
        return answer[2]["usage"]


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
