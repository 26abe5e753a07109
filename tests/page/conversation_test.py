#!/usr/bin/env python3
"""Conversations on the page, in a real browser: conversation_test.py SCREENSHOT_DIRECTORY [TEST]...

Several of them, kept by the browser; answers stopped, given again, copied; questions edited;
settings of each.
"""

import json

import fake_server
import page_case
from page_case import DONE, READY, PageTest

TITLES = "[...document.querySelectorAll('.conversations .open')].map((b) => b.firstChild.textContent)"
QUESTIONS = "[...document.querySelectorAll('.question > p')].map((p) => p.textContent)"
ANSWERS = "[...document.querySelectorAll('.answer .text')].map((t) => t.textContent)"
FOOT = "document.querySelector('.answer:last-child .foot').textContent"
STORED = "Object.keys(localStorage).filter((name) => name.startsWith('foretoken.conversation.')).length"


class ConversationTest(PageTest):
    settings = {"seed": "1"}

    def setUp(self):
        super().setUp()
        self.server.RequestHandlerClass.failing = False

    def bodies(self):
        return [body for _, body in fake_server.Handler.seen]

    def item(self, tab, title, act):
        """Presses what a conversation has in the list: open, rename or remove."""
        tab.run("[...document.querySelectorAll('.conversations li')].find((li) => li.querySelector('.open')"
                f".firstChild.textContent === {json.dumps(title)}).querySelector('[data-act={act}]').click()")

    def reload(self, tab):
        tab.open(self.url)
        tab.wait(READY)


