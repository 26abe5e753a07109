#!/usr/bin/env python3
"""lm-eval's model local-completions against the server: lm_eval_test.py PROGRAM BUILD_FOLDER.

Installs the pinned packages of lm_eval_client/requirements.txt in BUILD_FOLDER. Skips (exit code 77)
where these cannot be downloaded, unless the environment has CI=true."""

import json
import os
import pathlib
import subprocess
import sys

from serving import Serving, generated_logprobs

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from python_packages import install

SOURCE = pathlib.Path(__file__).parent / "lm_eval_client"
SETTINGS = [[1, 1], [4, 1], [2, 3]]  # Prompts of a request, requests at once.
STORY = "Once upon a time, there was a little"
PAIRS = [[STORY, " girl named Lily."], [STORY, " zebra quantum"],
         ["Tom had a big, red", " ball — été 🙂"], ["One day, a small", " dragon found a ball"]]
TEXTS = [["Once upon a time, there was a little girl named Lily. She liked to play."], ["a"]]
PROMPTS = [["Once upon a time", {"until": ["."], "max_gen_toks": 16}]]


def expected(server):
    """The answers by requests that generate each token: nothing of a prompt is scored here."""
    def tokens(text):
        return server.post("/tokenize", {"content": text, "add_special": True})[2]["tokens"]

    def scored(all_tokens, context):
        logprobs = generated_logprobs(server, all_tokens, top=1)
        own = logprobs["token_logprobs"][context:]
        top = logprobs["top_logprobs"][context:]
        return [sum(own), all(one == max(many.values()) for one, many in zip(own, top))]

    pairs = [scored(tokens(context + more), len(tokens(context))) for context, more in PAIRS]
    # Texts follow the beginning-of-sequence token of lm-eval's own.
    texts = [scored(tokens("")[:1] + tokens(text), 1)[0] for text, in TEXTS]
    prompts = []
    for text, options in PROMPTS:
        body = server.complete(tokens(text), temperature=0, stop=options["until"],
                               max_tokens=options["max_gen_toks"])[2]
        prompts.append(body["choices"][0]["text"])
    return [pairs, texts, prompts]


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    python = install(folder, SOURCE / "requirements.txt")
    with Serving(program) as server:
        questions = {"settings": SETTINGS, "pairs": PAIRS, "texts": TEXTS, "prompts": PROMPTS}
        result = subprocess.run(
            [python, SOURCE / "client.py", f"http://127.0.0.1:{server.port}"], text=True,
            input=json.dumps(questions), capture_output=True, timeout=300,
            env={**os.environ, "HF_HUB_OFFLINE": "1"})
        if result.returncode != 0:
            sys.exit(f"lm-eval failed:\n{result.stderr}")
        wanted = expected(server)
        for setting, got in zip(SETTINGS, json.loads(result.stdout.splitlines()[-1]), strict=True):
            if got != wanted:
                sys.exit(f"with {setting} lm-eval says\n{got}\nand should say\n{wanted}")
        greedy = {one for _, one in wanted[0]}
        if greedy != {True, False}:
            sys.exit(f"pairs of both kinds are needed, not {wanted[0]}")
    print(f"{len(SETTINGS)} settings agree: {wanted[0]}")


if __name__ == "__main__":
    main()
