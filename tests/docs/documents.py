"""What the tests of documents share: the project's Markdown files and their fenced blocks."""

import pathlib
import re
import subprocess

FENCE = re.compile(r"^(?P<indent> *)(?P<mark>```+|~~~+)(?P<info>[^\n`]*)\n(?P<body>.*?)"
                   r"^(?P=indent)(?P=mark)[ ]*$", re.MULTILINE | re.DOTALL)


def documents(source):
    """Every Markdown file that git keeps, or would."""
    names = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others",
                            "--exclude-standard", "*.md"],
                           capture_output=True, text=True, check=False)
    if names.returncode == 0:
        found = [source / name for name in names.stdout.split("\0") if name]
    else:  # A source archive has no repository.
        found = [path for path in source.rglob("*.md")
                 if not {"build", "node_modules"} & set(path.relative_to(source).parts)]
    return sorted({path for path in found if path.is_file()})


def read(path: pathlib.Path):
    return path.read_text(encoding="utf-8")


def without_fences(text):
    return FENCE.sub("", text)


def fences(text):
    """The fenced blocks of a document as pairs of language and content."""
    return [(match["info"].strip(), match["body"]) for match in FENCE.finditer(text)]
