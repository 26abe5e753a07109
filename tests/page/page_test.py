#!/usr/bin/env python3
"""The page in a real browser: page_test.py SCREENSHOT_DIRECTORY [TEST]...

Runs against fake_server.py in headless Chromium and leaves screenshots to be looked at. Where
Chromium is not installed it says so and exits with 77.
"""

import fake_server
import page_case
from page_case import DONE, READY, PageTest

# Contrast of an element's text with a background, as WCAG 2 defines it.
CONTRAST = """((text, ground) => {
  const probe = document.body.appendChild(document.createElement('canvas')).getContext('2d', {willReadFrequently: true});
  const resolve = (name) => {
    const element = document.body.appendChild(document.createElement('i'));
    element.style.color = `var(${name})`;
    const color = getComputedStyle(element).color;
    element.remove();
    probe.fillStyle = color;
    probe.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...probe.getImageData(0, 0, 1, 1).data].map((byte) => {
      const c = byte / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [a, b] = [resolve(text), resolve(ground)];
  probe.canvas.remove();
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
})"""


class ModelsTest(PageTest):
    def setUp(self):
        super().setUp()
        fake_server.Handler.names = ["qwen", "org/gemma:Q8_0"]

    def tearDown(self):
        fake_server.Handler.names = ["demo-target"]
        super().tearDown()

    def models_asked(self):
        return [body["model"] for _, body in fake_server.Handler.seen]

    def test_the_reader_chooses_who_answers(self):
        tab = self.open()
        shown = "[...document.querySelectorAll('#model option')].map((o) => o.textContent)"
        self.assertEqual(tab.run(shown), fake_server.Handler.names)
        self.ask(tab, "Tell me a story.")
        tab.run("""const select = document.getElementById('model');
                   select.value = 'org/gemma:Q8_0';
                   select.dispatchEvent(new Event('change'))""")
        tab.wait(READY)
        self.ask(tab, "And then?")
        self.assertEqual(self.models_asked(), ["qwen", "org/gemma:Q8_0"])
        self.assertTrue(any(url.endswith("/props?model=org%2Fgemma%3AQ8_0")
                            for url in tab.requests()), tab.requests())
        self.assert_fits(tab)
        self.shoot(tab, "models")
        later = self.open(beside=tab)  # What was chosen stays.
        self.assertEqual(later.run("document.getElementById('model').value"), "org/gemma:Q8_0")

    def test_it_fits_on_a_phone(self):
        tab = self.open(width=360, height=740)
        self.assert_fits(tab)
        self.shoot(tab, "models-phone")


class StreamTest(PageTest):
    pace = 10.0  # Slow enough to act in between on a busy machine.

    def test_an_answer_streams_and_its_tokens_have_origins(self):
        tab = self.open()
        self.ask(tab, "Tell me a story.", wait=False)
        tab.wait("document.querySelectorAll('.answer .t').length > 5")
        part = tab.run("document.querySelector('.answer .text').textContent")
        self.assertTrue(fake_server.STORY.startswith(part))
        self.assertLess(len(part), len(fake_server.STORY))
        self.assertEqual(tab.run("document.getElementById('send').textContent"), "Stop")
        tab.wait(DONE)
        self.assertEqual(tab.run("document.querySelector('.answer .text').textContent"),
                         fake_server.STORY)
        tokens = fake_server.tokens_of(fake_server.STORY)
        traces = list(fake_server.rounds_of(tokens, "ssd", 1))
        self.assertEqual(
            tab.run("[...document.querySelectorAll('.answer .t')].map((t) => "
                    "[t.textContent, t.dataset.origin])"),
            [[token["text"], token["origin"]] for trace in traces for token in trace["tokens"]])
        self.assertEqual(len({token["origin"] for trace in traces for token in trace["tokens"]}), 3)
        foot = tab.run("document.querySelector('.answer .foot').textContent")
        self.assertIn(f"SSD · {len(tokens)} tokens · {len(tokens) / len(traces):.2f} a round", foot)
        path, body = fake_server.Handler.seen[0]
        self.assertEqual(path, "/v1/chat/completions")
        self.assertEqual(body, {
            "messages": [{"role": "user", "content": "Tell me a story."}], "stream": True,
            "stream_options": {"include_usage": True}, "speculation_trace": True,
            "reasoning_format": "none", "temperature": 0.7, "seed": 1, "max_tokens": 200})

    def test_stopping_keeps_what_came_and_the_conversation_goes_on(self):
        tab = self.open()
        self.ask(tab, "Tell me a story.", wait=False)
        tab.wait("document.querySelectorAll('.answer .t').length > 20")
        tab.click("#send")
        tab.wait(DONE)
        kept = tab.run("document.querySelector('.answer .text').textContent")
        self.assertTrue(fake_server.STORY.startswith(kept) and kept != fake_server.STORY)
        self.assertEqual(tab.run("document.querySelector('.answer .foot').textContent"), "Stopped")
        self.ask(tab, "And then?")
        self.assertEqual(fake_server.Handler.seen[1][1]["messages"],
                         [{"role": "user", "content": "Tell me a story."},
                          {"role": "assistant", "content": kept},
                          {"role": "user", "content": "And then?"}])
        tab.click("#new-chat")
        self.assertEqual(tab.run("document.querySelectorAll('.answer, .column').length"), 0)
        self.assertFalse(tab.run("document.getElementById('empty').hidden"))


