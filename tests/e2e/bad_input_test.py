#!/usr/bin/env python3
"""Wrong input: bad_input_test.py PROGRAM SOURCE_DIRECTORY [TEST]...

Whatever is wrong must end in exit code 2 and one sentence on standard error.
"""

import json
import pathlib
import shutil
import sys
import unittest

from command_line import MODELS, CliTest, foretoken

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from overflowing_model import write_overflowing_model


class BadInput(CliTest):
    def test_usage(self):
        self.refuse(saying="foretoken needs a command")
        self.refuse("fly", saying="fly")
        self.refuse("srve", saying="did you mean serve?")
        self.refuse("run", "--warp", "x", saying="--warp")
        self.refuse("run", "x", "--max-token", 3, saying="did you mean --max-tokens?")
        self.refuse("run", "-hf", "who//what", "x", saying="models of a hub are called ORG/NAME")
        self.refuse("run", "-hf", "a/b", "-m", "c", "x", saying="not both")
        self.refuse("run", "-hff", "a.gguf", "x", saying="-hf ORG/NAME:FILE.gguf")
        self.refuse("run", "x", "-ngl", 99, saying="no option -ngl")
        self.refuse("run", "-temp", 1, "x", saying="did you mean --temp?")
        self.refuse("run", "-n", saying="-n needs a value")
        self.refuse("run", "x", "--draft", "--mode", "sd", saying="--draft needs a value")
        self.refuse("inspect", "one", "two", "three", saying="'two' 'three'")
        self.refuse("run", "x", "--lookahead", 0, saying="--lookahead")
        self.refuse("run", "x", "--mode", "warp", saying="--mode")
        for command in (("run", "x"), ("verify",), ("bench",), ("serve",), ("inspect",),
                        ("perplexity", "-f", __file__)):
            self.refuse(*command, "--kv", "q4_0",
                        saying="--kv: q4_0 not in {auto,bf16,f32,q8_0}")
        self.refuse("run", "x", "--fanout", "flat", saying="is not a fan-out")
        self.refuse("run", "x", "--mode", "ssd", "--cache-budget", 6, saying="7 to 105")
        self.refuse("run", "x", "--saguaro-c", "2", "--verify", "rejection", saying="--saguaro-c")
        self.refuse("run", "x", "--cache-order", "noise", saying="--verify rejection")
        self.refuse("run", "x", "--mode", "sd", "--fallback", "jit", saying="modes ssd and auto")
        self.refuse("run", "x", "-n", "many", saying="--max-tokens")
        self.refuse("run", "x", "--temp=-1", saying="temperature")
        self.refuse("run", "x", "--top-p", "2", saying="top")
        self.refuse("run", "x", "--logit-bias", "3", saying="ID:VALUE")
        self.refuse("run", "x", "--logit-bias", "99999:1", saying="99999")
        self.refuse("run", "x", "--target-cores", "4000", saying="4000")
        self.refuse("run", "x", "--context", "100000", saying="limit of 512")
        self.refuse("run", saying="the prompt is empty")
        self.refuse("run", "", saying="the prompt is empty")
        self.refuse("run", "-p", "Hi", "extra", saying="not both")
        self.refuse("run", "-f", __file__, "extra", saying="not both")
        self.refuse("run", "-f", __file__, "-p", "Hi", saying="not both")
        self.refuse("run", "-f", __file__, "-", saying="not both")
        self.refuse("run", "one", "two", saying="no place for the argument 'two'")
        self.refuse("run", "x", "--system", "Be kind.", saying="--system requires --chat")
        self.refuse("run", "x", "--logprobs", 2, saying="--logprobs requires --json")
        self.refuse("run", "-f", self.folder / "none.txt", saying="none.txt")
        self.refuse("verify", "--temps", "hot", saying="hot")
        self.refuse("verify", "--temp", "hot", saying="hot")
        self.refuse("verify", "--sampler-sets", "top-q=1", saying="top-q")
        self.refuse("bench", "--synthetic", "llama-9z", saying="llama-135m")
        self.refuse("bench", "--scripted-acceptance", "2", saying="from 0 to 1")

    def test_prompt_files(self):
        self.refuse("bench", "--prompts", self.folder / "none.jsonl", saying="none.jsonl")
        broken = self.folder / "broken.jsonl"
        broken.write_text('{"prompt": "a"}\n{"prompt": \n')
        self.refuse("verify", "--prompts", broken, saying="broken.jsonl:2")
        empty = self.folder / "empty.txt"
        empty.write_text("\n\n")
        self.refuse("bench", "--prompts", empty, saying="holds no prompt")

    def test_prompt_longer_than_the_context(self):
        self.refuse("run", stdin="word " * 600, saying="tokens")
        self.refuse("run", "one two three four five six seven eight", "-c", 4, saying="holds 4")

    def test_missing_folder_and_files(self):
        self.refuse("inspect", self.folder / "none", saying="none")
        self.refuse("run", "x", "-m", self.folder / "none", saying="none")
        self.refuse("inspect", __file__, saying="bad_input_test.py")
        for name in ("config.json", "model.safetensors", "tokenizer.model"):
            model = self.copy_model("demo-draft")
            (model / name).unlink()
            self.refuse("run", "x", "-m", model, saying="demo-draft")
            self.refuse("inspect", model, saying="demo-draft")
            shutil.rmtree(model)

    def test_no_draft_for_a_mode_that_needs_one(self):
        self.refuse("run", "x", "-m", MODELS / "demo-target", "--mode", "ssd", saying="--draft")
        self.refuse("bench", "-m", MODELS / "demo-target", "--modes", "ar,sd", saying="--draft")

    def test_broken_configuration(self):
        model = self.copy_model("demo-draft")
        config = json.loads((model / "config.json").read_text())
        for change in ({"hidden_size": -1}, {"num_attention_heads": 3}, {"hidden_size": 1 << 40},
                       {"vocab_size": "many"}, {"hidden_act": "tanh"},
                       {"architectures": ["GPT2LMHeadModel"]}, {"num_hidden_layers": 3},
                       {"intermediate_size": 100}, {"num_hidden_layers": 1}, {"head_dim": 2},
                       {"vocab_size": 100}, {"vocab_size": 1 << 12}, {"attention_bias": True},
                       {"per_layer_config": {"0": {"head_dim": 8}}}):
            (model / "config.json").write_text(json.dumps({**config, **change}))
            for command in (("run", "x", "-m", model), ("inspect", model)):
                self.refuse(*command, saying="")
        for text in ("", "{", "[]", "\x00", json.dumps(config) + "\x00"):
            (model / "config.json").write_text(text)
            self.refuse("inspect", model, saying="config.json")

    def test_truncated_weights(self):
        model = self.copy_model("demo-draft")
        weights = (model / "model.safetensors").read_bytes()
        header = int.from_bytes(weights[:8], "little")
        for size in (0, 4, 8, 100, 8 + header, len(weights) // 2, len(weights) - 1):
            (model / "model.safetensors").write_bytes(weights[:size])
            self.refuse("inspect", model, saying="model.safetensors")
            self.refuse("run", "x", "-m", model, saying="model.safetensors")
        for length in (0, header // 2, 1 << 63, (1 << 64) - 1):
            (model / "model.safetensors").write_bytes(length.to_bytes(8, "little") + weights[8:])
            self.refuse("run", "x", "-m", model, saying="model.safetensors")

    def test_weights_that_are_no_numbers(self):
        model = self.copy_model("demo-draft")
        whole = (model / "model.safetensors").read_bytes()
        length = int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8:8 + length])
        for tensor in ("model.norm.weight", "model.layers.0.mlp.up_proj.weight",
                       "model.embed_tokens.weight"):
            place = 8 + length + header[tensor]["data_offsets"][0]
            self.assertEqual(header[tensor]["dtype"], "BF16")
            (model / "model.safetensors").write_bytes(
                whole[:place] + b"\xc0\x7f" + whole[place + 2:])
            saying = f"weight 0 of tensor {tensor} is infinite or NaN"
            text = self.folder / "text.txt"
            text.write_text("Once upon a time there was a dog. " * 50)
            self.refuse("run", "x", "-m", model, saying=saying)
            self.refuse("serve", "-m", model, "--port", 0, saying=saying)
            self.refuse("perplexity", "-m", model, "--text", text, saying=saying)
            self.refuse("run", "x", "-m", MODELS / "demo-target", "-md", model, "--mode", "sd",
                        saying=saying)

    def test_weights_whose_products_are_no_numbers(self):
        model = write_overflowing_model(self.folder / "huge")
        saying = "the model 'huge' computed numbers that are infinite or NaN"
        for mode in ("ar", "sd", "ssd"):
            drafted = () if mode == "ar" else ("-md", model)
            arguments = ("abc", "-m", model, *drafted, "--mode", mode, "--temp", 0)
            result = foretoken("run", *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, "Z\n"), result.stderr)
            self.assertRegex(result.stderr, r"\Aforetoken: [^\n]+\n\Z")
            self.assertIn(saying, result.stderr)
            self.refuse("run", *arguments, "--json", saying=saying)
        self.refuse("run", "abZ", "-m", model, "--mode", "ar", saying=saying)
        prompts = self.folder / "prompts.txt"
        prompts.write_text("abc\n")
        for command in ("bench", "verify"):
            result = foretoken(command, "-m", model, "-md", model, "--prompts", prompts)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(saying, result.stderr)
        # A draft that is so has nothing to propose.
        target = write_overflowing_model(self.folder / "sound", huge=0)
        texts = {self.succeed("run", "abc", "-m", target, *drafted, "-n", 60).stdout
                 for drafted in (("--mode", "ar"), ("-md", model, "--mode", "sd"),
                                 ("-md", model, "--mode", "ssd"))}
        self.assertEqual(len(texts), 1)
        self.assertIn("Z", texts.pop())

    def test_sampling_that_a_model_recommends_wrongly(self):
        model = self.copy_model("demo-draft")
        for values, saying in (({"temperature": -1}, "temperature"), ({"top_p": "x"}, "top_p"),
                               ({"top_p": 1.5}, "top_p"), ({"top_k": 0.5}, "top_k"),
                               ({"min_p": [0.1]}, "min_p"), ([1], "is no JSON object"),
                               ({"repetition_penalty": 0}, "repetition_penalty")):
            (model / "generation_config.json").write_text(json.dumps(values))
            for command in (("run", "x"), ("serve", "--port", 0)):
                self.refuse(*command, "-m", model, saying=saying)
            if isinstance(values, dict):  # The file also says which tokens end a text.
                self.succeed("run", "x", "-m", model, "-n", 2, "--generation-config", "none")

    def test_pickled_weights(self):
        model = self.copy_model("demo-draft")
        (model / "model.safetensors").unlink()
        weights = model / "pytorch_model.bin"
        goldens = MODELS.parent / "tests/golden/torch"
        for name, saying in (("legacy", "before version 1.6"), ("transposed", "lies in memory by"),
                             ("whole_module", "torch.nn.modules.linear.Linear, which is not run"),
                             ("dtypes", "has dtype U8")):
            shutil.copy(goldens / f"{name}.bin", weights)
            self.refuse("run", "x", "-m", model, saying=saying)
        whole = (goldens / "module.bin").read_bytes()
        for size in (0, 100, len(whole) // 2, len(whole) - 1):
            weights.write_bytes(whole[:size])
            self.refuse("inspect", model, saying="pytorch_model.bin")
        self.refuse("run", "x", "-m", MODELS / "demo-target", "-md", model, "--mode", "sd",
                    saying="pytorch_model.bin")

    def test_broken_tokenizer(self):
        model = self.copy_model("demo-draft")
        pieces = (model / "tokenizer.model").read_bytes()
        for content in (b"", b"nonsense", pieces[:1000]):
            (model / "tokenizer.model").write_bytes(content)
            self.refuse("run", "x", "-m", model, saying="")


if __name__ == "__main__":
    unittest.main(verbosity=2)
