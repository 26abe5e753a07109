#include "apps/foretoken/server/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "apps/foretoken/server/observe/hidden_folders.h"
#include "base/threads/clock.h"

namespace foretoken::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

// A model that is loaded, as it stands.
struct Loaded {
  std::string id;
  ServerTotals totals;
  std::vector<Mode> modes;  // On offer.
  std::optional<LearningReport> learning;
};

// Builds metric families one after the other; each metric has the label of its model.
class Families {
 public:
  explicit Families(std::vector<Loaded> loaded) : loaded_(std::move(loaded)) {}

  const std::vector<Loaded>& loaded() const { return loaded_; }

  void Begin(std::string name, std::string help, MetricType type) {
    prometheus::MetricFamily& family = families_.emplace_back();
    family.name = "foretoken_" + std::move(name);
    family.help = std::move(help);
    family.type = type;
  }
  ClientMetric& Add(const std::string& model, double value,
                    std::vector<ClientMetric::Label> labels = {}) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = std::move(labels);
    metric.label.insert(metric.label.begin(), {"model", model});
    metric.counter.value = value;
    metric.gauge.value = value;
    return metric;
  }

  // Counts `value(totals)` of each loaded model.
  template <typename Value>
  void Counter(std::string name, std::string help, const Value& value) {
    Begin(std::move(name), std::move(help), MetricType::Counter);
    for (const Loaded& model : loaded_) Add(model.id, std::invoke(value, model.totals));
  }
  template <typename Value>
  void Gauge(std::string name, std::string help, const Value& value) {
    Begin(std::move(name), std::move(help), MetricType::Gauge);
    for (const Loaded& model : loaded_) Add(model.id, std::invoke(value, model.totals));
  }
  void Durations(std::string name, std::string help, DurationBuckets ServerTotals::*times) {
    Begin(std::move(name), std::move(help), MetricType::Histogram);
    for (const Loaded& model : loaded_) {
      SetHistogram(model.totals.*times, &Add(model.id, 0).histogram);
    }
  }
  // Counts by a label for each loaded model: one metric for each value that `counts(totals)` has,
  // the first one in any case, so that a query finds the metric.
  template <typename Counts>
  void PerPosition(std::string name, std::string help, const Counts& counts) {
    Begin(std::move(name), std::move(help), MetricType::Counter);
    for (const Loaded& model : loaded_) {
      const auto& values = std::invoke(counts, model.totals);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i == 0 || values[i] > 0) Add(model.id, values[i], {{"position", std::to_string(i)}});
      }
    }
  }

  std::string Text() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families_);
    return out.str();
  }

 private:
  static void SetHistogram(const DurationBuckets& times, ClientMetric::Histogram* histogram) {
    histogram->sample_count = static_cast<std::uint64_t>(times.count);
    histogram->sample_sum = times.sum;
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < times.counts.size(); ++i) {
      below += static_cast<std::uint64_t>(times.counts[i]);
      const double bound = i < DurationBuckets::kBounds.size()
                               ? DurationBuckets::kBounds[i]
                               : std::numeric_limits<double>::infinity();
      histogram->bucket.push_back({below, bound});
    }
  }

  const std::vector<Loaded> loaded_;
  std::vector<prometheus::MetricFamily> families_;
};

double Share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void AddSpeculation(Families* families) {
  families->Counter("spec_decode_num_drafts_total", "Rounds that verified a proposal.",
                    &ServerTotals::drafts);
  families->Counter("spec_decode_num_draft_tokens_total", "Proposed tokens that were verified.",
                    &ServerTotals::draft_tokens);
  families->Counter("spec_decode_num_accepted_tokens_total", "Proposed tokens that were accepted.",
                    &ServerTotals::accepted_tokens);
  families->Counter("lossy_tokens_total",
                    "Emitted tokens that a lossy rule accepted in place of the model's choice.",
                    &ServerTotals::lossy_tokens);
  families->PerPosition("spec_decode_num_accepted_tokens_per_pos_total",
                        "Rounds in which the proposal's token at the position was accepted.",
                        &ServerTotals::accepted_at);
  families->PerPosition(
      "ssd_cache_lookups_total",
      "Lookups in the speculation cache, by how many tokens were accepted before.",
      &ServerTotals::lookups_at);
  families->PerPosition(
      "ssd_cache_hits_total",
      "Lookups that found the outcome prepared, by how many tokens were accepted.",
      &ServerTotals::hits_at);
}

