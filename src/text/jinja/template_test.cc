#include "text/jinja/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/text/utf8.h"

namespace foretoken::jinja {
namespace {

using ::testing::HasSubstr;

Result<Text> TryRender(std::string_view source, const Json& data = Json::object(),
                       const Limits& limits = {}) {
  FT_ASSIGN_OR_RETURN(const Template parsed, Template::Parse(source));
  return parsed.Render(
      {.data = data.is_null() ? Json::object() : data, .own = {{"bos_token", "<s>"}}}, limits);
}

std::string Render(std::string_view source, const Json& data = Json::object()) {
  const auto text = TryRender(source, data);
  return text.ok() ? text->bytes() : "(" + text.error().message + ")";
}

std::string ErrorOf(std::string_view source, const Json& data = Json::object(),
                    const Limits& limits = {}) {
  const auto text = TryRender(source, data, limits);
  return text.ok() ? "(no error: " + text->bytes() + ")" : text.error().message;
}

// What equals jinja2's in general is compared with it by tests/jinja; here are the lines that must
// not move, and what that test cannot see.
TEST(JinjaTemplate, WritesAChat) {
  const Json data = {
      {"messages",
       {{{"role", "system"}, {"content", " Be kind. "}}, {{"role", "user"}, {"content", "日本"}}}},
      {"add_generation_prompt", true}};
  EXPECT_EQ(Render("{{- bos_token }}\n"
                   "{%- for message in messages %}\n"
                   "    {%- if loop.first and message.role != 'user' %}\n"
                   "        {{- '[' ~ message['content'] | trim ~ ']' }}\n"
                   "    {%- else %}\n"
                   "        {{- message.role[0] | upper + ': ' + message.content[1:] }}\n"
                   "    {%- endif %}\n"
                   "{%- endfor %}\n"
                   "{%- if add_generation_prompt %}{{ '\\nA:' }}{% endif %}",
                   data),
            "<s>[Be kind.]U: 本\nA:");
}

TEST(JinjaTemplate, ErrorsNameTheLine) {
  EXPECT_EQ(ErrorOf("a\nb\n{{ 1 / 0 }}"), "line 3 of the template: division by zero");
  EXPECT_EQ(ErrorOf("a\n{% if x %}\n"), "line 2 of the template: 'endif' is missing");
  EXPECT_EQ(ErrorOf("{{ a.b.c }}"),
            "line 1 of the template: 'a' is not defined, so nothing can be taken from it");
  EXPECT_EQ(ErrorOf("\n{{ raise_exception('No ' + 'way.') }}"),
            "line 2 of the template: the template refuses this chat: No way.");
  EXPECT_THAT(ErrorOf("{{ 'a'|nope }}"), HasSubstr("there is no filter 'nope'"));
  EXPECT_THAT(ErrorOf("{% include 'x' %}"), HasSubstr("a chat template is one"));
  EXPECT_THAT(ErrorOf("\xFF"), HasSubstr("UTF-8"));
}

// A filter or test that nobody knows does no harm where it is not used.
TEST(JinjaTemplate, UnknownFiltersFailWhenTheyAreReached) {
  EXPECT_EQ(Render("{% if false %}{{ 1|nope }}{% endif %}a"), "a");
}

// jinja2's sandbox refuses what changes a list; other engines let templates do it, and so do we.
TEST(JinjaTemplate, ListsAndDictsChange) {
  EXPECT_EQ(Render("{% set l = [1] %}{% set m = l %}{% set _ = m.append(2) %}{{ l }}"), "[1, 2]");
  EXPECT_EQ(Render("{% set l = [1, 2, 3] %}{{ l.pop() }}{{ l.pop(0) }}{{ l }}"), "31[2]");
  EXPECT_EQ(Render("{% set l = [1] %}{{ l.insert(0, 0) }}{{ l.extend((5, 6)) }}{{ l }}"),
            "NoneNone[0, 1, 5, 6]");
  EXPECT_EQ(Render("{% set d = {'a': 1} %}{{ d.update({'b': 2}, c=3) }}{{ d.pop('a') }}"
                   "{{ d.setdefault('e', 4) }}{{ d }}{{ d.c }}{{ d.pop('z', 0) }}"),
            "None14{'b': 2, 'c': 3, 'e': 4}30");
  EXPECT_EQ(Render("{% set l = [] %}{% set _ = l.append(l) %}{{ l == l }}{{ l|length }}"), "True1");
}

TEST(JinjaTemplate, ClockIsWhatItIsGiven) {
  const auto parsed = Template::Parse("{{ strftime_now is defined }}");
  EXPECT_EQ(parsed->Render({})->bytes(), "False");
  std::tm now{};
  now.tm_year = 124;
  now.tm_mday = 29;
  now.tm_mon = 1;
  const auto dated = Template::Parse("{{ strftime_now('%d %b %Y') }}");
  EXPECT_EQ(dated->Render({.now = &now})->bytes(), "29 Feb 2024");
  const auto around = Template::Parse("{{ strftime_now('%Y年%-d, 100%%, é%') }}");
  EXPECT_EQ(around->Render({.now = &now})->bytes(), "2024年29, 100%, é%");
}

// A letter of several bytes is quoted whole.
TEST(JinjaTemplate, UnknownLettersOfTimesAreQuoted) {
  const std::tm now{};
  for (const std::string directive : {"%ǆ", "%-é", "%q"}) {
    const auto parsed = Template::Parse("{{ strftime_now('%Y-" + directive + "m') }}");
    const auto text = parsed->Render({.now = &now});
    ASSERT_FALSE(text.ok());
    EXPECT_THAT(text.error().message, HasSubstr("'" + directive + "'"));
    EXPECT_TRUE(IsUtf8(text.error().message));
  }
}

/// The bytes that came from the inputs as they are, all others as dots.
std::string InputsOf(std::string_view source, const Json& data) {
  const auto text = TryRender(source, data);
  if (!text.ok()) return text.error().message;
  std::string shown(text->size(), '.');
  for (const Span& span : text->inputs()) {
    for (std::size_t i = span.begin; i < span.end; ++i) shown[i] = text->bytes()[i];
  }
  return shown;
}

TEST(JinjaTemplate, KnowsWhatTheInputsWrote) {
  const Json data = {{"t", "a<b>c"}, {"l", {"x", "y"}}, {"s", " pad "}};
  EXPECT_EQ(InputsOf("<{{ t }}>", data), ".a<b>c.");
  EXPECT_EQ(InputsOf("{{ '<' + t + '>' + bos_token }}", data), ".a<b>c....");
  EXPECT_EQ(InputsOf("{{ t[1:4] }}{{ t.split('<')[1] }}{{ s|trim }}{{ t|upper }}", data),
            "<b>b>cpadA<B>C");
  EXPECT_EQ(InputsOf("{{ l|join('--') }}{{ t.replace('b', '<b>') }}", data), "x..ya<...>c");
  EXPECT_EQ(InputsOf("{{ {'k': t}|tojson }}{{ [t] }}", data), ".......a<b>c....a<b>c..");
  EXPECT_EQ(InputsOf("{% set q %}[{{ t }}]{% endset %}{{ q }}{{ '%s!' % t }}", data),
            ".a<b>c.a<b>c.");
  EXPECT_EQ(InputsOf("{% macro m(x) %}({{ x }}){% endmacro %}{{ m(t) }}", data), ".a<b>c.");
  EXPECT_EQ(InputsOf("{{ bos_token }}", {{"bos_token", "mine"}}), "mine");
}

TEST(JinjaLimits, Steps) {
  const Limits limits{.steps = 10'000};
  const char* slow = "{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}";
  EXPECT_THAT(ErrorOf(slow, {}, limits), HasSubstr("more than 10000 steps"));
  EXPECT_THAT(ErrorOf("{{ 'a' * 1000000 }}", {}, limits), HasSubstr("more than 10000 steps"));
  EXPECT_THAT(ErrorOf("{% set x = 'abc'|map('map', 'map', 'map', 'upper') %}", {}, limits),
              HasSubstr("no error"));
}

TEST(JinjaLimits, Memory) {
  const Limits limits{.memory = 100'000};
  EXPECT_THAT(ErrorOf("{% set x = 'a' * 200000 %}", {}, limits), HasSubstr("100000 bytes"));
  EXPECT_THAT(ErrorOf("{% set x = [1] * 50000 %}", {}, limits), HasSubstr("100000 bytes"));
  EXPECT_THAT(ErrorOf("{% set ns = namespace(x='a') %}{% for i in range(40) %}"
                      "{% set ns.x = ns.x + ns.x %}{% endfor %}",
                      {}, limits),
              HasSubstr("100000 bytes"));
  EXPECT_THAT(ErrorOf("{{ '%99999999d' % 1 }}", {}, limits), HasSubstr("digits"));
  EXPECT_THAT(ErrorOf("{{ 'a'.center(99999999) }}", {}, limits), HasSubstr("100000 bytes"));
  EXPECT_THAT(ErrorOf("{{ ('a' * 300).replace('', 'b' * 1000) }}", {}, limits),
              HasSubstr("100000 bytes"));
  // What is no longer used does not count.
  EXPECT_EQ(ErrorOf("{% for i in range(100) %}{% set x = 'a' * 20000 %}{% endfor %}", {}, limits),
            "(no error: )");
}

TEST(JinjaLimits, OutputAndDepth) {
  EXPECT_THAT(ErrorOf("{% for i in range(100) %}aaaa{% endfor %}", {}, {.output = 300}),
              HasSubstr("more than 300 bytes"));
  EXPECT_THAT(ErrorOf("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
              HasSubstr("evaluations within each other"));
  std::string deep = "1";
  for (int i = 0; i < 500; ++i) deep = "(" + deep + ")";
  EXPECT_THAT(ErrorOf("{{ " + deep + " }}"), HasSubstr("levels within each other"));
  std::string sum = "1";
  for (int i = 0; i < 100'000; ++i) sum += "+1";
  EXPECT_THAT(ErrorOf("{{ " + sum + " }}"), HasSubstr("evaluations within each other"));
  EXPECT_THAT(ErrorOf("{% set ns = namespace(l=[]) %}{% for i in range(500) %}"
                      "{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}"),
              HasSubstr("within more than 100 others"));
  EXPECT_THAT(ErrorOf("{% set l = [] %}{% set _ = l.append(l) %}{{ l|tojson }}"),
              HasSubstr("tojson cannot write"));
  EXPECT_THAT(ErrorOf("{{ range(100001) }}"), HasSubstr("at most 100000"));
}

TEST(JinjaTemplate, IsSharedByThreads) {
  const auto parsed = Template::Parse(
      "{% macro m(x) %}{{ x|upper }}{% endmacro %}{% for i in range(50) %}{{ m(t) }}{% endfor %}");
  ASSERT_TRUE(parsed.ok());
  std::string expected;
  for (int i = 0; i < 50; ++i) expected += "ABC";
  std::vector<std::thread> threads;
  std::vector<int> equal(4, 0);
  for (int& count : equal) {
    threads.emplace_back([&count, &parsed, &expected] {
      for (int i = 0; i < 50; ++i) {
        const auto text = parsed->Render({.data = {{"t", "abc"}}});
        if (text.ok() && text->bytes() == expected) ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(equal, ::testing::Each(50));
}

}  // namespace
}  // namespace foretoken::jinja
