// The flags of plan_fields.inc.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "apps/foretoken/options/options.h"
#include "base/text/parse_number.h"
#include "core/speculation/plan_values.h"

namespace foretoken {
namespace {

// The whole of `text` as a fan-out; -1 where it is none.
int FanoutOf(std::string_view text, int least) {
  int fanout = -1;
  return ParseNumber(text, &fanout) && fanout >= least && fanout <= kMaxFanout ? fanout : -1;
}

Result<Fanout> ParseValue(const PlanField<Fanout>&, std::string_view text) {
  return ParseFanout(text);
}

// A number that may have a name.
Result<int> ParseValue(const PlanField<int>& field, std::string_view text) {
  const std::vector<std::string_view> words = WordsOf(field);
  const auto word = std::ranges::find(words, text);
  if (word != words.end()) return static_cast<int>(-1 - (word - words.begin()));
  int number = 0;
  if (ParseNumber(text, &number) && number >= field.least && number <= field.most) return number;
  return Invalid("'{}' is neither {} nor a number from {} to {}", text, fmt::join(words, " nor "),
                 field.least, field.most);
}

template <typename Number>
void AddNumber(const OptionGroup& add, const PlanField<Number>& field, PlanOptions* plan) {
  add(field.flags, &(plan->*field.member), field.value, field.help)
      ->check(Between(static_cast<Number>(field.least), static_cast<Number>(field.most)));
}

// A value that ParseValue makes of its text.
template <typename Value>
AddedOption AddText(const OptionGroup& add, const PlanField<Value>& field, PlanOptions* plan) {
  const auto read = [field, plan](const std::string& text) -> Status {
    FT_ASSIGN_OR_RETURN(plan->*field.member, ParseValue(field, text));
    return {};
  };
  return add(field.flags, read, field.value, field.help);
}

void AddField(const OptionGroup& add, const PlanField<float>& field, PlanOptions* plan) {
  AddNumber(add, field, plan);
}

void AddField(const OptionGroup& add, const PlanField<int>& field, PlanOptions* plan) {
  if (field.words.empty()) return AddNumber(add, field, plan);
  AddText(add, field, plan);
}

void AddField(const OptionGroup& add, const PlanField<Fanout>& field, PlanOptions* plan) {
  AddText(add, field, plan);
}

// One of several names.
template <typename Value>
void AddField(const OptionGroup& add, const PlanField<Value>& field, PlanOptions* plan) {
  std::vector<std::string> names;
  for (const Value value : ValuesOf(field)) names.emplace_back(NameOf(value));
  AddText(add, field, plan).check(OneOf(std::move(names)));
}

}  // namespace

Result<Fanout> ParseFanout(std::string_view text) {
  for (const FanoutRule rule : kFanoutRules) {
    if (text == NameOf(rule)) return Fanout{rule, {}};
  }
  Fanout choice{FanoutRule::kGiven, {}};
  const bool uniform = text.starts_with("uniform:");
  const std::vector<std::string> items = SplitList(uniform ? text.substr(8) : text);
  for (const std::string& item : items) {
    choice.counts.push_back(FanoutOf(item, items.size() == 1 ? 1 : 0));
  }
  const bool bad = std::ranges::find(choice.counts, -1) != choice.counts.end();
  if (choice.counts.empty() || bad || (uniform && choice.counts.size() > 1)) {
    return Invalid(
        "'{}' is not a fan-out: write uniform:N with N from 1 to {}, uniform, "
        "geometric, planned, or one number for every outcome node, like 4,3,3,2",
        text, kMaxFanout);
  }
  return choice;
}

void AddPlanOptions(CLI::App* app, PlanOptions* plan) {
  const OptionGroup add(app, "Speculation");
  ForEachPlanField([&](const auto& field) {
    if (*field.flags != '\0') AddField(add, field, plan);
  });
  FindOption(app, "--ssd-preset")
      .excludes("--fanout", "--fanout-after-fallback", "--cache-budget", "--fallback",
                "--tree-width", "--tree-nodes");
}

}  // namespace foretoken
