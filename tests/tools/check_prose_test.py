#!/usr/bin/env python3
"""tools/check_prose.py: check_prose_test.py SOURCE_DIRECTORY [TEST]..."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SOURCE / "tools"))
import check_prose  # pylint: disable=wrong-import-position


def first_texts(comments):
    return [comment.text for comment in check_prose.first_lines(comments)]


class Comments(unittest.TestCase):
    def test_a_block_is_counted_once_and_a_line_end_is_a_block(self):
        text = """// Of a block, the first line
// Of it, the second.
int rows = 0;  // Of the pass,
               // Those go on.
int more = 0;  ///< Those of another member.
  // That stands at another column.
"""
        self.assertEqual(first_texts(check_prose.cpp_comments(text)),
                         ["Of a block, the first line", "Of the pass,", "Those of another member.",
                          "That stands at another column."])

    def test_texts_and_characters_hold_no_comments(self):
        text = '''auto a = "// Of a text \\" // Of it"; auto b = R"x(// Of )" lines
// Of a raw text)x"; auto c = '"'; int d = 1'000;  // A number.
/* // Of a block. */ auto e = u8"//";  // Of e.
'''
        self.assertEqual(first_texts(check_prose.cpp_comments(text)), ["A number.", "Of e."])

    def test_python_and_cmake(self):
        self.assertEqual(first_texts(check_prose.python_comments('a = "# Of"  # Of a.\n')),
                         ["Of a."])
        self.assertEqual(first_texts(check_prose.line_comments('set(a "x # Of")\nb() # Of b.', "#")),
                         ["Of b."])

    def test_what_cannot_be_read_alone(self):
        for text in ("Of a pass.", "That it was.", "Those", "Likewise for keys.", "... and so on"):
            self.assertTrue(check_prose.RIDDLES.match(text), text)
        for text in ("Often", "Offsets of rows.", "The last.", "Thatched."):
            self.assertFalse(check_prose.RIDDLES.match(text), text)


class Messages(unittest.TestCase):
    def faults(self, message):
        return len(check_prose.faults_of_message(message))

    def test_a_good_message(self):
        self.assertEqual(self.faults("Keep blocks that a window has passed\n\nThey were lost."), 0)
        self.assertEqual(self.faults("X" * 72 + "\n\nBody."), 0)

    def test_each_fault(self):
        for subject in ("X" * 73, "docs: say more", "Docs: Say more", "src/kv: Keep blocks",
                        "keep blocks", "Keep blocks.", "The blocks are kept", "-Wall is on"):
            self.assertEqual(self.faults(subject + "\n\nBody."), 1, subject)
        self.assertEqual(self.faults("Keep blocks\n\n"), 1)


class Program(unittest.TestCase):
    """The program in a folder of its own, as an export of the sources is."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools").mkdir()
        self.program = self.root / "tools" / "check_prose.py"
        shutil.copy(SOURCE / "tools" / "check_prose.py", self.program)
        (self.root / "src").mkdir()

    def run_program(self, *arguments):
        return subprocess.run([sys.executable, self.program, *arguments], capture_output=True,
                              text=True, check=False)

    def git(self, *words):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=A", "-c", "user.email=a@b",
                        *words], check=True, capture_output=True)

    def test_the_limit(self):
        source = self.root / "src" / "a.h"
        source.write_text("int a;  // Of it.\n" * check_prose.LIMIT)
        self.assertEqual(self.run_program().returncode, 0)
        source.write_text("int a;  // Of it.\n" * (check_prose.LIMIT + 1))
        refused = self.run_program()
        self.assertEqual(refused.returncode, 1)
        self.assertIn("src/a.h:1: Of it.", refused.stderr)

    def test_without_history_commits_are_skipped(self):
        self.assertIn("commits: skipped", self.run_program().stdout)
        self.git("init", "-q")
        self.assertIn("commits: skipped", self.run_program().stdout)
        self.git("commit", "-q", "--allow-empty", "-m", "of another history")
        self.assertIn("commits: skipped", self.run_program().stdout)

    def test_a_range(self):
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "old")
        self.git("commit", "-q", "--allow-empty", "-m", "Keep blocks\n\nThey were lost.")
        self.assertIn("commits: 1 checked", self.run_program("HEAD~1..HEAD").stdout)
        self.git("commit", "-q", "--allow-empty", "-m", "Keep more")
        refused = self.run_program("HEAD~2..HEAD")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no body that says why: Keep more", refused.stderr)
        self.assertEqual(self.run_program("HEAD~9..HEAD").returncode, 1)


if __name__ == "__main__":
    unittest.main()
