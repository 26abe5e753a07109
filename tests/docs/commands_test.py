#!/usr/bin/env python3
"""The commands in the project's documents: commands_test.py PROGRAM SOURCE_DIRECTORY. Every command
line of the program in a fenced block names a command and options that the program has, the
reference of options is the one that the program gives, and the quick start runs as it stands."""

import difflib
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from documents import documents, fences, read, without_fences

PROGRAM = os.path.abspath(sys.argv.pop(1))
SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SOURCE / "tools"))
import write_options  # noqa: E402  (of SOURCE/tools)

NAMES = {"foretoken", "./run", "../run", "build/run/bin/foretoken"}
NAMED = re.compile("(?:" + "|".join(map(re.escape, sorted(NAMES))) + r")\b")
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z_0-9]*=")
OPERATORS = re.compile(r"[();<>|&]+")
LAB = SOURCE / "lab"  # Says what was run at its time.


def manual():
    return subprocess.run([PROGRAM, "man"], capture_output=True, text=True, check=True).stdout


def simple_commands(block):
    """The commands in those lines of a block that name the program, as lists of words."""
    for line in block.replace("\\\n", " ").splitlines():
        if not NAMED.search(line):
            continue
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        command, redirects = [], False
        for word in [*lexer, ";"]:
            if OPERATORS.fullmatch(word):
                redirects = word.startswith((">", "<"))
                if not redirects and command:
                    yield command
                    command = []
            elif redirects:
                redirects = False  # The file of a redirection.
            elif command or not ASSIGNMENT.match(word):
                command.append(word)


class Interface:
    """The commands and options of the program, from its manual page."""

    def __init__(self, page):
        self.options = {}  # By command: whether an option takes a value, by its names.
        for command in write_options.read_commands(page):
            known = self.options[command.name] = {}
            for option in command.options:
                if option.is_argument:
                    continue
                names, _, value = re.fullmatch(r"(-[^ ,]*(?:, -[^ ,]*)*)( (.*))?",
                                               option.heading).groups()
                for name in names.split(", ") + re.findall(r"\(?also (-[a-z]+)\b", option.text):
                    known[name] = value is not None

    def fault(self, words):
        """Why the program would refuse these words behind its name, or None."""
        if not words or words[0].startswith("-"):  # `./run` alone, or an option of the program's.
            return None if not words or words[0] in ("--help", "--version") else "no command"
        name, rest = words[0], words[1:]
        if rest and f"{name} {rest[0]}" in self.options:
            name, rest = f"{name} {rest[0]}", rest[1:]
        if name not in self.options:
            return f"there is no command {name}"
        known = self.options[name]
        while rest:
            word, *rest = rest
            if not re.match(r"--?[A-Za-z]", word):
                continue
            option, equals, _ = word.partition("=")
            if option not in known and re.fullmatch(r"-[a-z].+", option):
                option, equals = (option[:2], "=") if option[:2] in known else (option, equals)
            if option not in known:
                return f"{name} has no option {option}"
            if known[option] and not equals:
                if not rest:
                    return f"{name}: {option} lacks its value"
                rest = rest[1:]
        return None


class CommandsTest(unittest.TestCase):
    def test_every_command_line_is_one_that_the_program_takes(self):
        interface = Interface(manual())
        faults, count = [], 0
        for path in documents(SOURCE):
            if LAB in path.parents:
                continue
            for language, block in fences(read(path)):
                if language not in ("", "sh", "bash", "console"):
                    continue
                for words in simple_commands(block):
                    if words[0] not in NAMES:
                        continue
                    count += 1
                    why = interface.fault(words[1:])
                    if why:
                        faults.append(f"{path.relative_to(SOURCE)}: {shlex.join(words)}: {why}")
        self.assertEqual(faults, [], "\n" + "\n".join(faults))
        self.assertGreater(count, 50)

    def test_commands_stand_in_fenced_blocks(self):
        indented = re.compile(r"^ {4}(?:foretoken|\./run) .*$", re.MULTILINE)
        found = [f"{path.relative_to(SOURCE)}: {line.strip()}" for path in documents(SOURCE)
                 if LAB not in path.parents
                 for line in indented.findall(without_fences(read(path)))]
        self.assertEqual(found, [])

    def test_the_reference_of_options_is_the_programs(self):
        kept = read(SOURCE / "docs" / "look_up" / "options.md").splitlines()
        given = write_options.write(manual()).splitlines()
        changes = list(difflib.unified_diff(kept, given, "options.md", "the program", n=0,
                                            lineterm=""))
        self.assertEqual(changes, [], "write it anew: tools/write_options.py PROGRAM > "
                         "docs/look_up/options.md\n" + "\n".join(changes[:20]))


class QuickStartTest(unittest.TestCase):
    """Runs the quick start's blocks in order; one that serves runs beside those behind it."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_docs."))
        self.addCleanup(shutil.rmtree, self.folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        run = self.folder / "run"  # ./run without building.
        run.write_text(f'#!/bin/sh\n[ $# -gt 0 ] || set -- demo\n'
                       f'exec {shlex.quote(PROGRAM)} "$@"\n')
        run.chmod(0o755)
        (self.folder / "models").symlink_to(SOURCE / "models")
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("FORETOKEN_")}
        self.environment.update(FORETOKEN_PORT=str(self.port), NO_COLOR="",
                                XDG_CONFIG_HOME=str(self.folder / "config"),
                                XDG_CACHE_HOME=str(self.folder / "cache"))

    def serve(self, block):
        server = subprocess.Popen(["bash", "-c", "exec " + block.strip()], cwd=self.folder,
                                  env=self.environment, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return
            except (urllib.error.URLError, ConnectionError):
                self.assertLess(time.monotonic(), deadline, "the server does not answer")
                self.assertIsNone(server.poll(), "the server has ended")
                time.sleep(0.05)

    def test_the_quick_start_runs_as_it_stands(self):
        ran = 0
        for language, block in fences(read(SOURCE / "docs" / "start" / "quick_start.md")):
            if language != "sh":
                continue
            block = block.replace("8080", str(self.port))
            if re.match(r"\./run serve\b", block):
                self.serve(block)
                continue
            if "curl" in block and not shutil.which("curl"):
                continue
            result = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=self.folder,
                                    env=self.environment, capture_output=True, text=True,
                                    timeout=300, check=False)
            self.assertEqual(result.returncode, 0, block + result.stdout + result.stderr)
            self.assertTrue(result.stdout.strip(), block)
            self.assertNotIn('"error"', result.stdout, block)
            ran += 1
        self.assertGreaterEqual(ran, 5)


if __name__ == "__main__":
    unittest.main()
