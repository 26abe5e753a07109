"""`foretoken serve` with two drafts: each drafts in a mode of its own, side by side in one batch, and
all give the same text: drafts_test.py PROGRAM [TEST]..."""

import sys
import threading
import unittest

from serving import Serving, ServerTest

PROGRAM = ""


class SeveralDrafts(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM, "-np", 8, "-md", "demo-draft", "-md", "self:q4_0")

    def test_says_which_drafts_in_which_mode(self):
        props = self.succeed(self.server.get("/props"))
        self.assertEqual(props["draft"], "demo-draft")
        self.assertEqual(props["drafts"]["sd2"], "demo-target:q4_0")
        for mode in set(props["drafts"]) - {"sd2"}:
            self.assertEqual(props["drafts"][mode], "demo-draft")
        self.assertIn("sd2", props["modes"])
        self.assertNotIn("sd3", props["modes"])

    def test_side_by_side_all_give_one_text(self):
        modes = ("ar", "sd", "sd2", "auto") * 3
        texts = [None] * len(modes)

        def ask(index):
            answer = self.succeed(self.server.complete(
                max_tokens=80, temperature=0.8, seed=4, ignore_eos=True,
                speculative={"mode": modes[index]}))
            texts[index] = answer["choices"][0]["text"]

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(modes))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(texts)), 1, texts)
        stats = self.server.wait_idle()
        self.assertGreater(stats["modes"]["sd2"]["rounds"], 0)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
