#!/usr/bin/env python3
"""The page as `foretoken serve` gives it, and `foretoken bench --server` against it:
serve_test.py PROGRAM SCREENSHOT_DIRECTORY [TEST]...

On the bundled models. What needs Chromium is skipped where that is not installed.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import chromium
import fake_server
from page_case import settings_script

sys.path.append(str(pathlib.Path(__file__).parents[1] / "server"))
from serving import Serving, ServerTest  # The folder beside this one.

PROGRAM = ""
SHOTS = pathlib.Path()
START_SECONDS = 120


class ServeTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM)
        cls.url = f"http://127.0.0.1:{cls.server.port}/"

    def test_every_file_is_served_as_it_is_in_the_source(self):
        for file in fake_server.PAGE.rglob("*"):
            if file.suffix not in fake_server.TYPES:
                continue
            name = file.relative_to(fake_server.PAGE).as_posix()
            path = "" if name == "index.html" else f"page/{name}"
            with urllib.request.urlopen(self.url + path) as reply:
                self.assertEqual(reply.read(), file.read_bytes(), name)
                self.assertEqual(reply.headers["Content-Type"], fake_server.TYPES[file.suffix])
                if path == "":
                    self.assertEqual(reply.headers["Content-Security-Policy"],
                                     fake_server.security_policy())

    @unittest.skipUnless(chromium.find(), "Chromium is not installed")
    def test_chat_and_race_in_every_mode(self):
        browser = chromium.Browser(chromium.find())
        self.addCleanup(browser.close)
        tab = chromium.Tab(browser, reduced_motion=True)
        tab.before_load(settings_script({"seed": "1", "max_tokens": "200"}))
        tab.open(self.url)
        tab.wait("document.getElementById('server').dataset.state === 'ready'", START_SECONDS)
        tab.click("#origins")
        tab.click("#starters button")
        tab.wait("document.querySelector('.answer')?.getAttribute('aria-busy') === 'false'", 60)
        self.assertEqual(tab.run("document.querySelectorAll('.answer .t').length"), 200)
        tab.screenshot(SHOTS / "serve_chat.png")
        tab.click("#tab-race")
        modes = tab.run("[...document.querySelectorAll('#race-modes input')].map((box) => "
                        "{ box.checked = true; return box.value; })")
        self.assertLessEqual({"ar", "sd", "ssd"}, set(modes))
        tab.click("#race-start")
        tab.wait(f"document.querySelectorAll('.lane.done').length === {len(modes)}", 120)
        self.assertRegex(tab.run("document.getElementById('verdict').textContent"),
                         r"^Identical: .* gave the same 200 tokens\.$")
        tab.screenshot(SHOTS / "serve_race.png")
        tab.click("#tab-live")
        tab.wait("document.querySelectorAll('#plot-hits li').length > 0")
        tab.screenshot(SHOTS / "serve_live.png")
        self.assertEqual(tab.problems(), [])
        self.assertEqual([url for url in tab.requests() if not url.startswith(self.url)], [])

    def test_the_load_tool_measures_it(self):
        with tempfile.TemporaryDirectory(prefix="foretoken_load.") as folder:
            report = pathlib.Path(folder) / "load.json"
            page = pathlib.Path(folder) / "load.html"
            command = [PROGRAM, "bench", "--server", self.url, "--concurrency", "3", "--requests",
                       "9", "-n", "16", "--ignore-eos", "--slo-ttft-ms", "60000", "--json", report,
                       "--html", page, "--body", '{"speculative": {"mode": "sd"}}']
            result = subprocess.run(command, capture_output=True, text=True, timeout=300)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("9 of 9", result.stdout)
            drawn = page.read_text().split('id="report">')[1].split("</script>")[0]
            self.assertEqual(json.loads(drawn), json.loads(report.read_text()))
            self.assertEqual(json.loads(drawn)["kind"], "load")
            load = json.loads(drawn)["load"]
            self.assertGreater(load["ttft_ms"]["p50"], 0)
        self.assertEqual([load["requests"], load["completed"], load["errors"]], [9, 9, {}])
        self.assertEqual([load["output_tokens"], load["tokens_counted_by"]], [9 * 16, "usage"])
        self.assertLessEqual(load["peak_in_flight"], 3)
        self.assertGreater(load["draft_tokens"], 0)
        self.assertAlmostEqual(load["goodput_per_s"], load["requests_per_s"])

    def test_refused_requests_are_errors_and_not_speed(self):
        result = subprocess.run([PROGRAM, "bench", "--server", self.url, "--requests", "2",
                                 "--body", '{"max_tokens": -2}'],
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("0 of 2", result.stdout)
        self.assertRegex(result.stdout, r"2 x http 400: .*max_tokens")


if __name__ == "__main__":
    PROGRAM = sys.argv[1]
    SHOTS = pathlib.Path(sys.argv[2])
    SHOTS.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
