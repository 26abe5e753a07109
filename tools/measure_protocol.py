#!/usr/bin/env python3
"""Times edits and tool calls: tools/measure_protocol.py PROGRAM [bench's options].

The bundled target, with room for longer texts, says prescribed answers (bench --scripted-answers):
files of 300 lines written again with 20 edits each (lines inserted, left out and replaced, words
changed), and calls of tools as a JSON Schema prescribes them, whose arguments copy from a tool's
result. So what is measured is what drafts save and cost, not what this small model would write.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("src/core/draft/model/model_drafter.cc", "src/core/engine/round/drafters.cc",
           "src/core/kv/kv_cache.cc")
WORDS = ("checked", "ready", "pending", "first", "copied", "limit")


def edited(lines, random_):
    """The lines with an edit for every fifteen of them, at least three lines apart."""
    lines = list(lines)
    places = sorted(random_.sample(range(2, len(lines) // 4 - 1), len(lines) // 15), reverse=True)
    for number, place in enumerate(4 * each for each in places):
        kind = ("insert", "change", "leave out", "replace")[number % 4]
        word = random_.choice(WORDS)
        if kind == "insert":
            lines[place:place] = [f"  // The {word} one is {word} again before it goes."]
        elif kind == "leave out":
            del lines[place]
        elif kind == "replace":
            lines[place] = f"  {word}_count += {random_.randrange(100)};"
        else:
            words = lines[place].split(" ")
            words[-1] = f"{word}({words[-1]}" if words[-1] else word
            lines[place] = " ".join(words)
    return lines


def edits(options):
    for number, source in enumerate(SOURCES[:options.files]):
        lines = (ROOT / source).read_text().splitlines()
        while len(lines) < options.lines:
            lines += lines
        lines = lines[:options.lines]
        answer = edited(lines, random.Random(number))
        yield {"prompt": "Edit this file.\n" + "\n".join(lines) + "\n", "answer": "\n".join(answer)}


def records(random_):
    names = ("Ada Byron", "Alan Turing", "Grace Hopper", "Edsger Dijkstra", "Barbara Liskov")
    streets = ("Mill Road", "High Street", "Park Lane", "Old Bridge", "Church Walk")
    return [{"id": f"C-{random_.randrange(10_000, 99_999)}", "name": name,
             "address": f"{random_.randrange(1, 200)} {random_.choice(streets)}",
             "email": name.lower().replace(" ", ".") + "@example.org"} for name in names]


SCHEMA = {"type": "object",
          "properties": {"name": {"const": "create_order"},
                         "arguments": {"type": "object",
                                       "properties": {
                                           "customer": {"type": "object",
                                                        "properties": {
                                                            each: {"type": "string"} for each in
                                                            ("id", "name", "address", "email")},
                                                        "required": ["id", "name", "address",
                                                                     "email"],
                                                        "additionalProperties": False},
                                           "quantity": {"type": "integer"},
                                           "delivery": {"enum": ["standard", "express"]},
                                           "gift_wrapping": {"type": "boolean"}},
                                       "required": ["customer", "quantity", "delivery",
                                                    "gift_wrapping"],
                                       "additionalProperties": False}},
          "required": ["name", "arguments"], "additionalProperties": False}


def calls(options):
    for number in range(4 * options.files):
        random_ = random.Random(number)
        found = records(random_)
        chosen = random_.choice(found)
        call = {"name": "create_order",
                "arguments": {"customer": chosen, "quantity": random_.randrange(1, 30),
                              "delivery": random_.choice(("standard", "express")),
                              "gift_wrapping": random_.random() < 0.5}}
        yield {"prompt": "find_customers returned:\n" + json.dumps(found) +
                         f"\nOrder for {chosen['name']}, as a call of create_order:\n",
               "answer": json.dumps(call)}


def target(folder):
    """The bundled one, which may read longer texts."""
    copy = folder / "target"
    shutil.copytree(ROOT / "models/demo-target", copy)
    config = json.loads((copy / "config.json").read_text())
    config["max_position_embeddings"] = 32768
    (copy / "config.json").write_text(json.dumps(config))
    return copy


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--lines", type=int, default=300, help="of an edited file")
    parser.add_argument("--files", type=int, default=3, help="at most 3; calls: four times as many")
    parser.add_argument("--modes", default="ar,ngram,suffix,sssd,protocol")
    parser.add_argument("--speculation-length", default="16")
    options, more = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        schema = folder / "schema.json"
        schema.write_text(json.dumps(SCHEMA))
        for kind, lines, form in (("edits", edits(options), ()),
                                  ("calls", calls(options), ("--json-schema", schema))):
            prompts = folder / f"{kind}.jsonl"
            prompts.write_text("".join(json.dumps(line) + "\n" for line in lines))
            print(f"# {kind}", flush=True)
            subprocess.run([options.program, "bench", "-m", target(folder / kind), "--modes",
                            options.modes, "--prompts", prompts, "--raw", "--scripted-answers",
                            "--only-target-cores", "-n", "20000", "--lookahead", "15",
                            "--speculation-length", options.speculation_length, *form, *more],
                           check=True)


if __name__ == "__main__":
    main()
