#!/usr/bin/env python3
"""What the page makes of Markdown, harmless and hostile, in a real browser:
markdown_test.py SCREENSHOT_DIRECTORY [TEST]...
"""

import json

import fake_server
import page_case
from page_case import DONE, PageTest

# In the page: `render(text)` gives the elements of a text; `written(text)` their HTML, without what
# every one of them has.
SETUP = """import('/page/markdown/markdown.js').then(({ MarkdownView }) => {
  window.MarkdownView = MarkdownView;
  window.render = (text) => {
    const element = document.createElement('div');
    new MarkdownView(element).show(text);
    return element;
  };
  window.written = (text) => render(text).innerHTML.replaceAll(' dir="auto"', '')
    .replaceAll(/ title="[^"]*" target="_blank" rel="noopener noreferrer"/g, '');
})"""

CASES = [
    ("One\nTwo  \nThree", "<p>One\nTwo\nThree</p>"),
    ("One\r\n\r\nTwo", "<p>One</p><p>Two</p>"),
    ("# A\n### B ##\n#C\n####### D", "<h3>A</h3><h5>B</h5><p>#C\n####### D</p>"),
    ("Title\n===\nOther\n---", "<h3>Title</h3><h4>Other</h4>"),
    ("*a* **b** ***c*** _d_ __e__ ~~f~~", "<p><em>a</em> <strong>b</strong> <em><strong>c</strong></em> "
     "<em>d</em> <strong>e</strong> <del>f</del></p>"),
    ("**a *b* c** *d **e** f*", "<p><strong>a <em>b</em> c</strong> <em>d <strong>e</strong> f</em></p>"),
    ("2 * 3 * 4, snake_case_name, ~5, 6 ~ 7, **not", "<p>2 * 3 * 4, snake_case_name, ~5, 6 ~ 7, **not</p>"),
    ("*a _b* c_", "<p><em>a _b</em> c_</p>"),
    ("**Bold:**text and **„quoted“** word", "<p>**Bold:**text and <strong>„quoted“</strong> word</p>"),
    ("`a` `` b`c `` `*d*` `e", "<p><code>a</code> <code>b`c</code> <code>*d*</code> `e</p>"),
    ("\\*a\\* \\`b\\` \\n &amp; &lt;i&gt; &#65;&#x42; &nope; &", "<p>*a* `b` \\n &amp; &lt;i&gt; AB &amp;nope; &amp;</p>"),
    ("[a *b*](https://x.org/c_(d) 'title')", '<p><a href="https://x.org/c_(d)">a <em>b</em></a></p>'),
    ("<https://x.org> <mailto:a@x.org>", '<p><a href="https://x.org/">https://x.org</a> '
     '<a href="mailto:a@x.org">mailto:a@x.org</a></p>'),
    ("(see https://x.org/a_b_(c)). **https://x.org/d**",
     '<p>(see <a href="https://x.org/a_b_(c)">https://x.org/a_b_(c)</a>). '
     '<strong><a href="https://x.org/d">https://x.org/d</a></strong></p>'),
    ("[a [b](https://x.org/c) d](https://x.org/e)",
     '<p>[a <a href="https://x.org/c">b</a> d](<a href="https://x.org/e">https://x.org/e</a>)</p>'),
    ("[a] [b](c d) [](", "<p>[a] [b](c d) [](</p>"),
    ("![a cat](https://x.org/cat.png)", '<p><a href="https://x.org/cat.png">Image: a cat</a></p>'),
    ("[![badge](https://x.org/b.svg)](https://x.org/c)",
     '<p><a href="https://x.org/c">Image: badge</a></p>'),
    ("- a\n- b\n\n  c\n* d", '<ul class="loose"><li><p>a</p></li><li><p>b</p><p>c</p></li></ul>'
     "<ul><li>d</li></ul>"),
    ("1. a\n   - b\n     - c\n2. d\n   e\nf", "<ol><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li>"
     "<li>d\ne\nf</li></ol>"),
    ("1. a\n  - b\n10. c", "<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>"),
    ("3) a\n4) b", '<ol start="3"><li>a</li><li>b</li></ol>'),
    ("text\n- a\n\ntext\n2. b", "<p>text</p><ul><li>a</li></ul><p>text\n2. b</p>"),
    ("- [ ] a\n- [X] b", '<ul><li class="task">☐ a</li><li class="task">☑ b</li></ul>'),
    ("> a\nb\n> > c\n\nd", "<blockquote><p>a\nb</p><blockquote><p>c</p></blockquote></blockquote><p>d</p>"),
    ("a\n***\n- - -\nb", "<p>a</p><hr><hr><p>b</p>"),
    ("Here:\n| a | b |\n|:-:|--:|\n| 1 \\| 2 | *c* |\n| d | e | f |\n\nend",
     '<p>Here:</p><div class="table" tabindex="0" role="group" aria-label="Table"><table><thead><tr>'
     '<th class="center" scope="col">a</th><th class="right" scope="col">b</th></tr></thead><tbody><tr>'
     '<td class="center">1 | 2</td><td class="right"><em>c</em></td></tr><tr><td class="center">d</td>'
     '<td class="right">e</td></tr></tbody></table></div><p>end</p>'),
    ("|a|\n|-|\n|-|\ntext", '<div class="table" tabindex="0" role="group" aria-label="Table"><table><thead><tr>'
     '<th class="left" scope="col">a</th></tr></thead><tbody><tr><td class="left">-</td></tr></tbody></table>'
     "</div><p>text</p>"),
    ("a | b\nc", "<p>a | b\nc</p>"),
    ("<div onclick=alert(1)>a</div>\n<!-- b -->", "<p>&lt;div onclick=alert(1)&gt;a&lt;/div&gt;\n&lt;!-- b --&gt;</p>"),
]