class ChatTest(PageTest):
    def test_origins_show_on_demand_by_more_than_colour(self):
        tab = self.open()
        self.ask(tab, "Tell me a story.")
        lines = ("[...new Set([...document.querySelectorAll('.answer .t')].map((t) => {"
                 "const style = getComputedStyle(t.querySelector('u'));"
                 "return `${t.dataset.origin} ${style.textDecorationLine} "
                 "${style.textDecorationStyle}`; }))].sort()")
        self.assertEqual(tab.run(lines), [f"{origin} none solid" for origin in
                                          ("accepted", "bonus", "fallback")])
        self.shoot(tab, "chat_plain")
        tab.click("#origins")
        self.assertEqual(tab.run(lines), ["accepted underline solid", "bonus underline dotted",
                                          "fallback underline dashed"])
        self.assertFalse(tab.run("document.getElementById('legend').hidden"))
        tab.click(".answer .t:nth-child(12)")
        self.assertRegex(tab.run("document.querySelector('.note').textContent"),
                         r"“.+”: (accepted|the target’s own).* in round \d+")
        self.shoot(tab, "chat_origins")
        tab.open(self.url)  # The choice is kept.
        tab.wait(READY)
        self.assertEqual(tab.run("document.getElementById('origins').ariaPressed"), "true")

    def test_the_strip_shows_every_round(self):
        tab = self.open()
        self.ask(tab, "Tell me a story.")
        traces = list(fake_server.rounds_of(fake_server.tokens_of(fake_server.STORY), "ssd", 1))
        shown = tab.run("""[...document.querySelectorAll('.column')].map((column) => [
            column.querySelectorAll('[data-origin]:not([data-origin=bonus])').length,
            column.querySelectorAll('.rejected').length, column.querySelector('b').className])""")
        self.assertEqual(shown, [[trace["accepted"], len(trace["proposed"]) - trace["accepted"],
                                  {True: "hit", False: "miss", None: "none"}[trace["hit"]]]
                                 for trace in traces])
        tab.run("document.getElementById('strip').focus()")
        tab.press("Home")
        tab.press("ArrowRight")
        chosen = traces[1]
        self.assertEqual(tab.run("document.getElementById(document.getElementById('strip')"
                                 ".getAttribute('aria-activedescendant')).ariaSelected"), "true")
        self.assertIn("Round 2", tab.run("document.querySelector('#round h3').textContent"))
        self.assertEqual(tab.run("document.querySelectorAll('#round .chip').length"),
                         len(chosen["proposed"]) + 1)
        hits = [trace["hit"] for trace in traces if trace["hit"] is not None]
        self.assertIn(f"{round(100 * sum(hits) / len(hits))} %",
                      tab.run("document.getElementById('figures').textContent"))

    def test_a_long_answer_keeps_the_strip_short(self):
        tab = self.open()
        tab.run("localStorage.setItem('foretoken.settings', '{\"max_tokens\": \"1200\"}')")
        tab.open(self.url)
        tab.wait(READY)
        self.ask(tab, "Tell me a [long] story.")
        self.assertEqual(tab.run("document.querySelectorAll('.answer .t').length"), 1200)
        self.assertEqual(tab.run("document.querySelectorAll('.column').length"), 160)
        self.assertTrue(tab.run("(() => { const t = document.getElementById('transcript');"
                                "return t.scrollHeight - t.scrollTop - t.clientHeight < 5; })()"))

    def test_failures_are_said_where_the_answer_would_be(self):
        tab = self.open()
        for word, message in (("[break]", "the engine lost its model"),
                              ("[cut]", "The answer was cut off."),
                              ("[refuse]", "the queue of 64 requests is full")):
            self.ask(tab, word)
            self.assertIn(message, tab.run("document.querySelector('.answer:last-child "
                                           "[role=alert]').textContent"))
        self.expect_problem(tab, "429")
        self.shoot(tab, "chat_failures")
        self.ask(tab, "Tell me a story.")
        self.assertIn("126 tokens", tab.run("document.querySelector('.answer:last-child .foot')"
                                            ".textContent"))

    def test_what_a_model_says_is_text(self):
        tab = self.open()
        self.ask(tab, "[markup]")
        self.assertEqual(tab.run("document.querySelectorAll('.answer img, .answer b, .answer "
                                 "script').length"), 0)
        self.assertTrue(tab.run("document.querySelector('.answer .text').textContent").startswith(
            "<b>Bold</b> <img src=x onerror=alert(1)> & <script>"))


