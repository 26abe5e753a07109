"""`foretoken serve` with a model that says what a test wants, and agents that work with it."""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "server")]
from serving import Serving

HIDDEN, VOCABULARY, CONTEXT = 64, 2048, 1 << 17


def write_model(folder):
    """A model with the bundled tokenizer whose passes over long prompts take next to no time: one
    layer that sees a short window. All its weights are 0, so that no token is likelier than
    another."""
    shapes = {"model.embed_tokens": (VOCABULARY, HIDDEN), "model.norm": (HIDDEN,)}
    for norm in ("input_layernorm", "post_attention_layernorm"):
        shapes[f"model.layers.0.{norm}"] = (HIDDEN,)
    for name in ("self_attn.q", "self_attn.k", "self_attn.v", "self_attn.o", "mlp.gate", "mlp.up",
                 "mlp.down"):
        shapes[f"model.layers.0.{name}_proj"] = (HIDDEN, HIDDEN)
    header, size = {}, 0
    for name, shape in shapes.items():
        begin = size
        size += 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name + ".weight"] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, size]}
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": HIDDEN,
        "intermediate_size": HIDDEN, "num_hidden_layers": 1, "num_attention_heads": 1,
        "num_key_value_heads": 1, "head_dim": HIDDEN, "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT, "sliding_window": 64, "rms_norm_eps": 1e-5,
        "rope_theta": 1e4, "hidden_act": "silu", "tie_word_embeddings": True,
        "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"}))
    for name in ("tokenizer.model", "tokenizer_config.json"):
        shutil.copy(ROOT / "models" / "demo-target" / name, folder)


# What the agents are asked to mend.
FAULT = 'def greet(name):\n    return "Helo, " + name\n'


class Prompt(str):
    """What the model reads, as the chat template `hermes` has written it."""

    @property
    def turns(self):
        """(role, text) of each, but for the answer's that the prompt ends with."""
        return re.findall(r"<\|im_start\|>(\w+)\n(.*?)<\|im_end\|>", self, re.DOTALL)

    @property
    def last(self):
        return self.turns[-1][1]


def call(name, **arguments):
    """How the model writes a call."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


class Script:
    """What the model says: answers in order, each with a text that the last turn must have then.
    `aside` answers prompts that are none of the conversation's, as for a title; None: it is one."""

    def __init__(self, *steps, aside=lambda prompt: None):
        self.steps, self.aside, self.done = steps, aside, 0
        self.prompts = []  # One for each step.

    def __call__(self, prompt):
        said = self.aside(prompt)
        if said is not None:
            return said
        if self.done == len(self.steps):
            raise AssertionError(f"more is asked than the script has: {prompt[-2000:]}")
        self.prompts.append(prompt)
        expected, said = self.steps[self.done]
        self.done += 1
        if expected not in prompt.last:
            raise AssertionError(f"step {self.done} expects {expected!r}: {prompt[-4000:]}")
        return said


class ScriptedServing(Serving):
    """A server whose model says `say(prompt)`, a function of a Prompt. What `say` raises is kept as
    `failure`."""

    def __init__(self, program, say, *arguments, context=CONTEXT):
        self.folder = tempfile.TemporaryDirectory()
        model = pathlib.Path(self.folder.name) / "scripted"
        write_model(model)
        self.say, self.prompts, self.failure = say, [], None
        super().__init__(program, "--target", model, "--context", context, "--mode", "ngram",
                         "--chat-template", "hermes", *arguments, stdin=subprocess.PIPE)
        self.speaker = threading.Thread(target=self.speak)
        self.speaker.start()

    def speak(self):
        for line in self.process.stdout:
            prompt = Prompt(json.loads(line)["prompt"])
            self.prompts.append(prompt)
            said = "That is not in the script."
            try:
                said = self.say(prompt)
            except Exception as failure:  # The test's own, which is to show it.
                self.failure = self.failure or failure
            self.process.stdin.write(json.dumps({"say": said}) + "\n")
            self.process.stdin.flush()

    def end(self, timeout=60):
        self.process.terminate()
        self.process.wait(timeout)
        self.speaker.join(timeout)
        self.folder.cleanup()
        return super().end(timeout)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"