CODE_CASES = [  # Text, language and code.
    ("```python\nif a:\n\tb  \n\n```\nc", "python", "if a:\n\tb  \n"),
    ("~~~\n``` a\n~~~", "code", "``` a"),
    ("````\n```\n````", "code", "```"),
    ("```c++ {.x}\nnot *closed*", "c++", "not *closed*"),
    ("- a\n  ```js\n  b\n    c\n  ```\n  d", "js", "b\n  c"),
    ("> ```\n> a\n> ```", "code", "a"),
    ("    a\n      b\n\n    c\n\nd", "code", "a\n  b\n\nc"),
    ("```<b>x</b>\n<script>hit()</script>\n```", "<b>x</b>", "<script>hit()</script>"),
]

HOSTILE = [
    "<script>hit()</script>", "<img src=x onerror=hit()>", "<svg onload=hit()>", "<iframe src='javascript:hit()'>",
    "<style>*{display:none}</style>", "<a href='javascript:hit()'>a</a>", "<base href='https://foreign.example/'>",
    "<meta http-equiv=refresh content='0;url=https://foreign.example'>", "<details open ontoggle=hit()>",
    "[a](javascript:hit())", "[a](JaVaScRiPt:hit())", "[a](java\nscript:hit())", "[a]( javascript:hit())",
    "[a](javascript&colon;hit())", "[a](&#106;avascript:hit())", "[a](<javascript:hit()>)",
    "[a](\x01javascript:hit())", "[a](vbscript:hit())", "[a](data:text/html,<script>hit()</script>)",
    "[a](data:text/html;base64,PHNjcmlwdD5oaXQoKTwvc2NyaXB0Pg==)", "<javascript:hit()>", "<data:text/html,a>",
    "[a](file:///etc/passwd)", "[a](//foreign.example)", "[a](/v1/models)", "[a](blob:https://x.org/1)",
    "[a](https://)", "[a](https://x.org/\"onmouseover=hit())", "[a](https://x.org \"\\\" onmouseover=hit() x=\\\"\")",
    "![a](https://foreign.example/a.png)", "![a](data:image/svg+xml,<svg onload=hit()>)", "![a](x \"onerror=hit()\")",
    "![a\" onerror=\"hit()](https://foreign.example/b.png)", "![](https://foreign.example/c.png)",
    "`<img src=x onerror=hit()>`", "```<img src=x onerror=hit()>\n</code></pre><script>hit()</script>\n```",
    "| <img src=x onerror=hit()> |\n|-|\n| <script>hit()</script> |", "# <img src=x onerror=hit()>",
    "&lt;script&gt;hit()&lt;/script&gt;", "&#60;img src=x onerror=hit()&#62;", "[constructor](__proto__)", "&constructor;",
]
# Every tag, and every attribute with its tag, that a text may bring about.
ALLOWED = {"P", "EM", "STRONG", "DEL", "CODE", "PRE", "DIV", "SPAN", "BUTTON", "svg", "path", "A", "UL", "OL", "LI",
           "BLOCKQUOTE", "HR", "H3", "H4", "H5", "H6", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD"}
ALLOWED_ATTRIBUTES = {"dir", "class", "A href", "A title", "A target", "A rel", "PRE tabindex", "PRE role",
                      "PRE aria-label", "DIV tabindex", "DIV role", "DIV aria-label", "BUTTON type", "BUTTON title",
                      "BUTTON aria-label", "svg viewBox", "svg aria-hidden", "path d", "OL start", "TH scope"}

# Texts that make a careless renderer slow, or nest without end; each is repeated to the size asked for.
EXPENSIVE = ["*a ", "*a _b ", "**a*", "a**b", "_a __b ", "***a* ", "[", "[a](b", "[a](<b", "[a](b '", "![", "![[]()",
             "[a](https://x.org) [", "<a ", "<https://a", "&#", "`", "` `` ", "\\", "~~a ", "(https://x.org", "))",
             ">", "> ", "- ", "1. ", "- a\n", "> a\n\n", "\n", " ", "\t", "a  \n", "|", "|-", "a|b\n-|-\n", "|a\n",
             "```\n", "~~~a\n", "#", "# ", "=\n", "---\n", "- - -\n", " - a\n  ", "    a\n\n", "a\n===\n", "-\n\n", "x"]


class MarkdownTest(PageTest):
    settings = {"seed": "1"}

    def open(self, **options):
        tab = super().open(**options)
        tab.run(SETUP)
        return tab

    def test_what_is_understood(self):
        tab = self.open()
        for text, html in CASES:
            with self.subTest(text):
                self.assertEqual(tab.run(f"written({json.dumps(text)})"), html)
        for text, language, code in CODE_CASES:
            with self.subTest(text):
                found = tab.run(f"(() => {{ const r = render({json.dumps(text)}); return ["
                                "r.querySelector('.language').textContent, r.querySelector('pre').textContent]; })()")
                self.assertEqual(found, [language, code])

    def test_hostile_text_stays_text(self):
        tab = self.open()
        everything = HOSTILE + ["\n\n".join(HOSTILE), " ".join(HOSTILE), "> " + "\n- ".join(HOSTILE)]
        tab.run("window.hit = () => { window.wasHit = true; }")
        found = tab.run("""(() => {
          const made = %s.map((text) => document.body.appendChild(render(text)));
          const all = made.flatMap((element) => [...element.querySelectorAll('*')]);
          for (const element of all) element.click && element.tagName !== 'A' && element.click();
          return {
            tags: [...new Set(all.map((element) => element.tagName))],
            attributes: [...new Set(all.flatMap((element) => element.getAttributeNames().flatMap((name) =>
              [name, `${element.tagName} ${name}`])))],
            links: all.filter((element) => element.tagName === 'A').map((a) => [a.protocol, a.target, a.rel]),
          };
        })()""" % json.dumps(everything))
        self.assertLessEqual(set(found["tags"]), ALLOWED)
        used = {name for name in found["attributes"]
                if " " in name and name not in ALLOWED_ATTRIBUTES and name.split()[1] not in ALLOWED_ATTRIBUTES}
        self.assertEqual(used, set())
        self.assertGreater(len(found["links"]), 5)
        for link in found["links"]:
            self.assertEqual(link, ["https:", "_blank", "noopener noreferrer"])
        self.assertIsNone(tab.run("window.wasHit"))
        for text in HOSTILE[:30]:  # What is refused is shown as it was written.
            if "](https" not in text:
                self.assertIn(text.split("(")[0], tab.run(f"render({json.dumps(text)}).textContent"))
        # The whole way, as an answer: tearDown sees what was asked for and what the console said.
        self.ask(tab, "[echo] " + " ".join(HOSTILE).replace("\n", " "))
        self.assertGreater(tab.run("document.querySelectorAll('.formatted a').length"), 2)
        self.assertIsNone(tab.run("window.wasHit"))

    def test_the_browser_itself_would_not_read_html(self):
        tab = self.open()
        self.assertIn("TrustedHTML", tab.run(
            "(() => { try { document.createElement('p').innerHTML = '<b>a</b>'; return 'read'; }"
            "catch (error) { return String(error); } })()"))
        tab.browser.events.clear()  # It reports that attempt.

    def test_time_grows_with_the_text_only_and_nesting_ends(self):
        tab = self.open()
        tab.run("""window.expense = (piece, length) => {
          const text = piece.repeat(Math.ceil(length / piece.length));
          const begin = performance.now();
          const element = render(text);
          const time = performance.now() - begin;
          const walk = document.createTreeWalker(element, NodeFilter.SHOW_ELEMENT);
          const depths = new Map([[element, 0]]);
          while (walk.nextNode()) {
            depths.set(walk.currentNode, depths.get(walk.currentNode.parentNode) + 1);
          }
          return [time, depths.values().reduce((deepest, depth) => Math.max(deepest, depth), 0)];
        }""")
        for piece in EXPENSIVE:
            with self.subTest(piece):
                for attempt in range(3):  # The machine may have been busy with something else.
                    small, _ = tab.run(f"expense({json.dumps(piece)}, 20000)")
                    large, depth = tab.run(f"expense({json.dumps(piece)}, 80000)")
                    if large < 750 or large < 9 * small:  # Quadratic time would be 16 times as long.
                        break
                else:
                    self.fail(f"{small:.0f} ms for 20 kB, {large:.0f} ms for 80 kB")
                self.assertLess(depth, 40)

    def test_a_text_that_grows_is_shown_as_if_it_came_at_once(self):
        tab = self.open()
        texts = [fake_server.MARKDOWN, "- a\n---x\n- b\n| c | d |\n|--x\n\n    e\n1. f\n\n   g\n2. h\n```\ni\n``\n```\nj\n==\n> k\n>\nl\nm",
                 "text\n# \n#x\n***\n*a\n**b\n\n\n* c\n\n\n* d\n- e\n  ~~~\n\n  f\n- g\n\n\n\n1. h\n10) i"]
        for text in texts:
            differences = tab.run("""(() => {
              const text = %s;
              const differences = [];
              const element = document.createElement('div');
              const view = new MarkdownView(element);
              for (let end = 0; end <= text.length; ++end) {
                view.show(text.slice(0, end));
                if (element.innerHTML !== render(text.slice(0, end)).innerHTML) differences.push(end);
              }
              return differences;
            })()""" % json.dumps(text))
            self.assertEqual(differences, [])

    def test_what_is_finished_is_not_made_again(self):
        tab = self.open()
        kept = tab.run("""(() => {
          const element = document.createElement('div');
          const view = new MarkdownView(element);
          view.show('```\\na\\n```\\n\\nb\\n\\nc\\n\\n');
          const [code, first] = element.children;
          view.show('```\\na\\n```\\n\\nb\\n\\nc\\n\\nd *e*\\n\\nf');
          return [element.children[0] === code, element.children[1] === first, element.children.length];
        })()""")
        self.assertEqual(kept, [True, True, 5])

    def test_code_has_its_language_and_is_copied(self):
        tab = self.open()
        tab.allow_clipboard(self.url)
        self.ask(tab, "How do I bake bread? [markdown]")
        self.assertEqual(tab.run("document.querySelector('.code .language').textContent"), "python")
        code = fake_server.MARKDOWN.split("```python\n")[1].split("\n```")[0]
        tab.click(".code button")
        tab.wait("document.querySelector('.code button').textContent === 'Copied'")
        self.assertEqual(tab.run("document.getElementById('announce').textContent"), "Copied")
        self.assertEqual(tab.run("navigator.clipboard.readText()"), code)
        self.shoot(tab, "chat_markdown_code")
        tab.wait("document.querySelector('.code button').ariaLabel === 'Copy code'")
        tab.run("document.getElementById('transcript').scrollTop = 0")
        self.shoot(tab, "chat_markdown")

    def test_formatted_text_fits_a_phone(self):
        for dark in (False, True):
            tab = self.open(width=360, height=740, dark=dark, reduced_motion=True)
            wide = "W" * 400
            self.ask(tab, f"[echo] {wide} [{wide}](https://x.org/{wide}) `{wide}`")
            self.ask(tab, "[markdown]")
            self.assert_fits(tab)
            self.assertGreater(tab.run("(() => { const p = document.querySelector('.code pre');"
                                       "return p.scrollWidth - p.clientWidth; })()"), 100)
            self.shoot(tab, f"phone_markdown_{'dark' if dark else 'light'}")


if __name__ == "__main__":
    page_case.main()