class ListTest(ConversationTest):
    def test_several_conversations_are_kept_named_and_removed(self):
        tab = self.open()
        self.assertEqual(tab.run(STORED), 0)  # Nothing was said yet.
        self.ask(tab, "[echo] First answer")
        tab.click("#new-chat")
        self.assertEqual(tab.run(ANSWERS), [])
        self.assertEqual(tab.run("document.activeElement.id"), "prompt")
        self.ask(tab, "[echo] Second answer")
        self.ask(tab, "[echo] More")
        self.assertEqual(tab.run(TITLES), ["[echo] Second answer", "[echo] First answer"])
        self.assertEqual(self.bodies()[-1]["messages"], [
            {"role": "user", "content": "[echo] Second answer"},
            {"role": "assistant", "content": "Second answer"},
            {"role": "user", "content": "[echo] More"}])
        self.item(tab, "[echo] First answer", "rename")
        tab.type("The <b>first</b>")
        tab.press("Enter")
        self.assertEqual(tab.run(TITLES)[1], "The <b>first</b>")
        self.assertEqual(tab.run("document.activeElement.dataset.act"), "rename")
        self.item(tab, "The <b>first</b>", "rename")
        tab.type("Not taken")
        tab.press("Escape")
        self.assertEqual(tab.run(TITLES)[1], "The <b>first</b>")

        self.reload(tab)  # The one that was on the screen is again.
        self.assertEqual(tab.run(ANSWERS), ["Second answer", "More"])
        self.assertEqual(tab.run("document.querySelector('[aria-current=true]').textContent"), "[echo] Second answer")
        self.assertIn("SSD · 1 token", tab.run(FOOT))
        self.item(tab, "The <b>first</b>", "open")
        self.assertEqual(tab.run(ANSWERS), ["First answer"])
        self.ask(tab, "[echo] Third")  # It goes on where it was, and is now the last to change.
        self.assertEqual([message["content"] for message in self.bodies()[-1]["messages"]],
                         ["[echo] First answer", "First answer", "[echo] Third"])
        self.assertEqual(tab.run(TITLES), ["The <b>first</b>", "[echo] Second answer"])
        self.shoot(tab, "conversations")

        self.item(tab, "The <b>first</b>", "remove")
        self.assertEqual(tab.run(TITLES), ["[echo] Second answer"])
        self.assertEqual([tab.run(STORED), tab.run(ANSWERS)], [1, []])
        self.shoot(tab, "conversation_removed")
        tab.click("#undo")
        self.assertEqual(tab.run(TITLES), ["The <b>first</b>", "[echo] Second answer"])
        self.assertEqual([tab.run(STORED), tab.run(ANSWERS)], [2, ["First answer", "Third"]])
        self.item(tab, "The <b>first</b>", "remove")
        self.reload(tab)
        self.assertEqual([tab.run(TITLES), tab.run(ANSWERS)], [["[echo] Second answer"], []])

    def test_two_tabs_see_each_others_conversations(self):
        tab = self.open()
        self.ask(tab, "[echo] From here")
        other = self.open(beside=tab)
        self.assertEqual([other.run(TITLES), other.run(ANSWERS)], [["[echo] From here"], []])
        self.item(other, "[echo] From here", "open")
        self.ask(other, "[echo] From there")
        tab.wait("document.querySelectorAll('.answer').length === 2")
        self.assertEqual(tab.run(ANSWERS), ["From here", "From there"])
        self.item(other, "[echo] From here", "rename")
        other.type("Ours")
        other.press("Enter")
        tab.wait(f"{TITLES}[0] === 'Ours'")
        self.ask(tab, "[echo] Again from here")
        self.assertEqual(len(self.bodies()[-1]["messages"]), 5)

    def test_a_browser_that_keeps_nothing_still_chats(self):
        tab = self.open(script="Object.defineProperty(window, 'localStorage', { get() { throw new DOMException("
                        "'refused', 'SecurityError'); } });")
        self.ask(tab, "[echo] One")
        self.assertIn("keeps nothing", tab.run("document.getElementById('storage-problem').innerText"))
        tab.click("#new-chat")
        self.ask(tab, "[echo] Two")
        self.item(tab, "[echo] One", "open")
        self.assertEqual(tab.run(ANSWERS), ["One"])
        tab.click("#theme")
        tab.click("#origins")
        self.assertEqual(tab.run("document.documentElement.dataset.theme"), "light")

    def test_a_full_browser_is_told_and_keeps_again_when_there_is_room(self):
        tab = self.open()
        self.ask(tab, "[echo] One")
        tab.run("""(() => {
          let size = 1 << 22;
          for (let i = 0; size > 0; ++i) {
            try { localStorage.setItem(`fill${i}`, 'x'.repeat(size)); } catch { size >>= 1; }
          }
        })()""")
        tab.click("#new-chat")
        self.ask(tab, "[echo] Two")
        self.assertIn("no room", tab.run("document.getElementById('storage-problem').innerText"))
        self.shoot(tab, "storage_full")
        self.assertEqual([tab.run(TITLES), tab.run(STORED)], [["[echo] Two", "[echo] One"], 1])
        self.item(tab, "[echo] One", "open")
        self.item(tab, "[echo] Two", "open")
        self.assertEqual(tab.run(ANSWERS), ["Two"])
        tab.run("Object.keys(localStorage).filter((n) => n.startsWith('fill')).forEach((n) => "
                "localStorage.removeItem(n))")
        self.item(tab, "[echo] One", "remove")
        self.assertTrue(tab.run("document.getElementById('storage-problem').hidden"))
        self.reload(tab)
        self.assertEqual(tab.run(TITLES), ["[echo] Two"])

    def test_what_cannot_be_read_is_left_out(self):
        good = {"id": "a", "title": "Good", "changed": 5, "settings": {"temperature": "0.3", "x": "y"},
                "turns": [{"question": "Q", "answer": "**A**"}, {"answer": 3}, None]}
        stored = {"broken": "{", "number": "3", "null": "null", "list": "[]", "a": json.dumps(good),
                  "odd": json.dumps({"id": 7, "turns": []})}
        tab = self.open(script="".join(f"localStorage['foretoken.conversation.{name}'] = {json.dumps(text)};"
                                       for name, text in stored.items()) +
                        "localStorage['foretoken.settings'] = '[';")
        self.assertEqual(tab.run(TITLES), ["Good"])
        self.item(tab, "Good", "open")
        self.assertEqual(tab.run("document.querySelector('.formatted').textContent"), "A")
        self.ask(tab, "[echo] B")
        self.assertEqual(self.bodies()[0]["temperature"], 0.3)