class SettingsTest(PageTest):
    def fill(self, tab, **values):
        for name, value in values.items():
            tab.run(f"document.querySelector('#settings [name={name}]').value = '{value}'")

    def test_settings_shape_requests_and_are_kept(self):
        tab = self.open()
        tab.click("#open-settings")
        self.assertEqual(tab.run("[...document.querySelector('#settings [name=mode]').options]"
                                 ".map((option) => option.value)"), ["", *fake_server.MODES])
        self.fill(tab, mode="sd", lookahead="4", fanout="2", temperature="0", seed="99",
                  max_tokens="30", system="Be brief.")
        self.shoot(tab, "settings")
        tab.click("#settings .primary")
        self.assertFalse(tab.run("document.getElementById('settings').open"))
        tab.open(self.url)
        tab.wait(READY)
        self.ask(tab, "Hello")
        body = fake_server.Handler.seen[0][1]
        self.assertEqual(body["speculative"], {"mode": "sd", "lookahead": 4, "fanout": 2})
        self.assertEqual([body["temperature"], body["seed"], body["max_tokens"]], [0, 99, 30])
        self.assertEqual(body["messages"][0], {"role": "system", "content": "Be brief."})
        self.assertIn("SD · 30 tokens", tab.run("document.querySelector('.foot').textContent"))

    def test_a_value_out_of_range_is_not_taken(self):
        tab = self.open()
        tab.click("#open-settings")
        self.fill(tab, temperature="-1")
        tab.click("#settings .primary")
        self.assertTrue(tab.run("document.getElementById('settings').open"))
        tab.click("#close-settings")
        tab.wait("!document.getElementById('settings').open")
        self.ask(tab, "Hello")
        self.assertEqual(fake_server.Handler.seen[0][1]["temperature"], 0.7)


class KeyTest(PageTest):
    api_key = "open sesame"

    def test_a_server_with_a_key_asks_for_it(self):
        tab = self.open(state="document.getElementById('server').dataset.state === 'closed'")
        self.ask(tab, "Hello")
        self.expect_problem(tab, "401")
        self.assertIn("wants its API key", tab.run("document.querySelector('.error').textContent"))
        tab.click(".error button")
        tab.run("document.querySelector('[name=key]').value = 'open sesame'")
        tab.click("#settings .primary")
        tab.wait(READY)
        self.ask(tab, "Hello")
        self.assertIn("126 tokens",
                      tab.run("document.querySelector('.answer:last-child .foot').textContent"))
        self.assertNotIn("sesame", tab.run("JSON.stringify(localStorage)"))


