#!/usr/bin/env python3
"""Measures rollouts: tools/measure_rollout.py PROGRAM [OPTIONS] CONFIGURATION...

Each configuration is a string of options of `foretoken rollout`, such as "--mode ar --tail-mode sd"
or "" for what it does by itself. They take turns, --rounds times, at the samples of 32 prompts of
the bundled target; the table has medians, and over those of the first configuration.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import tempfile

TOPICS = ("a dragon", "a boy who finds a key", "a cat and a dog", "a rainy day",
          "a girl who loves the sea", "a big red truck", "two friends in the park", "a lost toy",
          "an old bear", "a bird that cannot fly", "a magic hat", "a small boat", "a brave mouse",
          "a birthday cake", "a garden full of flowers", "a sleepy moon", "a king and a frog",
          "a train ride", "a snowy hill", "a clever fox", "a broken cup", "a visit to grandma",
          "a shiny stone", "a new bicycle", "a tall tree", "a hungry rabbit", "a kind doctor",
          "a noisy drum", "a day at school", "a fish with a wish", "a puppy in the mud",
          "a secret door")


def rollout(options, folder, configuration):
    prompts = folder / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"id": topic, "prompt": f"Tell me a story about {topic}."})
                               + "\n" for topic in TOPICS))
    out = folder / "out.jsonl"
    out.unlink(missing_ok=True)
    report = subprocess.run(
        [options.program, "rollout", "--prompts", prompts, "-n", str(options.samples), "-o", out,
         "--batch", str(options.batch), "--max-tokens", str(options.max_tokens), "--json",
         *shlex.split(configuration)],
        check=True, text=True, stdout=subprocess.PIPE).stdout
    return json.loads(report)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("configurations", nargs="+", metavar="CONFIGURATION")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=16, help="of each of the 32 prompts")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--max-tokens", type=int, default=256)
    options = parser.parse_args()
    reports = {configuration: [] for configuration in options.configurations}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for configuration, of_it in reports.items():
                of_it.append(rollout(options, pathlib.Path(folder), configuration))
                last = of_it[-1]
                print(f"# {configuration or '(default)'}: {last['seconds']:.2f} s, the last ones "
                      f"{last['last_5_percent']['seconds']:.3f} s", flush=True)

    def median(configuration, value):
        return statistics.median(value(report) for report in reports[configuration])

    print("| options | seconds | over the first | last 5 %, seconds | over the first | "
          "tokens/s | tokens a round |\n|---|---|---|---|---|---|---|")
    first = options.configurations[0]
    for configuration in reports:
        row = [f"`{configuration}`" if configuration else "none"]
        for value in (lambda r: r["seconds"], lambda r: r["last_5_percent"]["seconds"]):
            seconds = median(configuration, value)
            row += [f"{seconds:.3g}", f"{median(first, value) / seconds:.2f}"]
        row += [f"{median(configuration, lambda r: r['tokens_per_s']):,.0f}",
                f"{median(configuration, lambda r: r['tokens_per_round']):.2f}"]
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
