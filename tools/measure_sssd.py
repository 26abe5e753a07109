#!/usr/bin/env python3
"""Measures retrieval drafting: tools/measure_sssd.py replay|end-to-end [OPTIONS]

replay: the paper's Figure 4. Accepted tokens per step against s_q with the input, the datastore and
both, on streams that the bundled target has generated and on recorded text, each against a datastore
of other texts of the same kind. No model runs while it is measured.

end-to-end: acceptance and speed against ar. Batch 1: sssd and its rivals cold, then with a datastore
of the target's own outputs to other prompts. Batch 8: ssd with every fallback, with that datastore
where it is retrieval.

Prompts are JSON lines, as `foretoken bench` reads them; the first ones fill the datastore, the last
ones are measured. Prints tables; --out keeps the reports.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import tempfile
import urllib.error
import urllib.request


def foretoken(options, *arguments):
    command = [options.program, *map(str, arguments)]
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def split(path, folder, fill, measure):
    """The first `fill` and the last `measure` lines of a file, as two files."""
    lines = pathlib.Path(path).read_text().splitlines(keepends=True)
    if len(lines) < fill + measure:
        raise SystemExit(f"{path} has {len(lines)} prompts; --fill and --measure want "
                         f"{fill + measure}")
    parts = []
    for name, part in (("fill", lines[:fill]), ("measure", lines[-measure:])):
        parts.append(folder / f"{pathlib.Path(path).stem}.{name}.jsonl")
        parts[-1].write_text("".join(part))
    return parts


def learn(options, prompts, store):
    """Fills a datastore with the target's outputs to `prompts`."""
    foretoken(options, "bench", "--modes", "ssd", "-b", 16, "-n", options.max_tokens, "--prompts",
              prompts, "--datastore", store, "--learn", "--json", "-")


def generate(options, prompts):
    """A file with every prompt and the target's answer to it, as one text a line."""
    server = subprocess.Popen([options.program, "serve", "--port", "0", "--temp", "0"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        address = re.search(r"http://\S+", server.stdout.readline()).group()

        def answer(line):
            prompt = json.loads(line)
            text = prompt.get("prompt") or prompt.get("question") or prompt["turns"][0]
            body = {"messages": [{"role": "user", "content": text}],
                    "max_tokens": options.max_tokens}
            request = urllib.request.Request(f"{address}/v1/chat/completions",
                                             json.dumps(body).encode(),
                                             {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request) as reply:
                    choice = json.load(reply)["choices"][0]
            except urllib.error.HTTPError as error:
                if error.code != 400:
                    raise
                return ""  # Longer than the model's context.
            return json.dumps({"text": text + "\n" + choice["message"]["content"]}) + "\n"

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            texts = list(pool.map(answer, prompts.read_text().splitlines()))
    finally:
        server.terminate()
        server.wait()
    path = prompts.with_suffix(".generated.jsonl")
    path.write_text("".join(texts))
    return path


def show_replay(title, report):
    points = report["points"]
    lengths = sorted({point["speculation_length"] for point in points})
    print(f"\n{title}: {report['streams']} streams, {report['datastore_tokens']} tokens stored; "
          "accepted tokens per step")
    print(f"{'s_q':16}" + "".join(f"{length:8}" for length in lengths))
    for source in dict.fromkeys(point["source"] for point in points):
        row = {point["speculation_length"]: point["accepted_per_step"] for point in points
               if point["source"] == source}
        print(f"{source:16}" + "".join(f"{row[length]:8.2f}" for length in lengths))


def replay(options, folder):
    for path in options.prompts:
        fill, measure = split(path, folder, options.fill, options.measure)
        stem = pathlib.Path(path).stem
        for kind, stored, streams in (
                ("generated", generate(options, fill), generate(options, measure)),
                ("recorded", fill, measure)):
            store = folder / f"{stem}.{kind}"
            foretoken(options, "datastore", "build", "-d", store, stored)
            yield f"{stem}, {kind}", json.loads(foretoken(
                options, "datastore", "replay", "-d", store, "--json", streams))


def bench(options, measure, modes, *more):
    return json.loads(foretoken(options, "bench", "--modes", modes, "--only-target-cores", "-n",
                                options.max_tokens, "--prompts", measure, "--json", "-", *more))


def show_bench(title, report):
    for found in report["sets"]:
        for mode in found["modes"]:
            line = f"{title:40} {mode['mode']:6} {mode['tokens_per_s']['median']:8.1f} tokens/s"
            if "speedup" in mode:
                line += f"  x {mode['speedup']['value']:.2f}"
            if "acceptance_length" in mode:
                line += f", {mode['acceptance_length']:.2f} tokens/round"
            if "hit_rate" in mode:
                line += ", hits " + ", ".join(f"{name} {rate:.0%}" for name, rate in
                                              mode["hit_rate"].items() if rate is not None)
            print(line)


def end_to_end(options, folder):
    for path in options.prompts:
        fill, measure = split(path, folder, options.fill, options.measure)
        stem = pathlib.Path(path).stem
        store = folder / f"{stem}.store"
        learn(options, fill, store)
        auto = ("--speculation-length", "auto")
        yield (f"{stem}, cold", bench(options, measure, "ar,sssd,trie,ngram,ssd", *auto))
        yield (f"{stem}, datastore",
               bench(options, measure, "ar,sssd,rest,ssd", *auto, "--datastore", store))
        yield (f"{stem}, batch 8",
               bench(options, measure, "ar,ssd", "-b", 8, "--compare-fallbacks",
                     "none,jit,retrieval", "--datastore", store))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["replay", "end-to-end"])
    parser.add_argument("--program", default="build/run/bin/foretoken")
    parser.add_argument("--prompts", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--fill", type=int, default=48, help="prompts that fill the datastore")
    parser.add_argument("--measure", type=int, default=24, help="prompts that are measured")
    parser.add_argument("--max-tokens", type=int, default=192)
    parser.add_argument("--out", type=pathlib.Path, help="a file for all reports as JSON")
    options = parser.parse_args()
    measure, show = ((replay, show_replay) if options.what == "replay"
                     else (end_to_end, show_bench))
    reports = {}
    with tempfile.TemporaryDirectory() as folder:
        for title, report in measure(options, pathlib.Path(folder)):
            show(title, report)
            reports[title] = report
    if options.out is not None:
        options.out.write_text(json.dumps(reports, indent=2) + "\n")


if __name__ == "__main__":
    main()
