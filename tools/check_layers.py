#!/usr/bin/env python3
"""Checks that every folder includes only the folders that it may.

The truth is in the CMake files, bottom-up, so that there is no cycle:
- src/CMakeLists.txt: foretoken_layer(FOLDER DEPENDS ...) lets the layer src/FOLDER include itself
  and the layers it names, and no others.
- apps/CMakeLists.txt and those of bench, tests and examples: foretoken_room(FOLDER DEPENDS ...) does
  the same for a folder, which may name layers and earlier rooms. A room's folder includes what lies
  in folders of its own that are no rooms.
Above the folders stand the wings: `core` and `text` name nothing of each other, and neither of them
nor apps/foretoken, the program, names what WINGS does not let it.
A folder that is named and of which nothing is included is refused too: names are to be believed.
Everybody may include the public headers, include/foretoken, which include each other and the
standard library only.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PUBLIC = "foretoken"
DECLARATION = re.compile(r"foretoken_(layer|room)\s*\(([^)]*)\)")
SECTIONS = ("DEPENDS", "LINKS", "LIBRARIES", "TESTS")
KINDS = ("COLD", "HOT")
# What a wing may name, by beginnings; folders of no wing may name everything.
WINGS = {
    "core/": ("base", "json", "core/"),
    "text/": ("base", "json", "text/"),
    "door/": ("base", "json", "core/", "text/", "door/"),
    "apps/foretoken": ("base", "json", "core/", "text/", "door/", "apps/foretoken"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s*("[^"]+"|<[^>]+>)', re.MULTILINE)
SOURCES = (".h", ".cc", ".inc", ".cu", ".cuh")


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class Checker:
    def __init__(self):
        self.allowed = {}  # The layers and rooms that each of them may include, itself among them.
        # Where each layer and room is declared, and what it names and has never included.
        self.unused = {}
        self.problems = []
        self.files = 0

    def declare(self, file):
        """Takes in the declarations of a CMake file."""
        text = re.sub(r"#[^\n]*", "", (ROOT / file).read_text(encoding="utf-8"))
        for match in DECLARATION.finditer(text):
            where = f"{file}:{line_of(text, match.start())}"
            name, *words = match.group(2).split()
            depends = []
            section = None
            for word in words:
                if word in KINDS:
                    continue
                if word in SECTIONS:
                    section = word
                elif section == "DEPENDS":
                    depends.append(word)
            if name in self.allowed:
                self.problems.append(f"{where}: '{name}' is declared twice")
            for folder in depends:
                if folder not in self.allowed or folder == name:
                    self.problems.append(
                        f"{where}: '{name}' depends on '{folder}', which is not declared above it")
            for folder in depends:
                if not self.in_reach(name, folder):
                    self.problems.append(
                        f"{where}: '{name}' may not depend on '{folder}', which is in another wing")
            self.allowed[name] = {name, *depends}
            self.unused[name] = (where, set(depends))

    @staticmethod
    def in_reach(name, folder):
        """Whether the wing of `name` may name `folder`."""
        for wing, reach in WINGS.items():
            if name.startswith(wing):
                return folder.startswith(reach)
        return True

    def owner(self, path):
        """The layer or room that a path, from src/ or the root, belongs to."""
        parts = pathlib.PurePath(path).parts[:-1]
        for count in range(len(parts), 0, -1):
            name = "/".join(parts[:count])
            if name in self.allowed:
                return name
        return None

    def check_file(self, path, folder):
        text = path.read_text(encoding="utf-8")
        self.files += 1
        for match in INCLUDE.finditer(text):
            written = match.group(1)
            included = written[1:-1]
            where = f"{path.relative_to(ROOT)}:{line_of(text, match.start(1))}"
            if included.split("/")[0] == PUBLIC:
                if not (ROOT / "include" / included).is_file():
                    self.problems.append(f"{where}: {written} is not a public header")
            elif folder == PUBLIC:
                if written[0] == '"' or "." in included or "/" in included:
                    self.problems.append(f"{where}: public headers include only each other and "
                                         f"the standard library, not {written}")
            elif written[0] == '"':
                self.check_include(where, folder, included)

    def check_include(self, where, folder, included):
        owner = self.owner(included)
        if not any((ROOT / base / included).is_file() for base in ("src", ".")):
            self.problems.append(f'{where}: "{included}" is not a file below src/ or the root; '
                                 "name it by its path from there")
        elif owner not in self.allowed[folder]:
            self.problems.append(f"{where}: '{folder}' may not include \"{included}\"; it may "
                                 f"include {', '.join(sorted(self.allowed[folder]))}")
        else:
            self.unused[folder][1].discard(owner)

    def check_unused(self):
        for name, (where, folders) in self.unused.items():
            for folder in sorted(folders):
                self.problems.append(f"{where}: '{name}' includes nothing of '{folder}', which it "
                                     "names; LINKS is for what is only linked")

    def check_tree(self, top, base):
        """Checks all sources below `top`; folders are named from `base` on."""
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            folder = PUBLIC if top == "include" else self.owner(path.relative_to(ROOT / base))
            if folder is None:
                self.problems.append(f"{path.relative_to(ROOT)}: its folder is not declared")
                continue
            self.check_file(path, folder)


def main():
    checker = Checker()
    for file in ("src/CMakeLists.txt", "apps/CMakeLists.txt", "bench/CMakeLists.txt",
                 "tests/CMakeLists.txt", "examples/CMakeLists.txt"):
        checker.declare(file)
    checker.check_tree("include", ".")
    checker.check_tree("src", "src")
    checker.check_tree("apps", ".")
    checker.check_tree("bench", ".")
    checker.check_tree("tests", ".")
    checker.check_tree("examples", ".")
    checker.check_unused()
    for problem in checker.problems:
        print(problem, file=sys.stderr)
    if checker.problems:
        return 1
    print(f"layers: {checker.files} files of {len(checker.allowed)} layers and rooms include only "
          "what they may")
    return 0


if __name__ == "__main__":
    sys.exit(main())
