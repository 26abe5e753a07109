#!/usr/bin/env python3
"""Holds the grammars of what zod writes for its own types against zod itself:
zod_types_test.py SCHEMA_CHECK BUILD_FOLDER

All types together compile. A text that the grammar of a type lets through is one that zod takes,
and examples of each type are let through. npm installs zod in BUILD_FOLDER in a pinned version; skips
(exit code 77) without node or where npm reaches no registry."""

import json
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(SOURCE.parent))
import npm_packages
from checking import Comparison

UUID = "0f8fad5b-d9cb-{}69f-a165-70867728950e"
EXAMPLES = {
    "string": ["", "é"], "email": ["ada@example.org"], "url": ["https://example.org/a?b=c#d"],
    "httpUrl": ["https://example.org"], "uuid": [UUID.format(4)], "uuidv4": [UUID.format(4)],
    "uuidv6": [UUID.format(6)], "uuidv7": [UUID.format(7)], "guid": [UUID.format(9)],
    "hostname": ["example.org"], "emoji": ["😀"], "base64": ["aGk=", "aGVsbG8h"],
    "base64url": ["aGVs", "-_-_"], "hex": ["0aF"], "jwt": ["eyJhbGciOiJIUzI1NiJ9.e30.c2ln"],
    "nanoid": ["V1StGXR8_Z5jdHi6B-myT"], "cuid": ["cjld2cjxh0000qzrmn831i7rn"],
    "cuid2": ["tz4a98xx"],
    "ulid": ["01ARZ3NDEKTSV4RRFFQ69G5FAV"], "xid": ["9m4e2mr0ui3e8a215n4g"],
    "ksuid": ["0ujtsYcgvSTl8PAuAdqWYSMnLOv"], "ipv4": ["10.1.2.3"], "ipv6": ["2001:db8::1", "::1"],
    "mac": ["00:1A:2B:3C:4D:5E"], "cidrv4": ["10.0.0.0/8"], "cidrv6": ["2001:db8::/32"],
    "e164": ["+4930123456"], "sha256": ["ab" * 32], "date": ["2024-02-29"], "time": ["12:00:00"],
    "datetime": ["2024-02-29T12:00:00Z"], "duration": ["P1DT2H", "P3W"], "lowercase": ["é b"],
    "startsWith": ["a b"], "includes": ["abc"], "regex": ["aaa"], "template": ["a1.5-x", "a-3-x"],
    "int": [], "int32": [], "uint32": [], "float32": [], "number": [],
}
WIDER = ("jwt", "url", "httpUrl")  # A JSON Schema cannot say which.
WRONG = ["no", "10.1.2.3/33", "256.1.1.1", "2001:db8::1::", "aGk", "https://", "@example.org", "P",
         "2024-02-30", "25:00:00Z", "1.2.3", UUID.format(4)[:-1], "a1.5-y", "+0", "B", "é"]


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    npm_packages.install(SOURCE / "zod", folder)
    texts = [*dict.fromkeys(text for own in EXAMPLES.values() for text in own), *WRONG]
    said = subprocess.run(["node", "schemas.mjs"], cwd=folder, input=json.dumps(texts), text=True,
                          capture_output=True, check=True)
    types = json.loads(said.stdout)
    if set(types) != {*EXAMPLES, "all"}:
        sys.exit(f"there are other types: {set(types) ^ set(EXAMPLES)}")
    comparison = Comparison(program, texts)
    comparison.compile("all", types.pop("all")["schema"])
    for name, kind in types.items():
        taken = dict(zip(texts, kind["taken"]))
        untaken = [text for text in EXAMPLES[name] if not taken[text]]
        if untaken:
            sys.exit(f"{name}: zod does not take {untaken}")
        comparison.add(name, kind["schema"], EXAMPLES[name],
                       lambda text: name in WIDER or taken[text])
    comparison.end(least=1500)


if __name__ == "__main__":
    main()