void AddByMode(Families* families) {
  const auto by_mode = [&](std::int64_t ServerTotals::OfMode::*member) {
    for (const Loaded& model : families->loaded()) {
      for (const Mode mode : model.modes) {
        families->Add(model.id, model.totals.modes[mode].*member,
                      {{"mode", std::string(ModeName(mode))}});
      }
    }
  };
  families->Begin("generation_tokens_total", "Emitted tokens.", MetricType::Counter);
  by_mode(&ServerTotals::OfMode::tokens);
  families->Begin("rounds_total", "Rounds of sequences: target passes that emitted tokens.",
                  MetricType::Counter);
  by_mode(&ServerTotals::OfMode::rounds);
  families->Begin(
      "planned_rounds_total",
      "Rounds by the mode and lookahead of their plan: in mode auto the planner's choice.",
      MetricType::Counter);
  for (const Loaded& model : families->loaded()) {
    for (const Mode mode : model.modes) {
      const auto& rounds = model.totals.planned_rounds[mode];
      for (std::size_t lookahead = 0; lookahead < rounds.size(); ++lookahead) {
        if (rounds[lookahead] == 0) continue;
        families->Add(
            model.id, rounds[lookahead],
            {{"mode", std::string(ModeName(mode))}, {"lookahead", std::to_string(lookahead)}});
      }
    }
  }
}

void AddTokens(Families* families) {
  families->Counter("prompt_tokens_total", "Prompt tokens of finished requests.",
                    &ServerTotals::prompt_tokens);
  families->Counter("prompt_tokens_cached_total", "Of these, found in the prefix cache.",
                    &ServerTotals::cached_prompt_tokens);
  AddByMode(families);
  families->Begin("tokens_by_origin_total",
                  "Emitted tokens by how they came: accepted from a prepared proposal, from a "
                  "fallback's, or the target's own bonus token.",
                  MetricType::Counter);
  for (const Loaded& model : families->loaded()) {
    for (std::size_t i = 0; i < model.totals.tokens_by_origin.size(); ++i) {
      families->Add(model.id, model.totals.tokens_by_origin[i],
                    {{"origin", std::string(kOriginNames[i])}});
    }
  }
}

void AddEngine(Families* families) {
  families->Gauge("sequences_running", "Sequences in the batch.", &ServerTotals::running);
  families->Gauge("sequences_waiting", "Sequences that wait for a place.", &ServerTotals::waiting);
  const auto add_kv = [families](std::string name, std::string help, KvUsage ServerTotals::*usage) {
    families->Begin(std::move(name), std::move(help), MetricType::Gauge);
    for (const auto& [id, totals, modes, learning] : families->loaded()) {
      families->Add(id, (totals.*usage).used, {{"state", "used"}});
      families->Add(id, (totals.*usage).cached, {{"state", "cached"}});
      families->Add(id, (totals.*usage).free, {{"state", "free"}});
    }
  };
  add_kv("kv_blocks", "Blocks of the KV pool by state.", &ServerTotals::kv);
  add_kv("kv_recent_blocks", "The same of layers that see a window of positions.",
         &ServerTotals::recent_kv);
  families->Counter("preemptions_total", "Preemptions of finished sequences.",
                    &ServerTotals::preemptions);
  families->Counter("passes_total", "Passes of the target.", &ServerTotals::passes);
  families->Counter("pass_rows_total", "Rows in those passes.", &ServerTotals::rows);
  families->Begin("round_seconds_total",
                  "Where the time of decoding rounds went: target passes, waiting for proposals, "
                  "all else.",
                  MetricType::Counter);
  for (const auto& [id, totals, modes, learning] : families->loaded()) {
    families->Add(id, totals.target_seconds, {{"part", "target"}});
    families->Add(id, totals.wait_seconds, {{"part", "wait"}});
    families->Add(id, totals.host_seconds, {{"part", "host"}});
  }
  families->Durations("time_to_first_token_seconds", "From submission to the first token.",
                      &ServerTotals::time_to_first_token);
  families->Durations("time_per_output_token_seconds", "Mean time of a token after the first.",
                      &ServerTotals::time_per_output_token);
  families->Durations("e2e_request_latency_seconds", "From submission to the end.",
                      &ServerTotals::request_time);
}

