#include "core/prediction/json/times_json.h"

#include <string>

namespace foretoken {
namespace {

constexpr std::size_t kMaxPoints = TimeTable::kMaxRowPoints * TimeTable::kMaxContextPoints;
constexpr int kMaxCount = 1 << 30;
constexpr double kMaxContention = 100;

// What a draft's fields are called.
struct DraftFields {
  std::string apart;
  std::string on_target;
  std::string pass;
};

ByDrafter<DraftFields> NameFields() {
  ByDrafter<DraftFields> fields;
  for (const DrafterId id : kDraftModels) {
    const std::string name(InfoOf(id).name);
    fields[id] = {.apart = name, .on_target = name + "_on_target", .pass = name + "_pass"};
  }
  return fields;
}

// Written only where a pass says several tokens; older files have none.
DraftPassShape ReadPasses(JsonObject object) {
  DraftPassShape passes;
  passes.positions = object.Integer("positions", 1, kMaxProposal);
  passes.block = object.Integer("block", 0, kMaxCount);
  object.Bool("from_root", &passes.from_root);
  object.Close();
  return passes;
}

}  // namespace

TimeTable ReadTable(JsonObject object) {
  const auto rows = object.Integers("rows", TimeTable::kMaxRowPoints, 1, kMaxCount);
  const auto contexts = object.Integers("contexts", TimeTable::kMaxContextPoints, 1, kMaxCount);
  const auto us = object.Numbers("us", kMaxPoints, 0, kMaxTimeUs);
  object.Close();
  if (!object.ok()) return {};
  const Result<TimeTable> table = TimeTable::Make(rows, contexts, us);
  if (table.ok()) return *table;
  object.Refuse("holds " + table.error().message);
  return {};
}

Json TableJson(const TimeTable& table) {
  const auto us = table.times();
  return {{"rows", std::vector<int>(table.rows().begin(), table.rows().end())},
          {"contexts", std::vector<int>(table.contexts().begin(), table.contexts().end())},
          {"us", std::vector<double>(us.begin(), us.end())}};
}

CostModel ReadTimes(JsonObject object, const ByDrafter<DraftTables>& tables) {
  CostModel times;
  times.target = ReadTable(object.Child("target"));
  const ByDrafter<DraftFields> fields = NameFields();  // Are read until the object is closed.
  for (const DrafterId id : kDraftModels) {
    DraftTimes& draft = times.drafts[id];
    if (tables[id].apart) draft.apart = ReadTable(object.Child(fields[id].apart));
    if (tables[id].on_target) draft.on_target = ReadTable(object.Child(fields[id].on_target));
    if (object.Has(fields[id].pass)) draft.pass = ReadPasses(object.Child(fields[id].pass));
  }
  times.host_us = object.Number("host_us", 0, kMaxTimeUs);
  times.host_row_us = object.Number("host_row_us", 0, kMaxTimeUs);
  times.sequence_token_us = object.Number("sequence_token_us", 0, kMaxTimeUs);
  times.target_contention = object.Number("target_contention", 1, kMaxContention);
  times.draft_contention = object.Number("draft_contention", 1, kMaxContention);
  object.Close();
  return times;
}

Json TimesJson(const CostModel& times, const ByDrafter<DraftTables>& tables) {
  Json json = {{"target", TableJson(times.target)}};
  const ByDrafter<DraftFields> fields = NameFields();
  for (const DrafterId id : kDraftModels) {
    const DraftTimes& draft = times.drafts[id];
    if (tables[id].apart) json[fields[id].apart] = TableJson(draft.apart);
    if (tables[id].on_target) json[fields[id].on_target] = TableJson(draft.on_target);
    if (const DraftPassShape& pass = draft.pass; pass.several()) {
      json[fields[id].pass] = {
          {"positions", pass.positions}, {"block", pass.block}, {"from_root", pass.from_root}};
    }
  }
  json["host_us"] = times.host_us;
  json["host_row_us"] = times.host_row_us;
  json["sequence_token_us"] = times.sequence_token_us;
  json["target_contention"] = times.target_contention;
  json["draft_contention"] = times.draft_contention;
  return json;
}

}  // namespace foretoken