class AgentTest(unittest.TestCase):
    """A test that runs an agent in a folder of its own, with nothing of its user's settings."""

    SCRIPTED_SERVER = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name) / "home"
        self.project = pathlib.Path(folder.name) / "project"
        self.home.mkdir()
        self.project.mkdir()

    def serve(self, say, *arguments, **options):
        server = ScriptedServing(self.SCRIPTED_SERVER, say, *arguments, **options)
        self.addCleanup(server.end)
        return server

    def environment(self, **more):
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8",
                "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **more}

    def run_agent(self, server, *command, environment=None, lines=(), status=0, timeout=300):
        """What the agent prints where a user types these lines. What was not in the script is shown
        first; then the agent must have ended with `status`."""
        result = subprocess.run(
            [str(part) for part in command], cwd=self.project,
            input="".join(line + "\n" for line in lines), capture_output=True, text=True,
            timeout=timeout, env=self.environment(**(environment or {})))
        if server.failure is not None:
            raise server.failure
        self.assertEqual(result.returncode, status, result.stdout[-4000:] + result.stderr[-4000:])
        return result.stdout


class LibraryTasks:
    """Tests of an agent that a library's user writes, with the tools `read` and `edit`, by each of
    its DOORS. `run_requests(server, door, *requests)` returns what it has answered, and why it has
    pruned the messages of its conversation."""

    DOORS = ()
    EDIT = call("edit", path="greeting.py", old='"Helo, "', new='"Hello, "')

    def test_a_task_by_each_door(self):
        for door in self.DOORS:
            with self.subTest(door):
                (self.project / "greeting.py").write_text(FAULT)
                script = Script(
                    ("Mend greeting.py.", call("read", path="greeting.py")),
                    ("Helo, ", "It is a letter that is missing.\n" + self.EDIT),
                    ('"replaced":1', "It is mended."))
                said = self.run_requests(self.serve(script), door, "Mend greeting.py.")
                self.assertEqual(script.done, 3)
                self.assertEqual((self.project / "greeting.py").read_text(),
                                 FAULT.replace("Helo", "Hello"))
                answer, = said["answers"]
                self.assertEqual(answer["text"], "It is mended.")
                self.assertGreater(answer["usage"]["inputTokens"], 500)
                self.assertGreater(answer["usage"]["outputTokens"], 50)

    def test_a_context_that_overflows(self):
        (self.project / "notes.txt").write_text("A note of no importance. " * 300)
        for door in self.DOORS:
            with self.subTest(door):
                (self.project / "greeting.py").write_text(FAULT)
                script = Script(
                    ("Read the notes.", call("read", path="notes.txt")),
                    ("no importance", "They are of no importance."),
                    ("Mend greeting.py.", self.EDIT), ('"replaced":1', "It is mended."))
                server = self.serve(script, context=4_000)
                more = " And mind this: " + "it is a greeting. " * 250
                said = self.run_requests(server, door, "Read the notes.",
                                         "Mend greeting.py." + more)
                self.assertEqual([script.done, said["answers"][-1]["text"]], [4, "It is mended."])
                refused, = said["pruned"]
                self.assertEqual(refused["status"], 400)
                self.assertRegex(refused["message"], "prompt is too long|maximum context length")
                self.assertNotIn("no importance. A note", script.prompts[-1])
                self.assertIn("Hello", (self.project / "greeting.py").read_text())


def main():
    """Runs the tests of the calling file: FILE SCRIPTED_SERVER BUILD_FOLDER [TEST]..."""
    AgentTest.SCRIPTED_SERVER = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
