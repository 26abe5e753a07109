#include "door/api/plan_json.h"

#include <string_view>

#include "base/numbers/integers.h"
#include "core/speculation/plan_values.h"

namespace foretoken {
namespace {

template <typename Value>
Json ValueJson(const PlanField<Value>&, const Value& value) {
  return Json(NameOf(value));
}
Json ValueJson(const PlanField<float>&, float value) { return value; }
Json ValueJson(const PlanField<int>& field, int value) {
  const std::vector<std::string_view> words = WordsOf(field);
  return value < 0 && !words.empty() ? Json(words.at(Size(-1 - value))) : Json(value);
}
Json ValueJson(const PlanField<Fanout>&, const Fanout& value) {
  if (!value.counts.empty()) return value.counts;
  return Json(NameOf(value.rule));
}

}  // namespace

Json PlanJson(const PlanOptions& plan) {
  Json json = Json::object();
  ForEachPlanField([&](const auto& field) {
    const auto& value = plan.*field.member;
    if (value.has_value()) json[field.name] = ValueJson(field, *value);
  });
  return json;
}

}  // namespace foretoken
