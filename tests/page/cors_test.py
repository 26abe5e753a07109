#!/usr/bin/env python3
"""Pages of another origin and `foretoken serve`, in a browser, which decides by what the server
answers whether they may call: cors_test.py PROGRAM CLIENT_FOLDER [TEST]...

The page uses the official `openai` client, which npm installs into CLIENT_FOLDER. Skips (exit code
77) where that or Chromium is not to be had.
"""

import http.server
import pathlib
import sys
import threading
import unittest
import urllib.parse

import chromium

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS / "server")]
import npm_packages
import openai_client_test  # The folder beside this one.
from serving import Serving

SKIPPED = 77
PAGE = pathlib.Path(__file__).parent / "cors_page"
KEY = "a-key"
PROGRAM = ""
CLIENT = pathlib.Path()


class Files(http.server.SimpleHTTPRequestHandler):
    """The page, and the client's files below /client/."""

    def translate_path(self, path):
        path = urllib.parse.urlparse(path).path
        folder = CLIENT / "node_modules" / "openai" if path.startswith("/client/") else PAGE
        return str(folder / path.removeprefix("/client/").lstrip("/"))

    def log_message(self, *_):
        pass


class CorsTest(unittest.TestCase):
    browser = None

    def setUp(self):
        self.site = self.host_page()

    def host_page(self):
        """An origin that has the page."""
        files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
        threading.Thread(target=files.serve_forever, daemon=True).start()
        self.addCleanup(files.server_close)
        self.addCleanup(files.shutdown)
        return f"http://127.0.0.1:{files.server_address[1]}"

    def open(self, site, server):
        tab = chromium.Tab(self.browser)
        self.addCleanup(tab.close)
        url = f"http://127.0.0.1:{server.port}"
        tab.open(f"{site}/index.html?" + urllib.parse.urlencode({"server": url, "key": KEY}))
        tab.wait("window.calls")
        return tab

    def serve(self, *arguments):
        server = Serving(PROGRAM, "--api-key", KEY, *arguments)
        self.addCleanup(lambda: self.assertEqual(server.end(), 0, server.errors))
        return server

    def asked(self, tab):
        """The headers that the browser asked for before it let the page call."""
        return [{name.strip() for name in event["headers"]["Access-Control-Request-Headers"].split(",")}
                for event in tab.own_events("Network.requestWillBeSentExtraInfo")
                if "Access-Control-Request-Headers" in event["headers"]]

    def test_the_allowed_origin_calls_with_all_that_clients_send(self):
        server = self.serve("--cors", self.site)
        tab = self.open(self.site, server)
        whole = tab.run("calls.chat()")
        self.assertGreater(len(whole.get("text", "")), 20, whole)
        self.assertTrue(whole["id"])  # A header of the reply that the page may read.
        streamed = tab.run("calls.stream()")
        self.assertEqual(streamed.get("text"), whole["text"], streamed)
        self.assertGreater(streamed["chunks"], 1)
        said = tab.run("calls.message()")
        self.assertEqual(said.get("status"), 200, said)
        self.assertGreater(len(said["text"]), 20)
        self.assertEqual(tab.run("calls.health()"), {"status": "ok"})
        asked = self.asked(tab)
        for names in ({"authorization", "content-type", "x-stainless-lang", "x-stainless-os"},
                      {"x-api-key", "anthropic-version"}):
            self.assertTrue(any(names <= headers for headers in asked), asked)
        self.assertEqual(tab.problems(), [])

    def test_an_error_is_read_as_well(self):
        server = self.serve("--cors", self.site)
        tab = self.open(self.site, server)
        refused = tab.run("calls.chat('another-key')")
        self.assertEqual([refused.get("error"), refused.get("status")], ["AuthenticationError", 401])
        self.assertIn("wants its API key", refused["message"])

    def expect_nothing_read(self, tab):
        for call in ("chat", "stream"):
            self.assertEqual(tab.run(f"calls.{call}()").get("error"), "APIConnectionError")
        for call in ("message", "health"):
            self.assertEqual(tab.run(f"calls.{call}()").get("error"), "TypeError")
        self.assertTrue(any("has been blocked by CORS policy" in problem
                            for problem in tab.problems()), tab.problems())

    def test_without_the_option_no_page_calls(self):
        server = self.serve()
        self.expect_nothing_read(self.open(self.site, server))
        # Nor did a request get through of which only the answer was kept from the page.
        stats = server.get("/stats", headers={"Authorization": f"Bearer {KEY}"})[2]
        self.assertEqual(set(stats["requests"].values()), {0}, stats["requests"])

    def test_another_origin_than_the_allowed_one_calls_nothing(self):
        server = self.serve("--cors", self.site)
        self.expect_nothing_read(self.open(self.host_page(), server))


if __name__ == "__main__":
    PROGRAM, CLIENT = sys.argv[1], pathlib.Path(sys.argv[2])
    program = chromium.find()
    if program is None:
        print("skipped: Chromium is not installed (Debian package chromium)")
        sys.exit(SKIPPED)
    npm_packages.install(openai_client_test.SOURCE, CLIENT)
    CorsTest.browser = chromium.Browser(program)
    try:
        result = unittest.main(argv=sys.argv[:1] + sys.argv[3:], exit=False, verbosity=2).result
    finally:
        CorsTest.browser.close()
    sys.exit(0 if result.wasSuccessful() else 1)
