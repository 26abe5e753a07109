#include "prediction/json/times_json.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxPoints = TimeTable::kMaxRowPoints * TimeTable::kMaxContextPoints;
constexpr int kMaxCount = 1 << 30;
constexpr double kMaxContention = 100;

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

CostModel ReadTimes(JsonObject object, const DraftTables& tables) {
  CostModel times;
  times.target = ReadTable(object.Child("target"));
  if (tables.draft) times.draft = ReadTable(object.Child("draft"));
  if (tables.draft_on_target) times.draft_on_target = ReadTable(object.Child("draft_on_target"));
  if (object.Has("draft_pass")) times.draft_pass = ReadPasses(object.Child("draft_pass"));
  times.host_us = object.Number("host_us", 0, kMaxTimeUs);
  times.host_row_us = object.Number("host_row_us", 0, kMaxTimeUs);
  times.sequence_token_us = object.Number("sequence_token_us", 0, kMaxTimeUs);
  times.target_contention = object.Number("target_contention", 1, kMaxContention);
  times.draft_contention = object.Number("draft_contention", 1, kMaxContention);
  object.Close();
  return times;
}

Json TimesJson(const CostModel& times, const DraftTables& tables) {
  Json json = {{"target", TableJson(times.target)}};
  if (tables.draft) json["draft"] = TableJson(times.draft);
  if (tables.draft_on_target) json["draft_on_target"] = TableJson(times.draft_on_target);
  if (const DraftPassShape& passes = times.draft_pass; passes.several()) {
    json["draft_pass"] = {
        {"positions", passes.positions}, {"block", passes.block}, {"from_root", passes.from_root}};
  }
  json["host_us"] = times.host_us;
  json["host_row_us"] = times.host_row_us;
  json["sequence_token_us"] = times.sequence_token_us;
  json["target_contention"] = times.target_contention;
  json["draft_contention"] = times.draft_contention;
  return json;
}

}  // namespace foretoken
