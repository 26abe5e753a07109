#!/usr/bin/env python3
"""What the engine's rules refuse is answered with the field at fault: refusals_test.py PROGRAM"""

import sys
import unittest

from serving import Serving, ServerTest

PROGRAM = ""
GRAMMAR = {"grammar": 'root ::= "yes" | "no"'}


def plan(**members):
    return {"speculative": members}


# By the server's options: the fields of a request, the one at fault, and words of the sentence.
# Every rule of src/core/engine/rules.cc and src/core/sampling/params.cc that a body can break past the reader
# of bodies is here once at least.
REFUSED = {
    (): (
        ({"prompt": [5, 999999]}, "prompt", "outside the vocabulary"),
        ({"prompt": [5] * 511 + [6]}, "prompt", "may have 511 at most"),
        ({"logit_bias": {"999999": 1}}, "logit_bias", "names token 999999"),
        ({**GRAMMAR, "ignore_eos": True}, "ignore_eos", "where the text ends"),
        (plan(mode="sssd"), "speculative.mode", "not offered"),
        (plan(lookahead=17), "speculative.lookahead", "from 0 to 16"),
        (plan(mode="ssd", lookahead=17), "speculative.lookahead", "from 1 to 16"),
        (plan(mode="ar", lookahead=63), "speculative.lookahead", "from 0 to 16"),
        (plan(lookahead=2, fanout=[1, 2]), "speculative.fanout", "or 3"),
        (plan(lookahead=2, fanout=[0, 0, 0]), "speculative.fanout", "prepares nothing"),
        (plan(mode="ssd", fanout=0), "speculative.fanout", "from 1 to"),
        (plan(mode="ssd", lookahead=16, fanout=15), "speculative.fanout", "cache budget"),
        (plan(mode="sd", tree_width=2, fallback="auto"), "speculative.tree_width", "for chains"),
        (plan(mode="sd", tree_width=9), "speculative.tree_width", "from 1 to 8"),
    ),
    ("--mode", "ssd", "--modes", "ssd"): (
        (plan(mode="sd"), "speculative.mode", "not offered"),
        (plan(mode="auto"), "speculative.mode", "not offered"),
        (plan(fallback="auto"), "speculative.fallback", "need mode auto"),
    ),
    ("--mode", "ssd", "--modes", "ssd", "--speculation-length", "auto"): (
        (plan(fallback="retrieval"), "speculative", "to be measured"),
    ),
}


class Refusals(unittest.TestCase):
    def test_every_refusal_names_its_field(self):
        for options, cases in REFUSED.items():
            with Serving(PROGRAM, *options) as server:
                for fields, param, saying in cases:
                    with self.subTest(options=options, fields=fields):
                        status, _, body = server.complete(**{"max_tokens": 2, **fields})
                        self.assertEqual(status, 400, body)
                        self.assertEqual(body["error"]["param"], param)
                        self.assertIn(saying, body["error"]["message"])


class Trees(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(PROGRAM)

    def test_every_documented_width_runs_on_a_server_of_defaults(self):
        fields = {"prompt": "Once upon a time", "max_tokens": 32, "temperature": 0.8, "seed": 4}
        plain = self.succeed(self.server.complete(**fields, speculative={"mode": "ar"}))
        for mode in ("sd", "ssd"):
            for width in range(1, 9):
                for lookahead in (1, 6, 16):
                    body = self.succeed(self.server.complete(**fields, speculative={
                        "mode": mode, "tree_width": width, "lookahead": lookahead}))
                    self.assertEqual(body["choices"][0]["text"], plain["choices"][0]["text"])
        usage = {}
        for width in (1, 4):
            body = self.succeed(self.server.complete(**fields, speculative={
                "mode": "sd", "tree_width": width, "lookahead": 4}))
            usage[width] = body["usage"]
        # A tree, and no more of it than there is room for.
        self.assertGreater(usage[4]["draft_n"] / usage[4]["rounds"], 4)
        self.assertLessEqual(usage[4]["draft_n"] / usage[4]["rounds"], 16)
        self.assertLessEqual(usage[1]["draft_n"] / usage[1]["rounds"], 4)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