// The metrics of models whose drafts are trained on what they decode.
void AddLearning(Families* families) {
  const auto count = [families](std::string name, std::string help,
                                std::int64_t LearningReport::*value) {
    families->Begin(std::move(name), std::move(help), MetricType::Counter);
    for (const Loaded& model : families->loaded()) {
      if (model.learning.has_value()) families->Add(model.id, (*model.learning).*value);
    }
  };
  count("draft_learning_texts_total", "Texts written for a trainer.", &LearningReport::captured);
  count("draft_learning_tokens_total", "Their tokens.", &LearningReport::captured_tokens);
  count("draft_learning_held_back_total", "Texts held back to judge drafts by.",
        &LearningReport::held_back);
  count("draft_learning_left_out_total", "Texts that came faster than they could be written.",
        &LearningReport::left_out);
  count("draft_learning_judged_total", "Trained drafts that were judged.", &LearningReport::judged);
  count("draft_learning_kept_total", "Those that were better and are used.", &LearningReport::kept);
  count("draft_learning_rolled_back_total", "Those of them that the draft before replaced again.",
        &LearningReport::rolled_back);
}

// The metrics of every model, loaded or not.
void AddModels(const ModelRegistry& models, Families* families) {
  families->Begin("requests_total", "API requests by how they ended.", MetricType::Counter);
  for (ModelRegistry::Index i = 0; i < models.size(); ++i) {
    for (int k = 0; k < kRequestOutcomes; ++k) {
      const auto outcome = static_cast<RequestOutcome>(k);
      families->Add(models.spec(i).id, models.outcomes(i).of(outcome),
                    {{"outcome", std::string(RequestOutcomeName(outcome))}});
    }
  }
  families->Begin("up", "1 where the model is loaded and the engine makes progress.",
                  MetricType::Gauge);
  for (ModelRegistry::Index i = 0; i < models.size(); ++i) {
    const ModelRegistry::Lease served = models.Peek(i);
    const bool up = served != nullptr &&
                    served->engine().SecondsWithoutProgress() < served->options().stall_seconds;
    families->Add(models.spec(i).id, up ? 1 : 0);
  }
  families->Begin("model_loads_total", "How often the model was loaded.", MetricType::Counter);
  for (ModelRegistry::Index i = 0; i < models.size(); ++i) {
    families->Add(models.spec(i).id, models.status(i).loads);
  }
}

}  // namespace

Json KvJson(const KvUsage& usage) {
  return {{"used", usage.used},
          {"cached", usage.cached},
          {"free", usage.free},
          {"total", usage.total},
          {"usage", Share(usage.used, usage.total)}};
}

std::string MetricsText(const ModelRegistry& models) {
  std::vector<Loaded> loaded;
  for (ModelRegistry::Index i = 0; i < models.size(); ++i) {
    const ModelRegistry::Lease served = models.Peek(i);
    if (served == nullptr) continue;
    loaded.push_back({.id = served->id(),
                      .totals = served->engine().stats().Published(),
                      .modes = OfferedModes(*served->model().engine),
                      .learning = served->model().engine->learning_report()});
  }
  const bool any = !loaded.empty();
  const bool learns =
      std::ranges::any_of(loaded, [](const Loaded& model) { return model.learning.has_value(); });
  Families families(std::move(loaded));
  AddModels(models, &families);
  if (any) {
    families.Gauge("model_info", "A loaded model.", [](const ServerTotals&) { return 1; });
    AddEngine(&families);
    AddTokens(&families);
    AddSpeculation(&families);
  }
  if (learns) AddLearning(&families);
  return families.Text();
}

