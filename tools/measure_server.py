#!/usr/bin/env python3
"""What HTTP and streaming cost: tokens/s through `foretoken serve` beside `foretoken bench` in process.

  tools/measure_server.py [PROGRAM] [--rounds N] [--modes ar,ssd] [--concurrency 1,8] [--shape 135m]

Both decode the same prompts with the same limits on the same cores, in turn, N times. tokens/s is
of decoding (after the first token), the median over requests on both sides: of `bench` its
tokens_per_s, of the server concurrency over TPOT, measured by `foretoken bench --server`, the client
running beside it. Prints the medians of the rounds and of their ratios. `--shape 135m` decodes with
random weights of that size in place of the bundled model, in mode ar. Nothing else should run on
the machine meanwhile.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUNDLED = ROOT / "models" / "demo-target"
PROMPTS = 8  # How many of each of the built-in kinds.


def write_model(folder):
    """A Llama of 107 million parameters, all but the embeddings of SmolLM2-135M's, for the bundled
    tokenizer; its weights are random and repeat, which changes no time."""
    hidden, inner, layers, query, shared = 576, 1536, 30, 576, 192
    config = json.loads((BUNDLED / "config.json").read_text())
    config.update(hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
                  num_attention_heads=9, num_key_value_heads=3, head_dim=64)
    (folder / "config.json").write_text(json.dumps(config))
    for file in BUNDLED.glob("tokenizer*"):
        shutil.copy(file, folder)
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], hidden),
              "model.norm.weight": (hidden,)}
    for layer in range(layers):
        for name, shape in {"input_layernorm": (hidden,), "post_attention_layernorm": (hidden,),
                            "self_attn.q_proj": (query, hidden), "self_attn.k_proj": (shared, hidden),
                            "self_attn.v_proj": (shared, hidden), "self_attn.o_proj": (hidden, query),
                            "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden),
                            "mlp.down_proj": (hidden, inner)}.items():
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    draw = random.Random(0)
    block = b"".join(struct.pack("<f", draw.gauss(0, 0.04))[2:] for _ in range(1 << 18))
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 2 * (shape[0] * shape[1] if len(shape) > 1 else shape[0])
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _ in range(end // len(block)):
            file.write(block)
        file.write(block[:end % len(block)])


def bench(program, report, *options):
    subprocess.run([program, "bench", *map(str, options), "--json", report], check=True,
                   stdout=subprocess.DEVNULL)
    return json.loads(report.read_text())


def in_process(program, report, model, mode, concurrency, common):
    result = bench(program, report, *model, "--modes", mode, "--only-target-cores", "-b", concurrency,
                   *common)
    return statistics.mean(entry["modes"][0]["tokens_per_s"]["median"] for entry in result["sets"])


def through_server(program, report, url, mode, concurrency, common):
    body = json.dumps({"speculative": {"mode": mode}})
    load = bench(program, report, "--server", url, "--body", body, "--concurrency", concurrency,
                 "--requests", 2 * PROMPTS, *common)["load"]
    if load["errors"]:
        raise SystemExit(f"requests failed: {load['errors']}")
    return concurrency * 1000 / load["tpot_ms"]["p50"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=ROOT / "build/run/bin/foretoken")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--modes", default="ar,sd,ssd")
    parser.add_argument("--concurrency", default="1,8")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--shape", choices=["bundled", "135m"], default="bundled")
    arguments = parser.parse_args()
    common = ("-n", arguments.tokens, "--ignore-eos", "--temp", 0, "--limit", PROMPTS)
    with tempfile.TemporaryDirectory(prefix="foretoken_measure.") as folder:
        folder = pathlib.Path(folder)
        report = folder / "report.json"
        model, modes = [], arguments.modes.split(",")
        if arguments.shape == "135m":
            write_model(folder)
            core = min(os.sched_getaffinity(0))  # Without a draft both would take all of them.
            model, modes = ["--target", folder, "--target-cores", core], ["ar"]
        server = subprocess.Popen(
            [arguments.program, "serve", "--port", "0", "-np", "8", "--no-prefix-cache",
             "--modes", ",".join(modes), *map(str, model)], stdout=subprocess.PIPE, text=True)
        try:
            url = re.search(r"http://\S+", server.stdout.readline()).group()
            print("| mode | concurrency | in process, tokens/s | served, tokens/s | served / in process |")
            print("|---|---|---|---|---|")
            for mode in modes:
                for concurrency in map(int, arguments.concurrency.split(",")):
                    pairs = [(in_process(arguments.program, report, model, mode, concurrency, common),
                              through_server(arguments.program, report, url, mode, concurrency, common))
                             for _ in range(arguments.rounds)]
                    inside, served = (statistics.median(side) for side in zip(*pairs))
                    ratio = statistics.median(b / a for a, b in pairs)
                    print(f"| {mode} | {concurrency} | {inside:.0f} | {served:.0f} | {ratio:.3f} |",
                          flush=True)
        finally:
            server.terminate()
            server.wait(60)


if __name__ == "__main__":
    main()
