#!/usr/bin/env python3
"""`foretoken plan` and `calibrate`: plan_test.py PROGRAM SOURCE_DIRECTORY [TEST]..."""

import json
import re
import unittest

from command_line import MODELS, CliTest


class Plan(CliTest):
    NUMBERS = ("--target-ms", "1:10,8:10.5,16:12", "--draft-ms", "1:1,32:1.5",
               "--acceptance", "0.8,0.75", "--hit", "0.6,0.7,0.75", "--hit-at-end", "0.8,0.9")

    def calibration(self):
        """A calibration file that holds for this machine, as text for JSON."""
        machine = json.loads(self.succeed("devices", "--json", "--no-measuring").stdout)

        def count(cores):
            bounds = [part.split("-") for part in cores.split(",")]
            return sum(int(part[-1]) - int(part[0]) + 1 for part in bounds)

        table = {"rows": [1, 8], "contexts": [128], "us": [10000, 10500]}
        draft = {"rows": [1, 32], "contexts": [128], "us": [1000, 1500]}
        rates = {"rounds": 1000, "acceptance": [0.8], "hit_partial": [0.6, 0.7],
                 "hit_full": [0.8, 0.9], "coverage": 1, "mean_rows": 0, "us": 0}
        return {
            "format": "foretoken-calibration", "version": 1,
            "machine": {"cpu": machine["machine"], "cores": count(machine["logical_cores"]),
                        "isa": machine["instruction_sets"][-1],
                        "target_cores": count(machine["default_target_cores"]),
                        "draft_cores": count(machine["default_draft_cores"])},
            "models": {"target": "a" * 64, "draft": "b" * 64, "tokenizer": "c" * 64,
                       "precision": "bf16"},
            "times": {"target": table, "draft": draft, "draft_on_target": draft, "host_us": 20,
                      "host_row_us": 5, "sequence_token_us": 0, "target_contention": 1,
                      "draft_contention": 1},
            "settings": [{"temperature": 0, "verifier": "shared-noise", "saguaro_c": 1,
                          "draft": rates},
                         {"temperature": 1, "verifier": "rejection", "saguaro_c": 1,
                          "draft": rates},
                         {"temperature": 1, "verifier": "rejection", "saguaro_c": 0.5,
                          "draft": {**rates, "acceptance": [0.7], "hit_partial": [0.9, 0.95]}}]}

    def write(self, calibration):
        path = self.folder / "calibration.json"
        path.write_text(json.dumps(calibration))
        return path

    def test_numbers_give_a_ranked_table(self):
        out = self.succeed("plan", *self.NUMBERS, "--batches", "1,4").stdout
        for batch in (1, 4):
            self.assertIn(f"\nBatch {batch}\n", out)
        self.assertEqual(len(re.findall(r"(?m)^  Choice: ssd \(K = \d+, B = \d+, fallback \w+\), "
                                        r"[\d.]+ tokens/s: .*Its cache answers", out)), 2, out)
        report = json.loads(self.succeed("plan", *self.NUMBERS, "--json", "-").stdout)
        plans = report["tables"][0]["plans"]
        speeds = [plan["tokens_per_second"] for plan in plans]
        self.assertEqual(speeds, sorted(speeds, reverse=True))
        self.assertEqual({plan["mode"] for plan in plans}, {"ar", "sd", "ssd"})
        for plan in plans:
            if plan["mode"] == "ssd":
                self.assertEqual(sum(plan["fanout"]), plan["cache_budget"])
                self.assertEqual(len(plan["fanout"]), plan["lookahead"] + 1)
            elif plan["mode"] == "ar":
                self.assertAlmostEqual(plan["tokens_per_second"], 100)

    def test_alone_plans_this_machine(self):
        out = self.succeed("plan").stdout
        self.assertIn("demo-target with demo-draft, measured now", out)
        self.assertNotIn("70B", out)
        self.assertIn("Choice: ", out)
        self.refuse("plan", "-m", MODELS / "demo-target", saying="--draft")
        self.refuse("plan", "--simulate", "--temp", 1, saying="needs --calibration")

    def test_limits_are_kept(self):
        report = json.loads(self.succeed(
            "plan", *self.NUMBERS, "--lookahead", "3-4", "--cache-budget", 9, "--modes", "ssd",
            "--fallback", "jit", "--all", "--json", "-").stdout)
        plans = report["tables"][0]["plans"]
        self.assertEqual({(plan["lookahead"], plan["cache_budget"], plan["fallback"])
                          for plan in plans}, {(3, 9, "jit"), (4, 9, "jit")})

    def test_calibration_of_this_machine(self):
        path = self.write(self.calibration())
        out = self.succeed("plan", "--calibration", path).stdout
        self.assertIn("shared-noise at T = 0.", out)
        self.assertIn("Choice: ssd", out)
        page = self.folder / "plan.html"
        self.succeed("plan", "--calibration", path, "--batches", "1,4", "--html", page)
        drawn = self.drawn(page)
        self.assertEqual(drawn["kind"], "plan")
        self.assertEqual([table["batch"] for table in drawn["tables"]], [1, 4])
        self.assertIn("ssd", [plan["mode"] for plan in drawn["tables"][0]["plans"]])
        out = self.succeed("plan", "--calibration", path, "--verify", "rejection",
                           "--temp", 0.8).stdout
        self.assertIn("at T = 1, the closest to 0.8 that was measured", out)
        self.assertRegex(out, r"mode +K +B +fallback +C ")

    def test_simulation_of_a_calibration(self):
        path = self.write(self.calibration())
        options = ["--calibration", path, "-k", 3, "--fallback", "jit", "--json", "-"]
        report = json.loads(self.succeed("plan", "--simulate", "--sweep", "none", "--fanout", 1,
                                         *options).stdout)
        self.assertIn(str(path), report["meta"]["numbers"])
        simulated = {mode["mode"]: mode["tokens_per_s"] for mode in report["modes"]}
        predicted = {plan["mode"]: plan["tokens_per_second"] for plan in json.loads(self.succeed(
            "plan", "--cache-budget", 4, *options).stdout)["tables"][0]["plans"]}
        self.assertAlmostEqual(simulated["ar"], 1e6 / (10000 + 20 + 5), delta=0.1)
        self.assertAlmostEqual(simulated["sd"] / predicted["sd"], 1, delta=0.05)
        self.assertAlmostEqual(simulated["ssd, anytime"] / predicted["ssd"], 1, delta=0.05)
        rejection = self.succeed("plan", "--simulate", "--sweep", "none", "--rounds", 200,
                                 "--calibration", path, "--verify", "rejection").stdout
        self.assertIn("rejection at T = 1, the closest to 0 that was measured", rejection)
        self.refuse("plan", "--roofline", "--calibration", path,
                    saying="--calibration is for predictions and --simulate")
        without_draft = self.calibration()
        del without_draft["models"]["draft"]
        for table in ("draft", "draft_on_target"):
            del without_draft["times"][table]
        for setting in without_draft["settings"]:
            setting["ngram"] = setting.pop("draft")
        self.refuse("plan", "--simulate", "--calibration", self.write(without_draft),
                    saying="--simulate needs a draft, and --calibration has measured none")

    def test_refuses_what_it_cannot_plan_from(self):
        for arguments, saying in (
                (["--target-ms", 10, "--draft-ms", 1], "--acceptance is missing"),
                ([*self.NUMBERS, "-k", 0], "from 1 to 63"),
                ([*self.NUMBERS, "-k", 6, "--cache-budget", 5], "below K + 1 = 7"),
                ([*self.NUMBERS, "--modes", "trie"], "cannot be predicted"),
                ([*self.NUMBERS, "--fallback", "luck"], "'luck' is not a fallback"),
                ([*self.NUMBERS, "--batches", "0"], "from 1 to 4096"),
                ([*self.NUMBERS, "--temp", 1], "not both"),
                (["--calibration", self.folder / "none.json"], "none.json"),
                (["--calibration", self.folder], "")):
            self.refuse("plan", *arguments, saying=saying)

    def test_refuses_a_calibration_of_something_else(self):
        calibration = self.calibration()
        calibration["machine"]["isa"] = "abacus"
        self.refuse("plan", "--calibration", self.write(calibration),
                    saying="its instruction set is abacus, here it is ")
        path = self.write(self.calibration())
        self.refuse("plan", "--calibration", path, "--target", MODELS / "demo-target", "--draft",
                    MODELS / "demo-draft", saying="another target: its fingerprint is aaaaaaaaaaaa")
        self.refuse("plan", "--calibration", path, "--verify", "rejection", "--target-ms", 3,
                    saying="--calibration")
        calibration["settings"][0]["draft"]["acceptance"] = [80]
        self.refuse("plan", "--calibration", self.write(calibration),
                    saying="settings[0]: draft: acceptance is 80 but must be a number from 0 to 1")

    def test_calibrate_feeds_plan(self):
        measured = self.folder / "calibration.json"
        page = self.folder / "page.html"
        table = self.succeed("calibrate", "--limit", 1, "-n", 24, "-k", 3, "--temps", "0.7",
                             "--saguaro-cs", "0.3,1", "-o", measured, "--html", page).stdout
        self.assertIn("0.7", table)
        calibration = json.loads(measured.read_text())
        self.assertEqual([(setting["verifier"], setting["saguaro_c"])
                          for setting in calibration["settings"]],
                         [("shared-noise", 1), ("rejection", 1), ("rejection", 0.3)])
        setting = calibration["settings"][0]
        self.assertEqual(len(calibration["settings"][2]["draft"]["hit_partial"]), 3)
        hits = setting["draft"]["hit_partial"]
        self.assertEqual(hits, sorted(hits))
        self.assertTrue(0 < setting["draft"]["acceptance"][0] < 1)
        drawn = self.drawn(page)
        self.assertEqual(drawn["kind"], "calibration")
        self.assertEqual(drawn["times"], calibration["times"])
        self.assertEqual([shown["draft"]["hit_full"] for shown in drawn["settings"]],
                         [given["draft"]["hit_full"] for given in calibration["settings"]])
        self.assertEqual(set(drawn["settings"][2]["draft"]["law_full"]), {"c", "r"})
        self.assertEqual(["fallbacks" in shown for shown in drawn["settings"]], [True, True, False])
        self.assertIn("b* ", self.succeed("plan", "--calibration", measured).stdout)
        plan = json.loads(self.succeed("plan", "--calibration", measured, "--verify", "rejection",
                                       "--json", "-").stdout)
        self.assertEqual({plan["saguaro_c"] for plan in plan["tables"][0]["plans"]
                          if plan["mode"] == "ssd"}, {0.3, 1})
        again = self.folder / "again.json"
        self.succeed("calibrate", "--limit", 1, "-n", 24, "-k", 3, "--rates-of", measured,
                     "-o", again)
        self.assertEqual(json.loads(again.read_text())["settings"], calibration["settings"])
        self.refuse("calibrate", "--rates-of", measured, "--temps", "1", saying="--rates-of")
        self.refuse("calibrate", "--rates-of", page, "--limit", 1, saying=str(page))
        self.refuse("calibrate", "--saguaro-cs", "1.5", saying="is not a C from 0 to 1")
        self.refuse("calibrate", "--temps", "warm", saying="is not a temperature")

    def test_plan_simulates_the_papers_setting(self):
        page = self.folder / "plan.html"
        options = ["plan", "--simulate", "--lookahead", 6, "--fanout", 3, "--fallback", "jit",
                   "--sweep", "devices", "--batch", 1, "--rounds", 2000]
        report = json.loads(self.succeed(*options, "--json", "-", "--html", page).stdout)
        speed = {mode["mode"]: mode["tokens_per_s"] for mode in report["modes"]}
        self.assertAlmostEqual(speed["ar"], 54.7, delta=0.5)
        self.assertAlmostEqual(speed["sd"], 161.8, delta=10)
        self.assertAlmostEqual(speed["ssd, whole cache"], 255.8, delta=20)
        self.assertEqual([run["draft_devices"] for run in report["devices"]],
                         2 * [1, 2, 3, 4, 6, 8])
        self.assertEqual(self.drawn(page), report)
        self.assertEqual(report["kind"], "simulation")
        self.assertNotIn("http", page.read_text())
        self.assertEqual(report, json.loads(self.succeed(*options, "--json", "-").stdout))
        self.assertIn("ssd, anytime", self.succeed(*options).stdout)

    def test_plan_simulates_given_numbers(self):
        options = ["plan", "--simulate", "--target-ms", "1:10,8:10,64:20", "--draft-ms", 1,
                   "--acceptance", "0.8,0.7", "--hit", "0.6,0.7,0.75", "--sweep", "none"]
        report = json.loads(self.succeed(*options, "--json", "-").stdout)
        self.assertAlmostEqual(report["modes"][0]["tokens_per_s"], 100)
        self.assertGreater(report["modes"][3]["tokens_per_s"], report["modes"][1]["tokens_per_s"])
        self.assertEqual(report["devices"] + report["frontier"] + report["pool"], [])

    def test_plan_shows_the_roofline(self):
        page = self.folder / "roofline.html"
        options = ["plan", "--roofline", "--html", page, "--json", "-"]
        report = json.loads(self.succeed(*options).stdout)
        self.assertAlmostEqual(report["meta"]["knee"], 173.7, delta=0.1)  # SSSD, Appendix B.
        self.assertEqual(int(report["meta"]["free_s_q"]), 21)
        self.assertEqual(len(report["ops"]), 8)
        self.assertEqual(self.drawn(page), report)
        self.assertEqual(report["kind"], "roofline")
        self.assertEqual(report["meta"]["tokens"], "a chain at acceptance 0.7")
        own = json.loads(self.succeed("plan", "--roofline", "--model-shape",
                                      MODELS / "demo-target", "--flops", 1e12, "--bandwidth",
                                      15e9, "--batch", 1, "--json", "-").stdout)
        self.assertAlmostEqual(own["meta"]["knee"], 66.7, delta=0.1)

    def test_refuses_bad_options(self):
        simulate = ["plan", "--simulate", "--sweep", "none"]
        numbers = ["--target-ms", 10, "--draft-ms", 1, "--acceptance", "0.8", "--hit", "0.6"]
        self.refuse(*simulate, "--target-ms", 10, saying="--draft-ms is missing")
        self.refuse(*simulate, "--preset", "paper-7b", saying="paper-70b, paper-32b")
        self.refuse(*simulate, *numbers[:6], "--hit", "1.6", saying="--hit: 1.6 is not in 0 .. 1")
        self.refuse(*simulate, "--target-ms", "1:10,8", *numbers[2:], saying="'8' is not X:VALUE")
        self.refuse(*simulate, "--target-ms", "8:10,1:9", *numbers[2:], saying="ascend")
        self.refuse(*simulate, "--target-ms", "0", *numbers[2:], saying="positive")
        self.refuse(*simulate, *numbers, "--fallback", "ngram", saying="--ngram-acceptance")
        self.refuse(*simulate, *numbers, "--fallback", "retrieval", saying="retrieval")
        self.refuse(*simulate, *numbers, "--fanout", "16", saying="--fanout: 16 is not in 1 .. 15")
        self.refuse(*simulate, *numbers, "--lookahead", "2.5", saying="--lookahead: '2.5'")
        self.refuse(*simulate[:2], "--sweep", "batch", saying="frontier")
        self.refuse("plan", "--simulate", "--roofline", saying="--roofline")
        self.refuse(*simulate, "--cache-budget", 21, saying="--cache-budget is for predictions")
        self.refuse(*simulate, "--ranks", 2, saying="--ranks is for --roofline")
        self.refuse("plan", "--sweep", "none", saying="--sweep is for --simulate")
        self.refuse("plan", "--roofline", "--hit", "0.6", saying="--hit is for predictions")
        roofline = ["plan", "--roofline"]
        self.refuse(*roofline, "--flops", "1e12", saying="give both")
        self.refuse(*roofline, "--device", "abacus", saying="h100")
        self.refuse(*roofline, "--model-shape", "llama-9z", saying="llama-8b")
        self.refuse(*roofline, "--accepted", "8:2,4:1", saying="ascend")


if __name__ == "__main__":
    unittest.main(verbosity=2)