class AnswerTest(ConversationTest):
    pace = 8.0

    def test_an_answer_goes_on_while_another_conversation_is_read(self):
        tab = self.open()
        self.ask(tab, "Tell me a story.", wait=False)
        tab.wait("document.querySelectorAll('.answer .t').length > 5")
        tab.click("#new-chat")
        self.assertEqual(tab.run("document.getElementById('send').textContent"), "Send")
        self.assertEqual(tab.run("document.querySelectorAll('.conversations .answering').length"), 1)
        self.ask(tab, "[echo] Meanwhile")
        tab.wait("document.querySelectorAll('.conversations .answering').length === 0")
        self.assertEqual(tab.run("document.querySelectorAll('.column').length"), 1)
        self.item(tab, "Tell me a story.", "open")
        self.assertEqual(tab.run(ANSWERS), [fake_server.STORY])
        # Its rounds came back with it.
        self.assertGreater(tab.run("document.querySelectorAll('.column').length"), 10)

    def test_stopping_by_key_and_closing_the_tab_keep_what_came(self):
        tab = self.open()
        self.ask(tab, "Tell me a story.", wait=False)
        tab.wait("document.querySelectorAll('.answer .t').length > 5")
        tab.press("Escape")
        tab.wait(DONE)
        stopped = tab.run(ANSWERS)[0]
        self.assertTrue(fake_server.STORY.startswith(stopped) and stopped != fake_server.STORY)
        self.assertEqual(tab.run(FOOT), "Stopped")
        self.ask(tab, "And then?", wait=False)
        tab.wait("document.querySelectorAll('.answer:last-child .t').length > 5")
        self.reload(tab)
        first, second = tab.run(ANSWERS)
        self.assertEqual(first, stopped)
        self.assertTrue(len(second) > 5 and fake_server.STORY.startswith(second) and second != fake_server.STORY)
        self.assertEqual(tab.run(FOOT), "Stopped")

    def test_a_connection_that_is_lost_leaves_what_came(self):
        tab = self.open()
        self.ask(tab, "[drop]")
        self.expect_problem(tab, "ERR_")
        self.assertEqual(tab.run("document.querySelector('.error').textContent"),
                         "The connection to the server was lost.")
        self.assertTrue(fake_server.STORY.startswith(tab.run(ANSWERS)[0]) and tab.run(ANSWERS)[0] != "")

    def test_an_answer_is_given_again(self):
        tab = self.open()
        self.ask(tab, "[echo] One")
        self.ask(tab, "[echo] Two")
        shown = ("[...document.querySelectorAll('.answer .again')].map((b) => b.checkVisibility())")
        self.assertEqual(tab.run(shown), [False, True])  # Only of the last.
        self.server.RequestHandlerClass.failing = True
        tab.click(".answer:last-child .again")
        tab.wait("document.querySelector('.error')")
        self.expect_problem(tab, "429")
        self.assertEqual(tab.run(ANSWERS), ["One", "Two"])  # What there was is not lost.
        self.server.RequestHandlerClass.failing = False
        tab.click(".answer:last-child .again")
        tab.wait(DONE + " && document.querySelectorAll('.error').length === 0")
        self.assertEqual(tab.run(ANSWERS), ["One", "Two"])
        self.assertEqual(self.bodies()[-1], self.bodies()[1])  # The seed is fixed: the same answer.
        self.assertEqual(tab.run("document.querySelectorAll('.answer, .question').length"), 4)

    def test_a_question_is_edited_and_what_came_after_it_goes(self):
        tab = self.open()
        for question in ("[echo] One", "[echo] Two", "[echo] Three"):
            self.ask(tab, question)
        edit = ".question:nth-of-type(3) .edit"
        tab.run(f"document.querySelector('{edit}').click()")
        self.assertEqual(tab.run("document.activeElement.value"), "[echo] Two")
        tab.press("Escape")
        self.assertEqual(tab.run(QUESTIONS), ["[echo] One", "[echo] Two", "[echo] Three"])
        tab.run(f"document.querySelector('{edit}').click()")
        tab.press("End")
        tab.type(" and a half")
        self.shoot(tab, "question_edit")
        tab.press("Enter")
        tab.wait("document.querySelectorAll('.answer').length === 2 && " + DONE)
        self.assertEqual(tab.run(QUESTIONS), ["[echo] One", "[echo] Two and a half"])
        self.assertEqual(tab.run(ANSWERS), ["One", "Two and a half"])
        self.assertEqual([message["content"] for message in self.bodies()[-1]["messages"]],
                         ["[echo] One", "One", "[echo] Two and a half"])
        self.reload(tab)
        self.assertEqual(tab.run(ANSWERS), ["One", "Two and a half"])

    def test_answers_and_questions_are_copied_with_and_without_a_clipboard(self):
        tab = self.open()
        tab.allow_clipboard(self.url)
        self.ask(tab, "[echo] *One* `two`")
        tab.click(".answer [aria-label='Copy answer']")
        tab.wait("document.querySelector('.answer [aria-label=Copied]')")
        self.assertEqual(tab.run("navigator.clipboard.readText()"), "*One* `two`")
        # A page by plain HTTP from another machine has no clipboard of this kind.
        tab.run("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        tab.run("document.querySelector('.question [aria-label=\"Copy question\"]').focus()")
        tab.press("Enter")
        tab.wait("document.querySelector('.question [aria-label=Copied]')")
        tab.run("document.getElementById('prompt').focus()")
        tab.paste()
        self.assertEqual(tab.run("document.getElementById('prompt').value"), "[echo] *One* `two`")


class SettingsTest(ConversationTest):
    settings = None

    def choose(self, tab, **values):
        tab.click("#open-settings")
        for name, value in values.items():
            tab.run(f"document.querySelector('#settings [name={name}]').value = '{value}'")
        tab.click("#settings .primary")
        self.assertFalse(tab.run("document.getElementById('settings').open"))

    def test_without_a_choice_the_seed_is_random_and_the_length_the_models(self):
        tab = self.open()
        self.ask(tab, "[echo] One")
        tab.click(".answer .again")
        tab.wait(f"document.querySelector('.foot')?.textContent.includes('seed') && {DONE}")
        first, second = self.bodies()
        self.assertNotIn("max_tokens", first)
        self.assertNotEqual(first["seed"], second["seed"])
        self.assertIn(f"seed {second['seed']}", tab.run(FOOT))
        tab.click("#open-settings")
        self.assertEqual(tab.run("document.querySelector('[name=max_tokens]').placeholder"), "up to 512")
        self.shoot(tab, "settings_open")

    def test_each_conversation_has_its_own(self):
        tab = self.open()
        self.choose(tab, temperature="0.2", seed="5", max_tokens="7", system="Be brief.")
        self.ask(tab, "Tell me a story.")
        self.assertIn("7 tokens", tab.run(FOOT))
        self.assertIn("seed 5 · cut at the length limit", tab.run(FOOT))
        tab.click("#new-chat")  # Begins with what was chosen last.
        self.choose(tab, temperature="1.5", seed="", max_tokens="9", system="")
        self.ask(tab, "Tell me a rhyme.")
        self.reload(tab)
        self.item(tab, "Tell me a story.", "open")
        self.ask(tab, "More")
        self.item(tab, "Tell me a rhyme.", "open")
        self.ask(tab, "More")
        found = [(body["temperature"], body["max_tokens"], body["messages"][0]["role"]) for body in self.bodies()]
        self.assertEqual(found, [(0.2, 7, "system"), (1.5, 9, "user")] * 2)
        self.assertEqual([self.bodies()[i]["seed"] for i in (0, 2)], [5, 5])
        self.assertNotEqual(self.bodies()[1]["seed"], self.bodies()[3]["seed"])

    def test_a_race_has_one_seed_for_all(self):
        tab = self.open("#race", reduced_motion=True)
        tab.click("#race-start")
        tab.wait("document.querySelectorAll('.lane.done').length === 4")
        seeds = {body["seed"] for body in self.bodies()}
        self.assertEqual([len(self.bodies()), len(seeds)], [4, 1])


class ReachTest(ConversationTest):
    def test_the_list_comes_in_on_a_phone(self):
        for dark in (False, True):
            theme = "dark" if dark else "light"
            tab = self.open(width=360, height=740, dark=dark, reduced_motion=True)
            self.ask(tab, "[echo] A title that is much too long for the width of any list on a phone")
            self.assertFalse(tab.run("document.getElementById('side').checkVisibility()"))
            tab.click("#open-side")
            self.assertTrue(tab.run("document.getElementById('side').contains(document.activeElement)"))
            self.assertTrue(tab.run("document.querySelector('.talk').inert"))
            self.assert_fits(tab)
            self.shoot(tab, f"phone_conversations_{theme}")
            tab.press("Escape")
            self.assertFalse(tab.run("document.getElementById('side').checkVisibility()"))
            self.assertEqual(tab.run("document.activeElement.id"), "open-side")
            tab.click("#open-side")
            tab.click("#new-chat")
            self.assertEqual([tab.run(ANSWERS), tab.run("document.querySelector('.talk').inert")], [[], False])
            tab.click("#open-side")
            tab.click(".conversations .open")
            self.assertEqual(len(tab.run(ANSWERS)), 1)
            tab.run("document.querySelector('.question .edit').click()")
            self.assert_fits(tab)
            self.shoot(tab, f"phone_edit_{theme}")

    def test_everything_can_be_done_by_keyboard_and_has_a_name(self):
        tab = self.open()
        self.ask(tab, "[echo] One `two`\n```\nthree\n```")
        tab.run("document.getElementById('tab-chat').focus()")
        names = []
        for _ in range(24):
            tab.press("Tab")
            names.append(tab.run("document.activeElement.ariaLabel ?? document.activeElement.innerText"))
            self.assertTrue(tab.run("document.activeElement === document.body || "
                                    "document.activeElement.checkVisibility({ opacityProperty: true })"), names)
        wanted = ["New chat", "Rename [echo] One `two`", "Delete [echo] One `two`", "Copy question",
                  "Edit and ask again", "Copy code", "Code: code", "Copy answer", "Answer again"]
        self.assertEqual([name for name in dict.fromkeys(names) if name in wanted], wanted)
        tab.run("document.querySelector('[data-act=remove]').focus()")
        tab.press("Enter")
        self.assertEqual(tab.run("document.activeElement.id"), "new-chat")  # Nothing else is left.
        tab.run("document.getElementById('undo').focus()")
        tab.press("Enter")
        self.assertEqual(tab.run("document.activeElement.dataset.act"), "open")
        tab.call("Accessibility.enable")
        for node in tab.call("Accessibility.getFullAXTree")["nodes"]:
            role = node.get("role", {}).get("value")
            if role in ("button", "textbox", "navigation", "article", "group") and not node["ignored"]:
                self.assertTrue(node.get("name", {}).get("value"), node)


if __name__ == "__main__":
    page_case.main()
