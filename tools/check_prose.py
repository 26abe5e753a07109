#!/usr/bin/env python3
"""Checks that comments can be read alone, and that commit messages keep to CONTRIBUTING.md.

    check_prose.py [--list] [RANGE]

A comment that begins with one of RIDDLES leans on a sentence that stands elsewhere. LIMIT says how
many may be left; --list names them all. The commits are those of RANGE (A..B), by default those
after BASE. Where git or BASE is missing, as in an export or a shallow clone, the default range is
skipped.
"""

import argparse
import io
import pathlib
import re
import subprocess
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent

LIMIT = 0
RIDDLES = re.compile(r"(?:Of|That|Those|Likewise)\b|\.\.\.")

BASE = "a8e165fdaba0be09248d6c8bc32db6fa4cc68d01"  # Older messages are left as they are.
LONGEST_SUBJECT = 72

FOLDERS = ("apps", "bench", "cmake", "examples", "include", "packaging", "src", "tests", "tools",
           "training")
CPP = (".h", ".cc", ".inc", ".cu", ".cuh")
CPP_TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*)
    | /\*.*?\*/
    | R"(?P<mark>[^()\s"]*)\(.*?\)(?P=mark)"
    | "(?:\\.|[^"\\\n])*"
    | '(?:\\.|[^'\\\n])*'
    | \d[\w.']*                    # The quotes of 1'000 begin no character.
    | \w+
    """,
    re.DOTALL | re.VERBOSE)


class Comment:
    """One line's comment: where it stands and what it says."""

    def __init__(self, line, column, text, alone):
        self.line = line
        self.column = column
        self.text = text
        self.alone = alone  # No code stands before it in its line.


def cpp_comments(text):
    """The // comments of C++ source text, in order."""
    comments = []
    for token in CPP_TOKEN.finditer(text):
        if token["comment"] is None:
            continue
        start = token.start()
        column = start - (text.rfind("\n", 0, start) + 1)
        comments.append(Comment(text.count("\n", 0, start) + 1, column,
                                re.sub(r"^//+[<!]?", "", token["comment"]).strip(),
                                not text[start - column:start].strip()))
    return comments


def python_comments(text):
    """The # comments of Python source text, in order."""
    comments = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.append(Comment(token.start[0], token.start[1], token.string.lstrip("#").strip(),
                                    not token.line[:token.start[1]].strip()))
    return comments


def line_comments(text, mark):
    """The comments of other languages: whole lines, and line ends where no text is quoted."""
    comments = []
    for number, line in enumerate(text.split("\n"), start=1):
        match = re.search(rf"(?:^|\s)({mark}+)(?:\s|$)", line)
        if match is None or line[:match.start(1)].count('"') % 2 == 1:
            continue
        comments.append(Comment(number, match.start(1), line[match.end(1):].strip(),
                                not line[:match.start(1)].strip()))
    return comments


def comments_of(path):
    """The comments of a file of a language that is checked, else none."""
    if path.suffix in CPP:
        return cpp_comments(path.read_text(encoding="utf-8"))
    if path.suffix == ".py":
        return python_comments(path.read_text(encoding="utf-8"))
    if path.suffix in (".cmake", ".sh") or path.name == "CMakeLists.txt":
        return line_comments(path.read_text(encoding="utf-8"), "#")
    if path.suffix == ".js":
        return line_comments(path.read_text(encoding="utf-8"), "//")
    return []


def first_lines(comments):
    """The first line of each block: a line goes on with the one above it at the same column."""
    before = None
    for comment in comments:
        continues = (before is not None and comment.alone and comment.line == before.line + 1 and
                     comment.column == before.column)
        if not continues:
            yield comment
        before = comment


def find_riddles(root):
    """How many comments the sources below root have, and where those that are riddles begin."""
    count = 0
    riddles = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if not path.is_file() or {"node_modules", "__pycache__"} & set(path.parts):
                continue
            for comment in first_lines(comments_of(path)):
                count += 1
                if RIDDLES.match(comment.text):
                    riddles.append(f"{path.relative_to(root)}:{comment.line}: {comment.text}")
    return count, riddles


def faults_of_message(message):
    """What is wrong with the message of a commit that is no merge."""
    subject, _, body = message.strip().partition("\n")
    faults = []
    if len(subject) > LONGEST_SUBJECT:
        faults.append(f"its subject has {len(subject)} characters, and {LONGEST_SUBJECT} is the "
                      "most")
    if re.match(r"[\w./()-]+!?:(?:\s|$)", subject):
        faults.append("its subject begins with a prefix")
    elif not re.match(r"[A-Z]", subject) or re.match(r"(?:A|An|The)\s", subject):
        faults.append("its subject does not begin with a capital verb, such as Add or Say")
    if subject.endswith("."):
        faults.append("its subject ends with a full stop")
    if not body.strip():
        faults.append("it has no body that says why")
    return faults


def git(*words):
    """What a git command prints, or nothing where it fails or where there is no git."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False,
                              encoding="utf-8", errors="replace")
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def has_base():
    """Whether the history of these sources is here and reaches back to BASE."""
    top = git("rev-parse", "--show-toplevel")
    return (top is not None and pathlib.Path(top.strip()).resolve() == ROOT and
            git("merge-base", "--is-ancestor", BASE, "HEAD") is not None)


def check_commits(commits):
    """How many commits a range has, and what is wrong with them."""
    log = git("log", "--no-merges", "--format=%h%n%B%x00", commits, "--")
    if log is None:
        return 0, [f"git knows no range '{commits}'"]
    entries = [entry.strip() for entry in log.split("\0") if entry.strip()]
    problems = []
    for entry in entries:
        name, _, message = entry.partition("\n")
        problems += [f"commit {name}: {fault}: {message.strip().partition(chr(10))[0]}"
                     for fault in faults_of_message(message)]
    return len(entries), problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="name the comments that are counted")
    parser.add_argument("range", nargs="?", help="the commits, as A..B (default: after BASE)")
    options = parser.parse_args()

    count, riddles = find_riddles(ROOT)
    problems = []
    if len(riddles) > LIMIT:
        problems.append(f"{len(riddles)} comments begin with Of, That, Those, Likewise or '...', "
                        f"and {LIMIT} are allowed: begin with the thing (docs/develop/style.md)")
    if options.list or problems:
        print("\n".join(riddles), file=sys.stderr)

    if options.range is not None or has_base():
        number, faults = check_commits(options.range or f"{BASE}..HEAD")
        problems += faults
        commits = f"{number} checked"
    else:
        commits = "skipped, since their history is not here"
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    print(f"prose: {len(riddles)} of {count} comments cannot be read alone (at most {LIMIT}); "
          f"commits: {commits}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
