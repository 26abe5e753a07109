#!/usr/bin/env python3
"""`foretoken audit` on this server, and on one that loses: audit_test.py PROGRAM [TEST]..."""

import http.server
import json
import subprocess
import sys
import threading
import unittest

from serving import Serving

PROGRAM = ""


def audit(url, *arguments):
    result = subprocess.run([PROGRAM, "audit", "--server", url, "-n", "24", "--json", "-",
                             *map(str, arguments)], capture_output=True, text=True, timeout=120)
    return result, json.loads(result.stdout) if result.stdout else None


class Lossy(http.server.BaseHTTPRequestHandler):
    """An OpenAI-compatible server whose answers change beside others, as rounding makes them."""

    protocol_version = "HTTP/1.1"
    under_way = 0
    speculation_loses = False
    lock = threading.Lock()

    def answer(self, content, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        self.answer(json.dumps({"data": [{"id": "lossy"}]}).encode(), "application/json")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with Lossy.lock:
            Lossy.under_way += 1
        threading.Event().wait(0.05)
        with Lossy.lock:
            beside = Lossy.under_way > 1
            Lossy.under_way -= 1
        off = body.get("speculative", {}).get("off", False)
        lost = beside if not Lossy.speculation_loses else not off
        text = "a long story" if lost else "a long tale"
        event = {"choices": [{"index": 0, "delta": {"content": text}, "text": text,
                              "finish_reason": "stop"}]}
        self.answer(f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")

    def log_message(self, *_):
        pass


class Audit(unittest.TestCase):
    def test_this_server_loses_nothing(self):
        with Serving(PROGRAM) as server:
            url = f"http://127.0.0.1:{server.port}"
            for temperature in (0, 0.9):
                result, report = audit(url, "--limit", 6, "--temp", temperature)
                self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
                self.assertTrue(report["lossless"])
                self.assertEqual(len(report["cells"]), 5)
                for cell in report["cells"]:
                    self.assertEqual(cell["same"], report["prompts"])
            stats = server.get("/stats")[2]
            self.assertGreater(stats["modes"]["ar"]["requests"], 0)

    def lossy(self, *arguments, speculation):
        Lossy.speculation_loses = speculation
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Lossy)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return audit(f"http://127.0.0.1:{server.server_port}", "--limit", 4, *arguments)
        finally:
            server.shutdown()
            server.server_close()

    def test_a_batch_that_loses_is_found(self):
        result, report = self.lossy(speculation=False)
        self.assertEqual(result.returncode, 1, result.stderr)
        lost = {cell["cell"]: cell["different"] for cell in report["cells"]}
        self.assertEqual([n > 0 for n in lost.values()], [False, False, True, False, True], lost)
        self.assertEqual(report["cells"][2]["differences"][0]["same_bytes"], len("a long "))

    def test_speculation_that_loses_is_found(self):
        result, report = self.lossy(speculation=True)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual([cell["different"] > 0 for cell in report["cells"]],
                         [False, False, False, True, True])
        # Where nothing switches it off there is nothing to compare it with.
        result, report = self.lossy("--off-body", "", speculation=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(report["cells"]), 3)

    def test_wrong_options(self):
        for arguments, saying in ((("--off-body", "off"), "not a JSON object"),
                                  (("--concurrency", "1"), "2"),):
            result, _ = audit("http://127.0.0.1:1", *arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn(saying, result.stderr)
        result, _ = audit("http://127.0.0.1:1")
        self.assertIn("no server answers", result.stderr)
        self.assertEqual(result.returncode, 1)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
