#!/usr/bin/env python3
"""Texts from other systems, and what a model writes on a terminal, with the bundled models:
texts_test.py PROGRAM SOURCE_DIRECTORY [TEST]..."""

import json
import pathlib
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from command_line import PROGRAM, CliTest
from serving import Serving

# As editors of other systems save a text: with a mark at its beginning, in UTF-16.
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le-sig", "utf-16-be-sig")
TEXT = "Once upon a time, é and 😀\nwere friends"


def encoded(text, encoding):
    if encoding.endswith("-sig") and encoding != "utf-8-sig":
        return ("\ufeff" + text).encode(encoding.removesuffix("-sig"))
    return text.encode(encoding)


class Texts(CliTest):
    def write(self, text, encoding, line_end="\n"):
        path = self.folder / f"text-{encoding}"
        path.write_bytes(encoded(text.replace("\n", line_end), encoding))
        return path

    def tokens(self, *options):
        return json.loads(self.succeed("tokenize", "--json", *options).stdout)

    def test_prompts(self):
        expected = self.tokens(TEXT)
        report = json.loads(self.succeed("run", TEXT, "-n", 4, "--json").stdout)
        for encoding in ENCODINGS:
            self.assertEqual(self.tokens("-f", self.write(TEXT, encoding)), expected, encoding)
            for end in ("\n", "\r\n"):
                # The end of the last line is not part of the prompt.
                path = self.write(TEXT + end, encoding)
                same = json.loads(self.succeed("run", "-f", path, "-n", 4, "--json").stdout)
                self.assertEqual(same["tokens"], report["tokens"], (encoding, end))

    def test_what_options_name(self):
        grammar = '# A comment\nroot ::= "yes" |\n  "no"\n'
        schema = '{\n"enum": ["yes", "no"]\n}\n'
        template = "{% for m in messages %}\n{{ m.content }}\n{% endfor %}"
        plain = self.write(template, "utf-8")
        expected = self.tokens("--chat", "--chat-template", plain, "Hi")
        for encoding in ENCODINGS:
            for end in ("\n", "\r\n"):
                path = self.write(grammar, encoding, end)
                said = self.succeed("run", "Say:", "-n", 9, "--grammar", path).stdout
                self.assertIn(said.strip(), ("yes", "no"), (encoding, end))
                path = self.write(schema, encoding, end)
                said = self.succeed("run", "Say:", "-n", 9, "--json-schema", path).stdout
                self.assertIn(said.strip(), ('"yes"', '"no"'), (encoding, end))
                path = self.write(template, encoding, end)
                self.assertEqual(self.tokens("--chat", "--chat-template", path, "Hi"), expected,
                                 (encoding, end))

    def test_settings_and_prompt_sets(self):
        for encoding in ENCODINGS:
            for end in ("\n", "\r\n"):
                path = self.write("max-tokens = 3\n[run]\nmode = \"ar\"\n", encoding, end)
                report = json.loads(self.succeed("run", "x", "--json", "--config", path).stdout)
                self.assertEqual((len(report["tokens"]), report["mode"]), (3, "ar"), encoding)
                path = self.write("One cat\nsat.\n\nTwo dogs\nran.\n", encoding, end)
                report = json.loads(self.succeed(
                    "verify", "--prompts", path, "-n", 4, "--modes", "ngram", "--batches", "1",
                    "--temps", "0", "--json", "-").stdout)
                self.assertTrue(report["identical"])
                self.assertEqual(report["prompts"], 2)

    def test_keys(self):
        for encoding in ENCODINGS:
            path = self.write("# ours\nada secret-of-ada\n", encoding, "\r\n")
            with Serving(PROGRAM, "--api-key-file", path) as server:
                self.assertEqual(server.get("/v1/models")[0], 401)
                answer = server.get("/v1/models", headers={"Authorization": "Bearer secret-of-ada"})
                self.assertEqual(answer[0], 200)

    def test_what_is_neither(self):
        for encoding in ("utf-32", "utf-16"):
            path = self.write("root ::= [ab]*", encoding)
            if encoding == "utf-16":
                path.write_bytes(path.read_bytes()[:-1])
            self.refuse("run", "-f", path, saying="save it as UTF-8")
            self.refuse("run", "x", "--grammar", path, saying="save it as UTF-8")
            self.refuse("run", "x", "--config", path, saying="save it as UTF-8")


class Terminals(CliTest):
    def shown(self, *arguments):
        return self.shown_on_a_terminal(*arguments, stream="stdout").decode()

    def test_no_text_commands_the_terminal(self):
        grammar = self.folder / "title.gbnf"
        grammar.write_text(r'root ::= "\x1b]0;title\x07\x1b[2J\u009b1m"')
        command = ("run", "Say:", "-n", "40", "--color", "never", "--grammar", grammar)
        self.assertIn("␛]0;title␇␛[2J\ufffd1m", self.shown(*command))
        self.assertIn("Say:␛[31m", self.shown("run", "Say:\x1b[31m", "-n", 1, "--color", "never"))
        # A file has what the model wrote.
        self.assertIn("\x1b]0;title\x07\x1b[2J\u009b1m", self.succeed(*command).stdout)


if __name__ == "__main__":
    unittest.main()
