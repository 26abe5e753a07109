#!/usr/bin/env python3
"""What the page of a report draws, for each kind of report, in a real browser:
report_test.py SCREENSHOT_DIRECTORY [TEST]...
"""

import json
import pathlib
import shutil
import tempfile
import unittest

import chromium
import page_case

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "apps" / "foretoken" / "common" / "report.html"


def sample(kind):
    return json.loads((HERE / "reports" / f"{kind}.json").read_text())


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="foretoken_report."))
        self.addCleanup(shutil.rmtree, self.folder)

    def open(self, report, **options):
        """A tab with the page of a report, made as ReportPage makes it."""
        text = json.dumps(report).replace("<", "\\u003c")
        file = self.folder / "report.html"
        file.write_text(PAGE.read_text().replace(">REPORT<", f">{text}<"))
        tab = chromium.Tab(page_case.PageTest.browser, **options)
        self.addCleanup(tab.close)
        tab.open(file.as_uri())
        self.assertEqual(tab.problems(), [])
        self.assertEqual(tab.requests(), [file.as_uri()])
        shown = tab.run("document.body.innerText")
        for wrong in ("NaN", "undefined", "[object", "Infinity"):
            self.assertNotIn(wrong, shown)
        return tab

    def count(self, tab, selector):
        return tab.run(f"document.querySelectorAll({json.dumps(selector)}).length")

    def texts(self, tab, selector):
        return tab.run(f"[...document.querySelectorAll({json.dumps(selector)})]"
                       ".map((element) => element.textContent)")

    def definitions(self, tab):
        return dict(zip(self.texts(tab, "dt"), self.texts(tab, "dd")))

    def test_bench_shows_every_mode_and_its_figures(self):
        tab = self.open(sample("bench"))
        self.assertEqual(tab.run("document.title"), "Foretoken bench")
        self.assertEqual(self.texts(tab, "tbody th"), ["ar", "ssd", "sd"])
        rows = tab.run("[...document.querySelectorAll('tbody tr')].map((row) => "
                       "[...row.cells].map((cell) => cell.innerText.replace('\\n', ' ')))")
        self.assertEqual(rows[1], ["ssd", "3456 3200–3600", "1.92× 1.85–1.99", "yes", "3.40", "61.0%",
                                   "78.0%", "–", "0.02 p99 0.9", "300", "610", "12.0", "9.00"])
        self.assertEqual(self.texts(tab, "td.good"), ["yes"])
        self.assertEqual(self.texts(tab, "td.bad"), ["NO"])
        self.assertEqual(self.definitions(tab)["prompts per set"], "64")

    def test_bench_draws_only_the_charts_that_have_data(self):
        tab = self.open(sample("bench"))
        # Bars: both sets. Acceptance: one line of three points. Latency: two lines of one set.
        self.assertEqual(self.count(tab, "svg"), 4)
        self.assertEqual(self.count(tab, "polyline"), 3)
        self.assertEqual(self.count(tab, "circle"), 3)

    def test_text_stays_text(self):
        hostile = "</script><script>hit()</script><img src=x onerror=hit()><!--"
        report = sample("bench")
        report["meta"]["target"] = hostile
        report["sets"][1]["modes"][0]["mode"] = hostile
        tab = self.open(report)
        self.assertEqual(self.definitions(tab)["target"], hostile)
        self.assertEqual(self.texts(tab, "h3")[1], 'code <b>&"x"')
        self.assertEqual(self.texts(tab, "tbody th")[2], hostile)
        self.assertEqual(self.count(tab, "b, img"), 0)

    def test_bench_labels_scripted_acceptance(self):
        report = sample("bench")
        self.assertEqual(self.count(self.open(report), "body > p.warn"), 0)
        report["meta"]["acceptance"] = "scripted"
        self.assertIn("Scripted acceptance", self.texts(self.open(report), "p.warn")[-1])

    def test_absent_and_mistyped_values_are_absent(self):
        hurt = {"name": 1, "modes": [
            {"mode": [], "tokens_per_s": {"median": "fast"}, "speedup": 2, "identical": 1,
             "acceptance_per_position": [None, "x"],
             "itl_ms": {"histogram": [[0, 5], [1], ["a", 2], 3, [1, -1]]}}]}
        for report in ({"sets": 3, "meta": []}, {"sets": [1, {"modes": [None, {}]}]},
                       {"sets": [hurt]}):
            self.assertEqual(self.count(self.open({"kind": "bench", **report}), "svg"), 0)
        for report in (None, [], {"kind": "other"}, {"kind": "constructor"}):
            self.assertIn("cannot draw", self.texts(self.open(report), "p.warn")[-1])

    def test_load_shows_figures_errors_and_latencies(self):
        tab = self.open(sample("load"))
        figures = self.definitions(tab)
        self.assertEqual(figures["model"], "<m>")
        self.assertEqual(
            [figures[name] for name in ("completed", "duration", "output tokens",
                                        "goodput, requests/s", "draft tokens accepted")],
            ["2 of 3", "200 ms", "8 (chunks)", "5.00 (33.3%)", "80.0%"])
        self.assertEqual(self.texts(tab, "li:has(.bad)"), ["1 × http 429: the queue is <full>"])
        self.assertIn("p50 20.0, p90 28.0, p99 29.8 ms", self.texts(tab, ".card p"))
        self.assertEqual(self.texts(tab, "h3")[0], "Time to first token")
        self.assertEqual(self.count(tab, "polyline"), 4)
        refused = sample("modes")["modes"][0]["load"]
        refused.update(completed=0, errors={"connection": {"count": 1, "example": ""}})
        tab = self.open({"kind": "load", "meta": {}, "load": refused})
        self.assertEqual(self.texts(tab, ".bad"), ["1 × connection"])
        self.assertEqual(self.count(tab, "svg"), 0)

    def test_modes_are_compared(self):
        tab = self.open(sample("modes"))
        self.assertEqual(self.definitions(tab)["model"], "<m>")
        self.assertEqual(self.texts(tab, "h2")[1:], ["ar", "auto"])
        self.assertEqual(self.texts(tab, "svg text"), ["ar", "50.0", "auto", "100"])
        self.assertEqual(self.count(tab, ".whisker"), 2)

    def test_plan_draws_speeds_and_lists_plans(self):
        tab = self.open(sample("plan"))
        self.assertEqual(self.texts(tab, "h2"), ["Speed by mode and K", "Batch 1", "Batch 4"])
        self.assertEqual(self.texts(tab, ".legend li"), 2 * ["ar", "sd", "ssd"])
        self.assertEqual(self.count(tab, "polyline"), 6)
        self.assertIn("Llama-3.1-70B", self.texts(tab, "body > p")[0])
        self.assertIn("Choice: ssd", self.texts(tab, "section > p")[1])
        first = self.texts(tab, "tbody tr:first-child > *")[:7]
        self.assertEqual(first, ["ssd", "4", "40", "jit", "230.5", "4.30", "96.7%"])
        self.assertEqual(self.texts(tab, "tbody tr:last-child > *")[:7],
                         ["ar", "–", "–", "–", "54.7", "1.00", "–"])

    def test_simulation_draws_its_sweeps(self):
        report = sample("simulation")
        tab = self.open(report)
        self.assertEqual(self.texts(tab, "h3"), [
            "Batch 1", "Draft devices, batch 16", "Throughput against latency", "Batch",
            "Targets that share 1 draft device"])
        self.assertEqual(self.count(tab, "rect"), 4)
        self.assertEqual(self.count(tab, "polyline"), 2 + 4 + 4 + 2)
        # A mode has one colour everywhere.
        colors = tab.run("Object.fromEntries(['rect', 'polyline'].map((tag) => [tag, "
                         "document.querySelector(`${tag}:has(title)`).style.cssText]))")
        self.assertEqual(colors, {"rect": "--color: var(--s0);", "polyline": "--color: var(--s2);"})
        alone = self.open({**report, "devices": [], "frontier": [], "pool": []})
        self.assertEqual(self.count(alone, "svg"), 1)

    def test_roofline_draws_times_and_speedups(self):
        tab = self.open(sample("roofline"))
        self.assertEqual(self.texts(tab, "h3"), 2 * ["context 1024, batch 8", "context 32768, batch 8"])
        self.assertEqual(self.count(tab, "polyline"), 2 * 2 * 3)
        facts = self.definitions(tab)
        self.assertEqual([facts["compute"], facts["knee"], facts["rows about free"]],
                         ["165 TFLOP/s", "174 FLOPs per byte", "22 a sequence"])
        self.assertIn("tokens: a chain at acceptance 0.7.", self.texts(tab, "section > p")[1])

    def test_calibration_draws_the_papers_figures(self):
        tab = self.open(sample("calibration"))
        self.assertEqual(self.texts(tab, "h1"), ["demo-target and demo-draft"])
        self.assertEqual(self.texts(tab, "h2"), ["Cache misses against fan-out", "Saguaro sampling",
                                                 "Fallbacks", "Acceptance and times"])
        notes = " ".join(self.texts(tab, ".card p"))
        for figure in (3, 4, 5):
            self.assertIn(f"(Figure {figure})", notes)
        self.assertIn("k = K: 0.20 F^-0.75", self.texts(tab, ".legend li"))
        self.assertEqual(self.count(tab, "polyline"), (6 + 4) + 3 + (2 + 2) + 2 + 4)
        self.assertIn("target, context 1024, 8: 12.5", self.texts(tab, "circle title"))

    def test_replay_draws_proposals_and_times(self):
        tab = self.open(sample("replay"))
        self.assertEqual(self.definitions(tab), {"streams": "12", "datastore tokens": "48000",
                                                 "prompt tokens": "32", "files": "a.jsonl, b.jsonl"})
        self.assertEqual(self.texts(tab, "h3"), ["accepted tokens per step", "retrieval time, us"])
        self.assertEqual(self.count(tab, "polyline"), 2 * 3)

    def test_charts_keep_to_their_frames(self):
        tab = self.open(sample("bench"))
        for call, ticks in (("linearTicks(0, 97)", [0, 20, 40, 60, 80, 100]),
                            ("linearTicks(3, 7)", [3, 4, 5, 6, 7]),
                            ("linearTicks(0.11, 0.2)", [.1, .12, .14, .16, .18, .2]),
                            ("logarithmicTicks(0.5, 200)", [1, 10, 100]),
                            ("logarithmicTicks(1.5, 12)", [2, 5, 10])):
            self.assertEqual([round(tick, 9) for tick in tab.run(call)], ticks, call)
        self.assertEqual(tab.run("[0, 0.01234, 1.234, 45.67, 12345.6].map(number)"),
                         ["0.00", "0.0123", "1.23", "45.7", "12346"])
        bars = ("barChart('speed', [{ name: 'full', color: 0, value: 100, low: 100, high: 100 }, "
                "{ name: 'half', color: 1, value: 50, low: 25, high: 75 }], 100)")
        self.assertEqual(tab.run(f"[...{bars}.querySelectorAll('rect')]"
                                 ".map((bar) => bar.getAttribute('width'))"), ["391.0", "195.5"])
        self.assertEqual(tab.run(f"{bars}.querySelectorAll('.whisker').length"), 1)
        points = tab.run("lineChart('t', { low: 0, high: 1, ticks: [] }, "
                         "{ low: 0, high: 1, ticks: [] }, 'x', [{ name: 'a', color: 0, "
                         "points: [[-1, 5], [9, -5]] }], false)"
                         ".querySelector('polyline').getAttribute('points')")
        self.assertEqual(points, "38.0,8.0 390.0,190.0")

    def test_all_fit_a_phone_and_the_dark(self):
        for file in sorted((HERE / "reports").glob("*.json")):
            for dark in (False, True):
                tab = self.open(sample(file.stem), width=390, height=844, dark=dark)
                self.assertLessEqual(tab.run("document.documentElement.scrollWidth"), 390, file.stem)
                tab.screenshot(page_case.PageTest.shots /
                               f"report_{file.stem}{'_dark' if dark else ''}.png")


if __name__ == "__main__":
    page_case.main()