class RaceTest(PageTest):
    def race(self, tab, prompt):
        tab.run(f"document.getElementById('race-prompt').value = '{prompt}'")
        tab.click("#race-start")
        tab.wait("document.querySelectorAll('.lane.done').length === 4")
        return tab.run("document.getElementById('verdict').textContent")

    def test_modes_and_drafts_race_to_identical_outputs(self):
        tab = self.open("#race", reduced_motion=True)
        self.assertEqual(self.race(tab, "A dragon."),
                         "Identical: all four gave the same 126 tokens.")
        self.assertEqual([body["speculative"]["mode"] for _, body in fake_server.Handler.seen],
                         ["ar", "sd", "ssd", "sd2"])
        texts = tab.run("[...document.querySelectorAll('.lane .text')].map((t) => t.textContent)")
        self.assertEqual(texts, [fake_server.STORY] * 4)
        names = tab.run("[...document.querySelectorAll('.lane h3 small')].map((s) => s.textContent)")
        self.assertEqual(names[0], "autoregressive")
        self.assertEqual(names[3], "speculative, second draft, demo-eagle3")
        speeds = tab.run("[...document.querySelectorAll('.speed > span:first-child')]"
                         ".map((span) => Number(span.textContent))")
        places = tab.run("[...document.querySelectorAll('.place')].map((p) => p.textContent)")
        order = sorted(range(4), key=lambda lane: -speeds[lane])
        self.assertEqual(places, [str(order.index(lane) + 1) for lane in range(4)])
        ratios = tab.run("[...document.querySelectorAll('.ratio')].map((r) => parseFloat(r.textContent))")
        self.assertAlmostEqual(ratios[2], speeds[2] / speeds[0], delta=0.02)
        self.shoot(tab, "race")

    def test_a_difference_is_found_and_placed(self):
        tab = self.open("#race", reduced_motion=True)
        at = fake_server.tokens_of(fake_server.STORY).index(" green") + 1
        self.assertEqual(self.race(tab, "[differ]"),
                         f"Different: SD departs from AR at token {at}.")

    def test_the_replay_runs_by_the_servers_clock(self):
        tab = self.open("#race")
        tab.click("#race-start")
        tab.wait("document.querySelector('[data-mode=ssd]').classList.contains('done') && "
                 "!document.getElementById('replay').hidden")
        shown = tab.run("[...document.querySelectorAll('.lane')].map((lane) => "
                        "lane.querySelectorAll('.t:not(.ahead)').length)")
        self.assertLess(shown[0], shown[1])
        self.assertEqual(shown[2], 126)
        self.shoot(tab, "race_replay")
        tab.wait("document.querySelectorAll('.lane.done').length === 4")

    def test_a_race_needs_two_modes(self):
        tab = self.open("#race")
        tab.run("document.querySelectorAll('#race-modes input').forEach((box) => "
                "{ box.checked = box.value === 'ar'; })")
        tab.click("#race-start")
        self.assertEqual(tab.run("document.getElementById('verdict').textContent"),
                         "Choose two modes or more.")


class LiveTest(PageTest):
    def test_gauges_and_plots_follow_the_server_while_shown(self):
        tab = self.open("#live")
        tab.wait("document.querySelector('#plot-speed polyline')")
        text = tab.run("document.getElementById('live').innerText")
        for part in ("running\n3", "KV in use\n21 %", "tokens a round\n3.41", "cache hits\n79 %",
                     "12,100", "SSSD", "Waiting for a proposal"):
            self.assertIn(part, text.replace("\n\n", "\n"))
        self.assertEqual(tab.run("document.querySelectorAll('#plot-hits li').length"), 7)
        width = tab.run("parseFloat(document.querySelector('#plot-acceptance li i').style.width)")
        self.assertAlmostEqual(width, 86)
        self.shoot(tab, "live")
        tab.click("#tab-chat")
        tab.run("new Promise((resolve) => setTimeout(resolve, 300))")
        polls = fake_server.Handler.polls
        tab.run("new Promise((resolve) => setTimeout(resolve, 1300))")
        self.assertEqual(fake_server.Handler.polls, polls)


