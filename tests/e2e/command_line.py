"""Runs the program of a test's command line: NAME_test.py PROGRAM SOURCE_DIRECTORY [TEST]..."""

import json
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
MODELS = pathlib.Path(sys.argv.pop(1)).resolve() / "models"


# Without the settings of whoever runs the tests.
CLEAN_ENVIRONMENT = {name: value for name, value in os.environ.items()
                     if not name.startswith("FORETOKEN_") and name != "OPENAI_API_KEY"}
CLEAN_ENVIRONMENT.update(NO_COLOR="", XDG_CONFIG_HOME="/dev/null",
                         XDG_STATE_HOME="/dev/null")  # Where no folder can be made.


def foretoken(*arguments, stdin="", environment=None, timeout=120):
    return subprocess.run([PROGRAM, *map(str, arguments)], input=stdin, text=True,
                          capture_output=True, timeout=timeout,
                          env={**CLEAN_ENVIRONMENT, **(environment or {})})


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_e2e."))
        self.addCleanup(shutil.rmtree, self.folder)

    def succeed(self, *arguments, **options):
        result = foretoken(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refuse(self, *arguments, saying, **options):
        result = foretoken(*arguments, **options)
        self.assertEqual(result.returncode, 2, (arguments, result.stdout, result.stderr))
        self.assertEqual(result.stdout, "", arguments)
        self.assertRegex(result.stderr, r"\Aforetoken: [^\n]+\n\Z", arguments)
        self.assertIn(saying, result.stderr, arguments)

    def drawn(self, page):
        """The report that a page draws; tests/page/report_test.py looks at the drawing."""
        return json.loads(page.read_text().split('id="report">')[1].split("</script>")[0])

    def shown_on_a_terminal(self, *arguments, stream="stderr"):
        """What a command that succeeds writes to one of its streams, where that is a terminal."""
        reader, terminal = pty.openpty()
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: terminal}
        with subprocess.Popen([PROGRAM, *map(str, arguments)], env=CLEAN_ENVIRONMENT,
                              **streams) as process:
            os.close(terminal)
            shown = b""
            try:
                while data := os.read(reader, 4096):
                    shown += data
            except OSError:  # The terminal's other end is closed.
                pass
        os.close(reader)
        self.assertEqual(process.returncode, 0)
        return shown

    def copy_model(self, name):
        copy = self.folder / name
        shutil.copytree(MODELS / name, copy)
        return copy
