#!/usr/bin/env python3
"""Measures JSON Schemas beside llguidance and XGrammar, as a Markdown table.

    tools/measure_schemas.py SCHEMA_BENCH TOKENIZER_FOLDER BUILD_FOLDER [--rounds N] [--file FILE]

Each schema comes with an instance. All three compile the schema anew and then give the mask of the
whole vocabulary before each token of the instance, in alternation, N times over; the medians over
the rounds are printed: the time to compile, the mean and the greatest time of a mask. The others'
packages are installed in BUILD_FOLDER, in pinned versions. FILE, a JSON object of name: [schema,
instance], is measured instead of the schemas here.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

PACKAGES = ["llguidance==1.9.1", "xgrammar==0.2.8", "tokenizers==0.23.3", "numpy"]

PERSON = {"type": "object", "properties": {
    "name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "email": {"type": "string", "format": "email"},
    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
    "address": {"type": "object", "properties": {
        "street": {"type": "string"}, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}},
        "required": ["street", "zip"], "additionalProperties": False}},
    "required": ["name", "age", "email", "tags", "address"], "additionalProperties": False}
SHAPES = [{"type": "object", "properties": {
    "kind": {"const": kind}, **{side: {"type": "number"} for side in sides}},
    "required": ["kind", *sides], "additionalProperties": False}
    for kind, sides in [("circle", ["radius"]), ("square", ["side"]),
                        ("rectangle", ["width", "height"]), ("triangle", ["a", "b", "c"])]]

CASES = {
    "person": (PERSON, {"name": "Ada Lovelace", "age": 36, "email": "ada@example.org",
                        "tags": ["mathematics", "poetry"],
                        "address": {"street": "12 St James's Square", "zip": "10115"}}),
    "safe integers": ({"type": "object", "properties": {
        "id": {"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991},
        "count": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9007199254740991}},
        "required": ["id", "count"], "additionalProperties": False},
        {"id": 1234567890123, "count": 42}),
    "multiples": ({"type": "object", "properties": {
        "price": {"type": "number", "multipleOf": 0.01, "minimum": 0},
        "minutes": {"type": "integer", "multipleOf": 15, "maximum": 1440}},
        "required": ["price", "minutes"], "additionalProperties": False},
        {"price": 1234.56, "minutes": 1065}),
    "pattern and length": ({"type": "object", "properties": {
        "user": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$", "minLength": 3,
                 "maxLength": 40}},
        "required": ["user"], "additionalProperties": False},
        {"user": "the_quick_brown_fox_jumps_7"}),
    "Unicode letters": ({"type": "object", "properties": {
        "name": {"type": "string", "pattern": "^\\p{L}[\\p{L}\\p{M}' -]*$"}},
        "required": ["name"], "additionalProperties": False}, {"name": "Zoë d'Ångström-Müller"}),
    "emoji": ({"type": "object", "properties": {
        "mood": {"type": "string",
                 "pattern": "^(\\p{Extended_Pictographic}|\\p{Emoji_Component})+$"}},
        "required": ["mood"], "additionalProperties": False}, {"mood": "😀👍🏽🎉"}),
    "formats": ({"type": "object", "properties": {
        "at": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"},
        "id": {"type": "string", "format": "uuid"}, "host": {"type": "string", "format": "ipv4"},
        "link": {"type": "string", "format": "uri"}},
        "required": ["at", "day", "id", "host", "link"], "additionalProperties": False},
        {"at": "2024-02-29T23:59:59.250Z", "day": "2023-12-31",
         "id": "01234567-89ab-4def-8123-456789abcdef", "host": "192.168.10.254",
         "link": "https://example.org/a/b?c=d#e"}),
    "shapes (anyOf)": ({"type": "array", "items": {"anyOf": SHAPES}},
                       [{"kind": "circle", "radius": 2.5}, {"kind": "rectangle", "width": 3,
                                                            "height": 4.75}]),
    "node (recursive)": ({"$ref": "#/$defs/node", "$defs": {"node": {
        "type": "object", "properties": {"name": {"type": "string"}, "children": {
            "type": "array", "items": {"$ref": "#/$defs/node"}}},
        "required": ["name", "children"], "additionalProperties": False}}},
        {"name": "root", "children": [{"name": "left", "children": []}, {"name": "right",
                                                                      "children": []}]}),
    "open names": ({"type": "object", "properties": {
        "id": {"type": "integer"}, "title": {"type": "string"}, "identity": {"type": "string"}},
        "required": ["id"], "additionalProperties": {"type": "number"}},
        {"id": 7, "title": "A long walk", "weight": 2.5, "idle": 1}),
    "200 properties": ({"type": "object", "properties": {
        f"property_{i}": {"type": "string" if i % 2 else "integer"} for i in range(200)},
        "additionalProperties": False},
        {f"property_{i}": "a few words" if i % 2 else i for i in range(0, 200, 10)}),
    "500 choices": ({"enum": [f"choice number {i}" for i in range(500)]}, "choice number 417"),
}


def install(folder):
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    if subprocess.run([python, "-c", "import llguidance, xgrammar, tokenizers"],
                      capture_output=True).returncode != 0:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


class Ours:
    name = "foretoken"

    def __init__(self, program, folder):
        self.process = subprocess.Popen([program, folder], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def measure(self, schema, tokens):
        self.process.stdin.write(json.dumps({"schema": schema, "tokens": tokens}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return None if "refused" in answer else (answer["compile_us"], answer["mask_us"])


def microseconds(run):
    begin = time.perf_counter()
    result = run()
    return result, (time.perf_counter() - begin) * 1e6


class Llguidance:
    name = "llguidance"

    def __init__(self, folder):
        import llguidance
        import llguidance.hf  # noqa: F401
        import llguidance.numpy
        import tokenizers
        self.llguidance = llguidance
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer = llguidance.LLTokenizer(tokenizer.to_str())
        self.mask = llguidance.numpy.allocate_token_bitmask(1, self.tokenizer.vocab_size)

    def measure(self, schema, tokens):
        matcher_of = self.llguidance.LLMatcher

        def compiled():
            matcher = matcher_of(self.tokenizer, matcher_of.grammar_from_json_schema(schema))
            return None if matcher.is_error() else matcher
        matcher, compile_us = microseconds(compiled)
        if matcher is None:
            return None
        fill = self.llguidance.numpy.fill_next_token_bitmask
        masks = []
        for token in tokens:
            masks.append(microseconds(lambda: fill(matcher, self.mask))[1])
            if not matcher.consume_token(token):
                return None
        masks.append(microseconds(lambda: fill(matcher, self.mask))[1])
        return compile_us, masks


class Xgrammar:
    name = "XGrammar"

    def __init__(self, folder):
        import tokenizers
        import xgrammar
        self.xgrammar = xgrammar
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        names = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        self.info = xgrammar.TokenizerInfo(
            [name for name, _ in names], vocab_type=xgrammar.VocabType.BYTE_LEVEL,
            stop_token_ids=[tokenizer.token_to_id("<|im_end|>") or 0])
        self.mask = xgrammar.allocate_token_bitmask(1, self.info.vocab_size)

    def measure(self, schema, tokens):
        compiler = self.xgrammar.GrammarCompiler(self.info, max_threads=1, cache_enabled=False)
        try:
            grammar, compile_us = microseconds(lambda: compiler.compile_json_schema(
                schema, strict_mode=False))
        except RuntimeError:
            return None
        matcher = self.xgrammar.GrammarMatcher(grammar)
        masks = []
        for token in tokens:
            masks.append(microseconds(lambda: matcher.fill_next_token_bitmask(self.mask))[1])
            if not matcher.accept_token(token):
                return None
        masks.append(microseconds(lambda: matcher.fill_next_token_bitmask(self.mask))[1])
        return compile_us, masks


def measure(options):
    import tokenizers
    folder = options.tokenizer
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    engines = [Ours(options.program, folder), Llguidance(folder), Xgrammar(folder)]
    cases = CASES if options.file is None else json.loads(options.file.read_text())
    columns = [f"{engine.name} {what}" for what in ("compile, µs", "mask, µs", "worst mask, µs")
               for engine in engines]
    print("| Schema | tokens | " + " | ".join(columns) + " |")
    print("|" + "---|" * (len(columns) + 2))
    for name, (schema, instance) in cases.items():
        text = json.dumps(instance, ensure_ascii=False)
        tokens = tokenizer.encode(text, add_special_tokens=False).ids
        runs = {engine.name: [] for engine in engines}
        for _ in range(options.rounds):
            for engine in engines:
                runs[engine.name].append(engine.measure(json.dumps(schema), tokens))
        cells = []
        for of in (lambda run: run[0], lambda run: statistics.mean(run[1]),
                   lambda run: max(run[1])):
            for engine in engines:
                results = runs[engine.name]
                known = None not in results
                cells.append(f"{statistics.median(map(of, results)):.0f}" if known else "-")
        print(f"| {name} | {len(tokens)} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("tokenizer", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--file", type=pathlib.Path)
    options = parser.parse_args()
    if "MEASURE_SCHEMAS" not in os.environ:
        python = install(options.build)
        os.execve(python, [str(python), *sys.argv], {**os.environ, "MEASURE_SCHEMAS": "1"})
    measure(options)


if __name__ == "__main__":
    main()
