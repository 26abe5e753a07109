"""What the tests of the page share: a canned server, the browser, and how they are run."""

import json
import pathlib
import sys
import threading
import unittest

import chromium
import fake_server

SKIPPED = 77

DONE = "document.querySelector('.answer:last-child').getAttribute('aria-busy') === 'false'"
READY = "document.getElementById('server').dataset.state === 'ready'"


def settings_script(settings):
    """A script that makes these the settings chosen last, where nothing was chosen yet."""
    return f"localStorage['foretoken.settings'] ??= {json.dumps(json.dumps(settings))}"


class PageTest(unittest.TestCase):
    browser = None
    shots = pathlib.Path()
    api_key = ""
    pace = 0.3  # The pace of the server's rounds.
    settings = {"seed": "1", "max_tokens": "200"}  # Chosen before, so that answers are the same.

    def setUp(self):
        self.server = fake_server.start(api_key=self.api_key, pace=self.pace)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        fake_server.Handler.seen.clear()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        self.tabs = []

    def tearDown(self):
        for tab in reversed(self.tabs):  # What shares a tab's storage goes before that tab.
            with self.subTest("what the browser saw"):
                self.assertEqual(tab.problems(), [])
                foreign = [url for url in tab.requests() if not url.startswith(self.url)]
                self.assertEqual(foreign, [])
            tab.close()
        self.server.shutdown()
        self.server.server_close()

    def open(self, view="", state=READY, script="", **options):
        """A tab with the page; `script` runs before it."""
        tab = chromium.Tab(self.browser, **options)
        self.tabs.append(tab)
        if self.settings:
            tab.before_load(settings_script(self.settings))
        tab.before_load(script)
        tab.open(self.url + view)
        tab.wait(state)
        return tab

    def ask(self, tab, text, wait=True):
        tab.run("document.getElementById('prompt').focus()")
        tab.type(text)
        tab.press("Enter")
        if wait:
            tab.wait(DONE)

    def expect_problem(self, tab, part):
        """Takes note of a problem that the browser itself reports, such as a refused request."""
        self.assertTrue(any(part in problem for problem in tab.problems()), tab.problems())
        tab.browser.events = [event for event in tab.browser.events
                              if event.get("sessionId") != tab.session or
                              event["method"] != "Log.entryAdded"]

    def shoot(self, tab, name):
        tab.screenshot(self.shots / f"{name}.png")

    def assert_fits(self, tab):
        self.assertLessEqual(tab.run("document.documentElement.scrollWidth"),
                             tab.run("document.documentElement.clientWidth"))
        # Nothing may stick out of the window either, unless its box scrolls by itself.
        out = tab.run("""[...document.querySelectorAll('main *, .bar *')].filter((element) => {
          const box = element.getBoundingClientRect();
          if (box.width === 0 || box.right <= innerWidth + 1) return false;
          return !element.closest('.strip, .chips, .hidden, pre, .table');
        }).map((element) => element.outerHTML.slice(0, 80))""")
        self.assertEqual(out, [])


def main():
    """Runs the tests of the program that calls this: NAME SCREENSHOT_DIRECTORY [TEST]..."""
    program = chromium.find()
    if program is None:
        print("skipped: Chromium is not installed (Debian package chromium)")
        sys.exit(SKIPPED)
    PageTest.shots = pathlib.Path(sys.argv[1])
    PageTest.shots.mkdir(parents=True, exist_ok=True)
    PageTest.browser = chromium.Browser(program)
    try:
        result = unittest.main(argv=sys.argv[:1] + sys.argv[2:], exit=False, verbosity=2).result
    finally:
        PageTest.browser.close()
    sys.exit(0 if result.wasSuccessful() else 1)
