"""What lm-eval's model local-completions makes of a server: client.py BASE_URL, with the questions as
JSON on standard input. Prints its answers as JSON on the last line."""

import json
import sys

import requests
from lm_eval.api.instance import Instance
from lm_eval.models.openai_completions import LocalCompletionsAPI


class ServerTokenizer:
    """The server's own tokenizer in place of those that lm-eval loads with packages of its own."""

    eos_token = "</s>"

    def __init__(self, url):
        self.url = url
        self.bos_token_id = self.encode("")[0]

    def encode(self, text):
        answer = requests.post(f"{self.url}/tokenize", json={"content": text, "add_special": True})
        answer.raise_for_status()
        return answer.json()["tokens"]


def instances(kind, questions):
    return [Instance(kind, {}, tuple(question), i) for i, question in enumerate(questions)]


def main():
    url = sys.argv[1]
    questions = json.load(sys.stdin)
    answers = []
    for batch, concurrent in questions["settings"]:
        model = LocalCompletionsAPI(base_url=f"{url}/v1/completions", model="demo-target",
                                    tokenizer_backend="none", batch_size=batch,
                                    num_concurrent=concurrent, max_length=512, max_retries=1)
        model.tokenizer = ServerTokenizer(url)
        model.tokenizer_backend = "remote"
        model.tokenized_requests = True
        answers.append([model.loglikelihood(instances("loglikelihood", questions["pairs"])),
                        model.loglikelihood_rolling(
                            instances("loglikelihood_rolling", questions["texts"])),
                        model.generate_until(instances("generate_until", questions["prompts"]))])
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
