#!/usr/bin/env python3
"""Measures the tables about fan-out, verifiers and mode auto of docs/performance.md, as Markdown.

    tools/measure_saguaro.py PROGRAM auto|temperatures|fanouts|trees|predictions [OPTION]...

Each table takes up to twenty minutes on two cores. Within a row all modes alternate prompt by
prompt in one run of `foretoken bench`. Real models are the bundled pair and the one named by
--stories.
"""

import argparse
import json
import os
import random
import subprocess
import tempfile


def foretoken(program, *arguments):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, arguments))}: {result.stderr.strip()}")
    return result.stdout


def bench(program, *arguments):
    """The modes of one run by name; of several sets of prompts the first."""
    report = json.loads(foretoken(program, "bench", *arguments, "--json", "-"))
    return {mode["mode"]: mode for mode in report["sets"][0]["modes"]}


def speed(mode):
    return mode["tokens_per_s"]["median"]


def hits(mode):
    """Hit rates at k < K and k = K, and of all rounds."""
    rates, counts = mode["hit_rate"], mode["lookups"]
    total = sum((rates[where] or 0) * counts[where] for where in counts)
    return rates["before_k"], rates["at_k"], total / max(1, sum(counts.values()))


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def header(*cells):
    row(*cells)
    row(*["---"] * len(cells))


def auto_table(options):
    """Ratios are geometric means over prompts (batches), each beside the same prompt's in ar."""
    pairs = {name: pair + options.stories + ["-n", 160] for name, pair in options.pairs.items()}
    synthetic = ["--synthetic", "llama-135m", "--draft-synthetic", "draft-12m", "-n", 96,
                 "--prompt-tokens", 64]
    pairs["hopeless draft (random weights)"] = synthetic
    pairs["perfect draft (scripted)"] = synthetic + ["--scripted-acceptance", "1,1"]
    header("pair", "batch", "ar", "ngram", "sd", "ssd", "auto", "auto over the best", "over ar")
    for name, pair in pairs.items():
        for batch in (1, 4, 16):
            real = name in options.pairs
            limit = {1: 64, 4: 128, 16: 256}[batch] if real else {1: 6, 4: 12, 16: 32}[batch]
            modes = bench(options.program, *pair, "--limit", limit, "--batch", batch,
                          "--only-target-cores", "--modes", "ar,ngram,sd,ssd,auto")
            gains = {mode: modes[mode]["speedup"]["value"] for mode in modes}
            own = gains.pop("auto")
            row(name, batch, *(number(speed(mode), 0) for mode in modes.values()),
                number(own / max(gains.values())), number(own))


def temperature_table(options):
    header("pair", "verify", "T", "ar", "sd", "ssd", "auto", "ssd/sd", "accepted sd", "ssd",
           "hits k < K", "k = K", "tokens/round sd", "ssd")
    for name, pair in options.pairs.items():
        for verify in ("shared-noise", "rejection"):
            for temperature in (0, 0.3, 0.7, 1, 1.3, 1.5):
                modes = bench(options.program, *pair, *options.stories, "--limit", 24, "-n", 160,
                              "--temp", temperature, "--verify", verify, "--modes",
                              "ar,sd,ssd,auto", "--only-target-cores", "--fanout", "planned",
                              "--fallback", "auto", "--cache-budget", 21, "-k", 6)
                sd, ssd = modes["sd"], modes["ssd"]
                before, at, _ = hits(ssd)
                row(name, verify, temperature,
                    *(number(speed(modes[mode]), 0) for mode in ("ar", "sd", "ssd", "auto")),
                    number(speed(ssd) / speed(sd)), number(sd["acceptance_rate"]),
                    number(ssd["acceptance_rate"]), number(before), number(at),
                    number(sd["acceptance_length"]), number(ssd["acceptance_length"]))


def fanout_table(options):
    """Hit rates of caches that are prepared in full: the target waits long enough for that."""
    budget = 21
    header("pair", "verify", "T", "fan-out", "hits", "k < K", "k = K", "rounds")
    for name, pair in options.pairs.items():
        for verify in ("rejection", "shared-noise"):
            order = ["--cache-order", "probability"] if verify == "rejection" else []
            for temperature in (0.7, 1, 1.3):
                for fanout in ("uniform", "geometric", "planned"):
                    ssd = bench(options.program, *pair, *options.stories, "--limit", 32, "-n", 160,
                                "--temp", temperature, "--verify", verify, *order, "--modes", "ssd",
                                "-k", 6, "--fanout", fanout, "--cache-budget", budget,
                                "--fallback", "jit", "--target-delay-us", 2500)["ssd"]
                    before, at, total = hits(ssd)
                    row(name, verify, temperature, fanout, number(total, 3), number(before),
                        number(at), ssd["rounds"])


