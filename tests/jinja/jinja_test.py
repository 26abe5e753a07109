#!/usr/bin/env python3
"""Templates as Python's jinja2 renders them, with the settings that transformers has for chats:
jinja_test.py RENDER BUILD_FOLDER. Small ones for each feature, and whole chat templates with many
chats: our text is the same, and where jinja2 has an error, so have we. Chats with tools for
templates that read these from the system message are compared with what jinja2 makes of them when
they stand there."""

import json
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).parent
ROOT = SOURCE.parent.parent
sys.path.append(str(SOURCE.parent))
from conversations import CHATS, NOTHING, WEATHER, inputs
from python_packages import install
from snippets import DATA, snippets


def built_in_templates():
    """Those that the program brings."""
    text = (ROOT / "src/text/tokenizer/template/chat_templates.cc").read_text(encoding="utf-8")
    return {name: body for name, body in re.findall(r'(k\w+) = R"\((.*?)\)";', text, re.DOTALL)}


def chats_with_tools(template, as_text):
    """Pairs of a chat with tools and of variables where these stand in the system message."""
    tools = [WEATHER, NOTHING]
    told = (json.dumps([tool["function"] for tool in tools], ensure_ascii=False) if as_text
            else tools)
    for chat in CHATS:
        if not all(isinstance(message.get("content"), str) for message in chat):
            continue
        placed = chat if any(message["role"] == "system" for message in chat) else [
            {"role": "system", "content": ""}, *chat]
        placed = [{**message, "tools": told} if message["role"] == "system" else message
                  for message in placed]
        yield ({"template": template, "messages": chat, "tools": tools},
               {"template": template, "data": {"messages": placed, "add_generation_prompt": True}})


def jobs():
    """A name, what render.cc reads, and what reference.py does."""
    for number, snippet in enumerate(snippets()):
        job = {"template": snippet, "data": DATA}
        yield f"snippet {number}", job, job
    templates = built_in_templates()
    for path in sorted((SOURCE / "templates").glob("*.jinja")):
        templates[path.name] = path.read_text(encoding="utf-8")
    if len(templates) < 10:
        sys.exit(f"only {len(templates)} chat templates were found")
    for name, template in templates.items():
        for number, data in enumerate(inputs()):
            job = {"template": template, "data": data}
            yield f"{name}, chat {number}", job, job
    for kind in ("text", "list"):
        name = f"tools_of_system_{kind}.jinja"
        for number, (chat, job) in enumerate(chats_with_tools(templates[name], kind == "text")):
            yield f"{name}, chat with tools {number}", chat, job


def answers(command, lines):
    result = subprocess.run(command, input=lines, capture_output=True, text=True, encoding="utf-8")
    if result.returncode != 0:
        sys.exit(f"{command}: {result.stderr}")
    # Not splitlines(): texts have other ends of lines in them.
    return [json.loads(line) for line in result.stdout.split("\n") if line]


def main():
    python = install(pathlib.Path(sys.argv[2]), SOURCE / "requirements.txt")
    named = list(jobs())
    ours = answers([sys.argv[1]], "".join(json.dumps(job) + "\n" for _, job, _ in named))
    theirs = answers([python, SOURCE / "reference.py"],
                     "".join(json.dumps(job) + "\n" for _, _, job in named))
    if not len(ours) == len(theirs) == len(named):
        sys.exit(f"{len(named)} templates, {len(ours)} answers of ours and {len(theirs)} of jinja2")
    wrong = 0
    for (name, job, _), our, their in zip(named, ours, theirs):
        if our.get("text") == their.get("text"):
            continue
        wrong += 1
        if wrong <= 10:
            print(f"{name}: {job['template'][:200]!r}\n  ours:   {our}\n  jinja2: {their}")
    texts = sum("text" in their for their in theirs)
    print(f"{len(named)} renderings, {texts} of them texts, the others errors: {wrong} differ")
    if texts < len(named) / 2:
        sys.exit("too few renderings have a text to say anything")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
