#!/usr/bin/env python3
"""Writes the reference of options from the program itself, as Markdown on standard output:

    tools/write_options.py PROGRAM > docs/look_up/options.md

The source is `PROGRAM man`, which is made from the tables that the program parses its arguments
by. An option that several commands have with the same text stands once, with their names.
"""

import argparse
import collections
import dataclasses
import re
import subprocess

OPENING = """# Options

This page is written by `tools/write_options.py` from the program itself; a test compares the two. \
Do not edit it by hand.

`foretoken COMMAND --help` shows the everyday options of a command, `--help-all` all of them, and \
`foretoken man | man -l -` the manual page.

**Where else an option can be set.** A variable sets an option for one shell: \
`FORETOKEN_MAX_BODY=8` is `--max-body 8`. A configuration file sets it for good: \
`~/.config/foretoken/config.toml`, or the file that `--config FILE` names.

```toml
temp = 0.7               # for every command that has --temp
[serve]                  # for one command
port = 9000
```

The command line counts more than a variable, and a variable more than the file. A setting that a \
command cannot use, because it needs or excludes another option, is left out there. An unknown \
name in the file is an error.

**Text files** (prompts, grammars, schemas, templates, settings, keys) are UTF-8, with or without \
a byte order mark, or UTF-16 with one. Lines may end in CR LF.

**On a terminal**, control characters that a model writes are shown as pictures (`\u241b`), so \
that no text commands the terminal. A file or a pipe gets them as they are.
"""


@dataclasses.dataclass(frozen=True)
class Option:
    heading: str  # "-n, --max-tokens N"; an argument: its name.
    text: str
    group: str
    is_argument: bool


@dataclasses.dataclass
class Command:
    name: str  # "datastore build"
    text: str
    options: list
    footer: list  # Paragraphs.


def plain(roff):
    """A line of man(7), as the program escapes it, as it was."""
    return roff.replace("\\&", "").replace("\\-", "-").replace("\\e", "\\")


def read_command(section):
    """The command that a section of the manual page describes."""
    lines = section.splitlines()
    command = Command(name=plain(lines[1].removeprefix(".B ")).removeprefix("foretoken "),
                      text="", options=[], footer=[])
    group, index = None, 2
    while index < len(lines):
        line = lines[index]
        if line.startswith(".SS "):
            group = plain(line.removeprefix(".SS "))
        elif line == ".TP":
            command.options.append(Option(heading=plain(lines[index + 1].removeprefix(".B ")),
                                          text=plain(lines[index + 2]), group=group or "",
                                          is_argument=group is None))
            index += 2
        elif line == ".PP":
            index += 1
            if command.text:
                command.footer.append(plain(lines[index]))
            else:
                command.text = plain(lines[index])
        index += 1
    return command


def read_commands(page):
    """All commands of a manual page, in its order."""
    sections = re.split(r"(?m)^\.SH ", page)
    return [read_command(section) for section in sections
            if re.match(r"FORETOKEN [A-Z]", section)]


def prose(text):
    """Text whose signs mean nothing to Markdown, but for backticks and what stands between them."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([<*\[\]])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def entries(options):
    """Options as a list."""
    return "".join(f"- `{option.heading}`: {prose(option.text)}\n" for option in options)


def names(commands, all_names):
    """Commands as a text; `datastore` alone stands for all below it."""
    below = [name for name in all_names if name.startswith("datastore ")]
    if set(below) <= set(commands):
        commands = [name for name in commands if name not in below] + ["datastore"]
    return ", ".join(f"`{name}`" for name in commands)


def write(page):
    """The reference of all options, as Markdown."""
    commands = read_commands(page)
    commands_of = collections.defaultdict(list)
    groups = {}  # The first one that an option has.
    for command in commands:
        for option in command.options:
            key = dataclasses.replace(option, group="")
            groups.setdefault(key, option.group)
            commands_of[key].append(command.name)
    shared = [key for key, names in commands_of.items()
              if len(names) > 1 and not key.is_argument]
    everywhere = [key for key in shared if len(commands_of[key]) == len(commands)]

    text = OPENING + "\n## Commands\n\n"
    text += "".join(f"- `{command.name}`: {prose(command.text)}\n" for command in commands)
    text += "\n## Options of every command\n\n" + entries(everywhere)
    text += "\n## Options of several commands\n"
    all_names = [command.name for command in commands]
    for group in dict.fromkeys(groups[key] for key in shared):
        by_commands = collections.defaultdict(list)
        for key in shared:
            if groups[key] == group and key not in everywhere:
                by_commands[names(commands_of[key], all_names)].append(key)
        if by_commands:
            text += f"\n### {'Everyday' if group == 'Options' else group}\n"
        for owners, members in by_commands.items():
            text += f"\nIn {owners}:\n\n{entries(members)}"
    text += "\n## Options of one command\n"
    for command in commands:
        own = [dataclasses.replace(option, group="") for option in command.options]
        own = [key for key in own if key not in shared]
        if own or command.footer:
            text += f"\n### `foretoken {command.name}`\n"
            text += "\n" + entries(own) if own else ""
            text += "".join(f"\n{prose(paragraph)}\n" for paragraph in command.footer)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    page = subprocess.run([parser.parse_args().program, "man"], capture_output=True, text=True,
                          check=True).stdout
    print(write(page), end="")


if __name__ == "__main__":
    main()
