#!/usr/bin/env python3
"""The links of the project's documents: links_test.py [SOURCE_DIRECTORY]. Every relative link in a
Markdown file leads to a file or folder of the tree, and every anchor to a heading. It needs neither
a build nor a network."""

import pathlib
import re
import sys
import unittest

from documents import documents, read, without_fences

SOURCE = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                      else pathlib.Path(__file__).parents[2]).resolve()
CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
WORDS_OF_README = 500
WORDS_FOR_USERS = 50000


def anchors(path):
    """The anchors that GitHub gives a file's headings."""
    found, seen = set(), {}
    for line in without_fences(read(path)).splitlines():
        heading = re.match(r" {0,3}#{1,6} +(.*?)(?: +#+)? *$", line)
        if not heading:
            continue
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1])
        anchor = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        found.add(anchor if count == 0 else f"{anchor}-{count}")
    return found


def links(path):
    """The targets of a file's links, but for those within code."""
    text = CODE.sub("", without_fences(read(path)))
    return [match[1] for match in LINK.finditer(text)]


def fault(path, link):
    """Why a link leads nowhere, or None."""
    if ELSEWHERE.match(link):
        return None
    name, _, anchor = link.partition("#")
    target = (path.parent / name).resolve() if name else path
    if not target.is_relative_to(SOURCE):
        return "leads out of the tree"
    if not target.exists():
        return "leads to no file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return "leads to no heading"
    return None


class LinksTest(unittest.TestCase):
    def test_every_relative_link_leads_to_a_file_and_a_heading(self):
        faults = []
        for path in documents(SOURCE):
            for link in links(path):
                why = fault(path, link)
                if why:
                    faults.append(f"{path.relative_to(SOURCE)}: {link} {why}")
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_the_index_names_every_document(self):
        index = SOURCE / "docs" / "README.md"
        listed = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
        missing = [str(path.relative_to(SOURCE)) for path in documents(SOURCE)
                   if SOURCE / "docs" in path.parents and path != index and path not in listed]
        self.assertEqual(missing, [])

    def test_documents_stay_short(self):
        def count(paths):
            return sum(len(read(path).split()) for path in paths)

        self.assertLessEqual(count([SOURCE / "README.md"]), WORDS_OF_README)
        for_users = [path for path in documents(SOURCE) if SOURCE / "docs" in path.parents
                     and SOURCE / "docs" / "develop" not in path.parents]
        self.assertLessEqual(count(for_users), WORDS_FOR_USERS)


if __name__ == "__main__":
    unittest.main()
