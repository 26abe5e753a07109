#!/usr/bin/env python3
"""Measures the tables about fan-out, verifiers and mode auto of lab/performance, as Markdown.

    tools/measure_saguaro.py PROGRAM auto|temperatures|fanouts|trees|predictions [OPTION]...

Each table takes up to twenty minutes on two cores. Within a row all modes alternate prompt by
prompt in one run of `foretoken bench`. Real models are the bundled pair and the one named by
--stories.
"""

import argparse
import json
import os
import random
import statistics
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
        if options.only not in name:
            continue
        for batch in options.batch:
            real = name in options.pairs
            limit = {1: 64, 4: 128, 16: 256}[batch] if real else {1: 6, 4: 12, 16: 32}[batch]
            limit *= options.effort
            modes = bench(options.program, *pair, "--limit", limit, "--batch", batch,
                          "--only-target-cores", "--modes", "ar,ngram,sd,ssd,auto")
            gains = {mode: modes[mode]["speedup"]["value"] for mode in modes}
            own = gains.pop("auto")
            row(name, batch, *(number(speed(mode), 0) for mode in modes.values()),
                number(own / max(gains.values())), number(own))


def planned(program, calibration, mode, *more):
    """The fastest plan of a mode, as `plan` chooses it."""
    report = json.loads(foretoken(program, "plan", "--calibration", calibration, "--modes", mode,
                                  *more, "--json", "-"))
    return report["tables"][0]["plans"][0]


def temperature_table(options):
    """SD and SSD as `plan` tunes each: K, and for SSD the cache's budget, the fallback and C."""
    header("pair", "verify", "T", "ar", "auto", "sd: K", "over ar", "ssd: K", "B", "fallback", "C",
           "over ar", "ssd/sd", "accepted sd", "ssd", "hits k < K", "k = K", "tokens/round sd",
           "ssd")
    with tempfile.TemporaryDirectory() as folder:
        for name, pair in options.pairs.items():
            if options.only not in name:
                continue
            calibration = os.path.join(folder, "calibration.json")
            common = [*pair, *options.stories]
            foretoken(options.program, "calibrate", *common, "--limit", options.calibrate_with,
                      "--temps", ",".join(map(str, options.temps)), "-o", calibration)
            for verify in ("shared-noise", "rejection"):
                for temperature in options.temps:
                    load = ["--temp", temperature, "--verify", verify]
                    run = [*common, *load, "--limit", 24, "-n", 160, "--only-target-cores"]
                    planning = [*load, "--context", 90]
                    plan = planned(options.program, calibration, "sd", *planning)
                    sd_k = plan["lookahead"]
                    sd = bench(options.program, *run, "--modes", "ar,sd", "-k", sd_k)["sd"]
                    plan = planned(options.program, calibration, "ssd", *planning)
                    chosen = (plan["lookahead"], plan["cache_budget"], plan["fallback"],
                              plan["saguaro_c"])
                    ssd = bench(options.program, *run, "--modes", "ar,ssd", "-k", chosen[0],
                                "--fanout", "planned", "--cache-budget", chosen[1], "--fallback",
                                chosen[2], "--saguaro-c", chosen[3])["ssd"]
                    modes = bench(options.program, *run, "--modes", "ar,auto")  # -k would bind it.
                    sd_gain, ssd_gain = (mode["speedup"]["value"] for mode in (sd, ssd))
                    before, at, _ = hits(ssd)
                    row(name, verify, temperature, number(speed(modes["ar"]), 0),
                        number(modes["auto"]["speedup"]["value"]), sd_k, number(sd_gain), *chosen,
                        number(ssd_gain), number(ssd_gain / sd_gain),
                        number(sd["acceptance_rate"]), number(ssd["acceptance_rate"]),
                        number(before), number(at), number(sd["acceptance_length"]),
                        number(ssd["acceptance_length"]))


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
    changes its speed within seconds, and a neighbour may hold up one of two cores for one of them:
    times are measured before and after each of three runs of a setting; the predictions are
    averaged, and the median run counts. Rates are measured once for all seeds.
    """
    pair = options.pairs["bundled"]
    with tempfile.TemporaryDirectory() as folder:
        rates = os.path.join(folder, "rates.json")
        foretoken(options.program, "calibrate", *pair, *options.stories, "--limit", 48, "--verify",
                  "shared-noise", "--temps", "0,0.7,1", "-o", rates)
        for seed in options.seed:
            print(f"Seed {seed}:\n")
            predict_settings(options, seed, folder, rates)


def predict_settings(options, seed, folder, rates):
    """The table of one seed."""
    draw = random.Random(seed)
    pair = options.pairs["bundled"]
    prompts = [*options.stories, "--limit", 96]
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
            foretoken(options.program, "calibrate", *pair, *options.stories, "--limit", 24,
                      "--rates-of", rates, "-o", times)
            load = ["--temp", temperature, "--context", 80, "--batch", batch]
            chosen = planned(options.program, times, mode, *load, "-k", lookahead, *cache)
            plain = planned(options.program, times, "ar", *load)
            gain = chosen["tokens_per_second"] / plain["tokens_per_second"]
            return chosen["tokens_per_round"], gain

        def measure():
            """The same of a run."""
            modes = bench(options.program, *pair, "--temp", temperature, "--batch", batch,
                          "--modes", f"ar,{mode}", "--only-target-cores", "-k", lookahead, *cache,
                          *shape, *prompts, "-n", 96)
            ar, measured = (modes[what]["full_batch_tokens_per_s"] for what in ("ar", mode))
            return modes[mode]["acceptance_length"], measured / ar

        predictions = [predict()]
        runs = []
        for _ in range(3):
            runs.append(measure())
            predictions.append(predict())
        tokens, gain = (statistics.fmean(values) for values in zip(*predictions))
        length, measured = (statistics.median(values) for values in zip(*runs))
        ratio = gain / measured
        close += abs(ratio - 1) <= 0.1
        named = mode == "ssd"
        row(mode, lookahead, budget if named else "-", fallback if named else "-", temperature,
            batch, number(tokens), number(length), number(gain), number(measured), number(ratio))
    print(f"\n{close} of 10 within 10 %.\n")


TABLES = {"auto": auto_table, "temperatures": temperature_table, "fanouts": fanout_table,
          "trees": tree_table, "predictions": prediction_table}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="build/run/bin/foretoken")
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--stories", nargs=2, dest="other", metavar=("TARGET", "DRAFT"),
                        help="another pair of real models")
    parser.add_argument("--prompts", metavar="FILE",
                        help="paragraphs that the real pairs continue; else the built-in prompts")
    parser.add_argument("--only", default="", metavar="NAME",
                        help="of the tables auto and temperatures, pairs whose name has this")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 4, 16], choices=[1, 4, 16],
                        help="of the table auto")
    parser.add_argument("--effort", type=int, default=1, metavar="N",
                        help="that many times the prompts, of the table auto")
    parser.add_argument("--calibrate-with", type=int, default=12, metavar="N",
                        help="prompts that calibrations for temperatures take")
    parser.add_argument("--temps", type=float, nargs="+", default=[0, 0.3, 0.7, 1, 1.3, 1.5],
                        help="of the table temperatures")
    parser.add_argument("--seed", type=int, nargs="+", default=[1],
                        help="of the settings drawn at random; a table each")
    options = parser.parse_args()
    options.pairs = {"bundled": []}
    if options.other:
        options.pairs["stories"] = ["--target", options.other[0], "--draft", options.other[1]]
    options.stories = ["--prompts", options.prompts, "--words", 20] if options.prompts else []
    TABLES[options.table](options)


if __name__ == "__main__":
    main()
