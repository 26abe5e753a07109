// The flags of plan_fields.inc.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>

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
  return InvalidInput(fmt::format("'{}' is neither {} nor a number from {} to {}", text,
                                  fmt::join(words, " nor "), field.least, field.most));
}

template <typename Value>
void AddField(const OptionGroup& add, const PlanField<Value>& field, PlanOptions* plan) {
  constexpr bool kNumber = std::is_arithmetic_v<Value>;
  std::optional<Value>* const place = &(plan->*field.member);
  if constexpr (kNumber) {
    if (field.words.empty()) {
      add(field.flags, place, field.value, field.help)
          ->check(Between(static_cast<Value>(field.least), static_cast<Value>(field.most)));
      return;
    }
  }
  if constexpr (!std::is_same_v<Value, float>) {
    const auto read = [field, place](const std::string& text) -> Status {
      FT_ASSIGN_OR_RETURN(*place, ParseValue(field, text));
      return {};
    };
    const AddedOption option = add(field.flags, read, field.value, field.help);
    if constexpr (!kNumber && !std::is_same_v<Value, Fanout>) {
      std::vector<std::string> names;
      for (const Value value : ValuesOf(field)) names.emplace_back(NameOf(value));
      option.check(OneOf(std::move(names)));
    }
  }
}

}  // namespace

Result<Fanout> ParseFanout(std::string_view text) {
  if (text == "uniform") return Fanout{FanoutRule::kUniform, {}};
  if (text == "geometric") return Fanout{FanoutRule::kGeometric, {}};
  if (text == "planned") return Fanout{FanoutRule::kPlanned, {}};
  Fanout choice{FanoutRule::kGiven, {}};
  const bool uniform = text.starts_with("uniform:");
  const std::vector<std::string> items = SplitList(uniform ? text.substr(8) : text);
  for (const std::string& item : items) {
    choice.counts.push_back(FanoutOf(item, items.size() == 1 ? 1 : 0));
  }
  const bool bad = std::ranges::find(choice.counts, -1) != choice.counts.end();
  if (choice.counts.empty() || bad || (uniform && choice.counts.size() > 1)) {
    return InvalidInput(
        fmt::format("'{}' is not a fan-out: write uniform:N with N from 1 to {}, uniform, "
                    "geometric, planned, or one number for every outcome node, like 4,3,3,2",
                    text, kMaxFanout));
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
