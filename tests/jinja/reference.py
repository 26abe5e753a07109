"""What jinja2 makes of templates, with the settings that transformers has for chats: run by the
Python of an environment that has it. Reads and writes the lines that render.cc does."""

import datetime
import functools
import json
import sys

import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

NOW = datetime.datetime(2024, 1, 5, 7, 8, 9)


class Generation(jinja2.ext.Extension):
    """{% generation %}: a block with names of its own, as if a macro were called with it."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("run"), [], [], body).set_lineno(line)

    def run(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True,
        extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = NOW.strftime
    return made


def main():
    parse = functools.lru_cache(environment().from_string)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            reply = {"text": parse(job["template"]).render(**job["data"])}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply))


if __name__ == "__main__":
    main()