class ReachTest(PageTest):
    def test_a_phone_needs_no_sideways_scrolling(self):
        for dark in (False, True):
            theme = "dark" if dark else "light"
            tab = self.open(width=360, height=740, dark=dark, reduced_motion=True)
            self.assert_fits(tab)
            tab.click("#origins")
            self.ask(tab, "Tell me a story.")
            self.assert_fits(tab)
            self.shoot(tab, f"phone_chat_{theme}")
            # The conversation has room beside everything else.
            self.assertGreater(tab.run("document.getElementById('transcript').clientHeight"), 300)
            tab.click("#open-settings")
            self.assert_fits(tab)
            self.shoot(tab, f"phone_settings_{theme}")
            tab.press("Escape")
            tab.click("#tab-race")
            tab.click("#race-start")
            tab.wait("document.querySelectorAll('.lane.done').length === 4")
            self.assert_fits(tab)
            self.shoot(tab, f"phone_race_{theme}")
            tab.click("#tab-live")
            tab.wait("document.querySelector('#plot-speed svg')")
            self.assert_fits(tab)
            self.shoot(tab, f"phone_live_{theme}")

    def test_everything_can_be_done_by_keyboard(self):
        tab = self.open()
        focused = "document.activeElement.id || document.activeElement.className"

        def reach(name):
            for _ in range(30):
                if tab.run(focused) == name:
                    return
                tab.press("Tab")
            self.fail(f"Tab does not reach {name}")

        tab.press("Tab")
        self.assertEqual(tab.run(focused), "skip")
        reach("prompt")
        tab.type("Tell me a story.")
        tab.press("Enter", shift=True)  # A new line, not the end.
        self.assertEqual(fake_server.Handler.seen, [])
        tab.press("Enter")
        tab.wait(DONE)
        tab.run("document.getElementById('main').focus()")
        reach("origins")
        tab.press(" ")
        reach("text")
        tab.press("ArrowRight")
        tab.press("ArrowRight")
        self.assertEqual(tab.run("document.querySelector('.picked').dataset.index"), "1")
        self.assertIn("in round 2", tab.run("document.getElementById('announce').textContent"))
        tab.press("Escape")
        self.assertFalse(tab.run("document.querySelector('.picked') !== null"))
        reach("strip")
        tab.press("ArrowLeft")
        tab.run("document.body.focus(); document.getElementById('tab-chat').focus()")
        tab.press("ArrowRight")
        self.assertEqual(tab.run(focused), "tab-race")
        self.assertFalse(tab.run("document.getElementById('race').hidden"))
        reach("open-settings")
        tab.press("Enter")
        self.assertTrue(tab.run("document.getElementById('settings').open"))
        self.assertTrue(tab.run("document.getElementById('settings').contains(document.activeElement)"))
        tab.press("Escape")
        self.assertEqual(tab.run(focused), "open-settings")
        reach("race-prompt")
        reach("race-start")
        # What has focus shows it.
        self.assertNotEqual(tab.run("getComputedStyle(document.activeElement).outlineStyle"), "none")

    def test_controls_have_names(self):
        tab = self.open()
        self.ask(tab, "Tell me a story.")
        tab.call("Accessibility.enable")
        wanted = {"button", "textbox", "combobox", "listbox", "option", "tab", "spinbutton",
                  "checkbox", "dialog", "log", "tabpanel", "searchbox"}
        found = set()
        for prepare in ("#origins", "#tab-race", "#tab-live", "#open-settings"):
            tab.click(prepare)
            for node in tab.call("Accessibility.getFullAXTree")["nodes"]:
                role = node.get("role", {}).get("value")
                if role in wanted and not node["ignored"]:
                    found.add(role)
                    self.assertTrue(node.get("name", {}).get("value"), (prepare, node))
        self.assertLessEqual({"button", "textbox", "tab", "listbox", "option", "checkbox",
                              "spinbutton", "dialog"}, found)

    def test_both_themes_can_be_chosen_and_read(self):
        for dark in (False, True):
            tab = self.open(dark=dark)
            lightness = "parseInt(getComputedStyle(document.body).backgroundColor.slice(4))"
            self.assertEqual(tab.run(lightness) < 128, dark)
            for theme, is_dark in (("light", False), ("dark", True), ("auto", dark)):
                tab.click("#theme")
                self.assertEqual(tab.run("document.getElementById('theme').dataset.theme"), theme)
                self.assertEqual(tab.run(lightness) < 128, is_dark)
                for text, ground, least in (
                        ("--ink", "--paper", 7), ("--soft", "--paper", 4.5), ("--soft", "--sunk", 4.5),
                        ("--soft", "--card", 4.5), ("--bad", "--paper", 4.5),
                        ("--accepted", "--accepted-tint", 4.5), ("--bonus", "--bonus-tint", 4.5),
                        ("--fallback", "--fallback-tint", 4.5), ("--paper", "--bonus", 4.5),
                        ("--ink", "--accepted-tint", 7), ("--focus", "--paper", 3),
                        ("--strong-rule", "--card", 3), ("--accepted-fill", "--sunk", 3),
                        ("--bonus-fill", "--sunk", 3)):
                    self.assertGreaterEqual(tab.run(f"{CONTRAST}('{text}', '{ground}')"), least,
                                            (theme, dark, text, ground))
            tab.click("#theme")
            tab.open(self.url)
            tab.wait(READY)
            self.assertEqual(tab.run(lightness) < 128, False)  # Light was chosen and kept.
            self.shoot(tab, "empty_light" if dark else "empty")

    def test_little_motion_is_respected(self):
        tab = self.open("#race", reduced_motion=True)
        tab.click("#race-start")
        tab.wait("!document.getElementById('replay').hidden")
        self.assertEqual(tab.run("document.querySelectorAll('.lane.done').length"), 4)
        self.assertEqual(tab.run("document.getAnimations().length"), 0)


if __name__ == "__main__":
    page_case.main()
