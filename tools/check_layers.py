#!/usr/bin/env python3
"""Checks that each layer of src/ includes only the layers that it may.

The truth is src/CMakeLists.txt: foretoken_layer(NAME DEPENDS ...) lets NAME include itself, the
layers it names and what those name in turn. Layers are declared bottom-up, so a dependency on a
layer that is declared later (or never) is refused, and with it every cycle.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DECLARATIONS = "src/CMakeLists.txt"
LAYER = re.compile(r"foretoken_layer\s*\(([^)]*)\)")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def parse_layers(text, problems):
    """Returns {layer: set of layers it may include, itself among them}."""
    text = re.sub(r"#[^\n]*", "", text)
    allowed = {}
    for match in LAYER.finditer(text):
        where = f"{DECLARATIONS}:{line_of(text, match.start())}"
        name, *words = match.group(1).split()
        depends = []
        section = None
        for word in words:
            if word in ("DEPENDS", "LIBRARIES", "TEST_PROPERTIES"):
                section = word
            elif section == "DEPENDS":
                depends.append(word)
        if name in allowed:
            problems.append(f"{where}: layer '{name}' is declared twice")
        allowed[name] = {name}
        for layer in depends:
            if layer not in allowed or layer == name:
                problems.append(
                    f"{where}: '{name}' depends on '{layer}', which is not declared above it")
            else:
                allowed[name] |= allowed[layer]
    return allowed


def check_file(path, layer, allowed, problems):
    text = path.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        included = match.group(1)
        where = f"{path.relative_to(ROOT)}:{line_of(text, match.start(1))}"
        if not (ROOT / "src" / included).is_file():
            problems.append(f'{where}: "{included}" is not a file below src/; '
                            "name it by its path from there")
        elif included.split("/")[0] not in allowed[layer]:
            problems.append(f"{where}: layer '{layer}' may not include \"{included}\"; it may "
                            f"include {', '.join(sorted(allowed[layer]))}")


def main():
    problems = []
    allowed = parse_layers((ROOT / DECLARATIONS).read_text(encoding="utf-8"), problems)
    files = 0
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in (".h", ".cc", ".inc", ".cu", ".cuh"):
            continue
        layer = path.relative_to(ROOT / "src").parts[0]
        if layer not in allowed:
            problems.append(f"{path.relative_to(ROOT)}: its folder is not a layer of "
                            f"{DECLARATIONS}")
            continue
        check_file(path, layer, allowed, problems)
        files += 1
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    print(f"layers: {files} files of {len(allowed)} layers include only what they may")
    return 0


if __name__ == "__main__":
    sys.exit(main())