namespace {

// Null: there is no datastore.
Json DatastoreJson(const DatastoreFolder* folder) {
  if (folder == nullptr) return nullptr;
  const Status learning = folder->Learning();
  return {
      {"failure", learning.ok() ? Json(nullptr) : Json(WithoutFolders(learning.error().message))},
      {"lost_outputs", folder->LostOutputs()}};
}

// Null: the draft does not learn.
Json LearningJson(const std::optional<LearningReport>& report) {
  if (!report.has_value()) return nullptr;
  const auto or_null = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  return {{"draft", or_null(report->candidate)},
          {"tokens_per_round", report->tokens_per_round},
          {"texts", report->captured},
          {"tokens", report->captured_tokens},
          {"held_back", report->held_back},
          {"left_out", report->left_out},
          {"judged", report->judged},
          {"kept", report->kept},
          {"rolled_back", report->rolled_back},
          {"failure", or_null(WithoutFolders(report->failure))}};
}

}  // namespace

Json StatsJson(const Service& service, const OutcomeCounts& counts) {
  const ServerTotals totals = service.engine().stats().Published();
  const Engine& engine = *service.model().engine;
  Json modes = Json::object();
  Json chosen = Json::array();
  for (const Mode mode : OfferedModes(engine)) {
    if (mode.planned()) continue;  // Its rounds are of the modes that it chooses.
    const auto& planned = totals.planned_rounds[mode];
    for (std::size_t lookahead = 0; lookahead < planned.size(); ++lookahead) {
      if (planned[lookahead] == 0) continue;
      chosen.push_back(
          {{"mode", ModeName(mode)}, {"lookahead", lookahead}, {"rounds", planned[lookahead]}});
    }
    const auto& of_mode = totals.modes[mode];
    modes[std::string(ModeName(mode))] = {
        {"requests", of_mode.requests}, {"rounds", of_mode.rounds}, {"tokens", of_mode.tokens}};
  }
  Json hits = Json::array();
  std::int64_t lookups = 0;
  std::int64_t found = 0;
  for (std::size_t k = 0; k < totals.lookups_at.size(); ++k) {
    lookups += totals.lookups_at[k];
    found += totals.hits_at[k];
    if (totals.lookups_at[k] == 0) continue;
    hits.push_back({{"position", k},
                    {"lookups", totals.lookups_at[k]},
                    {"rate", Share(totals.hits_at[k], totals.lookups_at[k])}});
  }
  Json accepted = Json::array();
  for (const std::int64_t count : totals.accepted_at) {
    if (count == 0) break;
    accepted.push_back(Share(count, totals.drafts));
  }
  std::int64_t rounds = 0;
  for (const auto& mode : totals.modes) rounds += mode.rounds;
  Json outcomes = Json::object();
  for (int i = 0; i < kRequestOutcomes; ++i) {
    const auto outcome = static_cast<RequestOutcome>(i);
    outcomes[std::string(RequestOutcomeName(outcome))] = counts.of(outcome);
  }
  return {
      {"tokens_per_second", totals.rate.PerSecond(NowNs())},
      {"running", totals.running},
      {"waiting", totals.waiting},
      {"kv", KvJson(totals.kv)},
      {"recent_kv", KvJson(totals.recent_kv)},
      {"acceptance",
       {{"drafts", totals.drafts},
        {"draft_tokens", totals.draft_tokens},
        {"accepted_tokens", totals.accepted_tokens},
        {"lossy_tokens", totals.lossy_tokens},
        {"rate", Share(totals.accepted_tokens, totals.draft_tokens)},
        {"length", Share(totals.output_tokens, rounds)},
        {"by_position", std::move(accepted)}}},
      {"hits",
       {{"lookups", lookups}, {"rate", Share(found, lookups)}, {"by_position", std::move(hits)}}},
      {"round_time",
       {{"target_s", totals.target_seconds},
        {"wait_s", totals.wait_seconds},
        {"host_s", totals.host_seconds}}},
      {"modes", std::move(modes)},
      {"plans", std::move(chosen)},
      {"tokens_by_origin",
       {{"accepted", totals.tokens_by_origin[0]},
        {"fallback", totals.tokens_by_origin[1]},
        {"bonus", totals.tokens_by_origin[2]}}},
      {"requests", std::move(outcomes)},
      {"datastore", DatastoreJson(service.model().datastore.get())},
      {"draft_learning", LearningJson(engine.learning_report())},
  };
}

}  // namespace foretoken::server