def tree_table(options):
    """Acceptance per level of trees under shared noise, beside the hit rate that F = W reaches."""
    header("pair", "T", "W", "level 1", "level 2", "level 3", "level 4", "tokens/round",
           "hits k < K at F = W")
    for name, pair in options.pairs.items():
        for temperature in (0.7, 1, 1.3):
            for width in (1, 2, 3):
                common = [*pair, *options.stories, "--limit", 32, "-n", 160, "--temp", temperature]
                nodes = ["--tree-nodes", 63] if width > 1 else []
                sd = bench(options.program, *common, "--modes", "sd", "-k", 4, "--tree-width",
                           width, *nodes)["sd"]
                ssd = bench(options.program, *common, "--modes", "ssd", "-k", 4, "--fanout", width,
                            "--target-delay-us", 2500)["ssd"]
                levels = sd["acceptance_per_position"]
                row(name, temperature, width, *(number(level) for level in levels[:4]),
                    number(sd["acceptance_length"]), number(hits(ssd)[0]))


def prediction_table(options):
    """Ten settings at random: what `plan` says from calibrations, and what bench measures.

    What counts is the speed over ar's, predicted and measured in the same run. A shared machine
    changes its speed within seconds: times are measured just before and just after each setting,
    and the two predictions averaged. Rates are measured once.
    """
    draw = random.Random(options.seed)
    pair = options.pairs["bundled"]
    with tempfile.TemporaryDirectory() as folder:
        rates = os.path.join(folder, "rates.json")
        prompts = [*options.stories, "--limit", 96]
        calibrated = [*options.stories, "--limit", 24]
        foretoken(options.program, "calibrate", *pair, *calibrated, "--verify", "shared-noise",
                  "--temps", "0,0.7,1", "-o", rates)
        header("mode", "K", "B", "fallback", "T", "batch", "tokens/round predicted", "measured",
               "of ar predicted", "measured", "ratio")
        close = 0
        for _ in range(10):
            mode = draw.choice(["sd", "ssd", "ssd", "ssd", "ngram"])
            temperature, batch = draw.choice([0, 0.7, 1]), draw.choice([1, 2, 4])
            lookahead, fanout = draw.randint(1, 8), draw.randint(1, 5)
            budget, fallback = fanout * (lookahead + 1), draw.choice(["none", "jit", "ngram"])
            cache = (["--cache-budget", budget, "--fallback", fallback] if mode == "ssd" else [])
            shape = ["--fanout", "planned"] if mode == "ssd" else []

            def predict():
                """The setting's tokens a round, and its speed over ar's, as times are now."""
                times = os.path.join(folder, "times.json")
                foretoken(options.program, "calibrate", *pair, *calibrated, "--rates-of", rates,
                          "-o", times)

                def plan(what, *more):
                    tables = json.loads(foretoken(
                        options.program, "plan", "--calibration", times, "--temp", temperature,
                        "--context", 80, "--batch", batch, "--modes", what, *more, "--json", "-"))
                    return tables["tables"][0]["plans"][0]
                chosen = plan(mode, "-k", lookahead, *cache)
                gain = chosen["tokens_per_second"] / plan("ar")["tokens_per_second"]
                return chosen["tokens_per_round"], gain

            before = predict()
            modes = bench(options.program, *pair, "--temp", temperature, "--batch", batch,
                          "--modes", f"ar,{mode}", "--only-target-cores", "-k", lookahead, *cache,
                          *shape, *prompts, "-n", 96)
            after = predict()
            tokens, gain = ((b + a) / 2 for b, a in zip(before, after))
            ar, measured = (modes[what]["full_batch_tokens_per_s"] for what in ("ar", mode))
            ratio = gain / (measured / ar)
            close += abs(ratio - 1) <= 0.1
            named = mode == "ssd"
            row(mode, lookahead, budget if named else "-", fallback if named else "-", temperature,
                batch, number(tokens), number(modes[mode]["acceptance_length"]), number(gain),
                number(measured / ar), number(ratio))
        print(f"\n{close} of 10 within 10 %.")


TABLES = {"auto": auto_table, "temperatures": temperature_table, "fanouts": fanout_table,
          "trees": tree_table, "predictions": prediction_table}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="build/run/apps/foretoken/foretoken")
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--stories", nargs=2, dest="other", metavar=("TARGET", "DRAFT"),
                        help="another pair of real models")
    parser.add_argument("--prompts", metavar="FILE",
                        help="paragraphs that the real pairs continue; else the built-in prompts")
    parser.add_argument("--seed", type=int, default=1, help="of the settings drawn at random")
    options = parser.parse_args()
    options.pairs = {"bundled": []}
    if options.other:
        options.pairs["stories"] = ["--target", options.other[0], "--draft", options.other[1]]
    options.stories = ["--prompts", options.prompts, "--words", 20] if options.prompts else []
    TABLES[options.table](options)


if __name__ == "__main__":
    main()
