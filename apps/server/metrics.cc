#include "server/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace foretoken::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

// Builds metric families one after the other.
class Families {
 public:
  void Begin(std::string name, std::string help, MetricType type) {
    prometheus::MetricFamily& family = families_.emplace_back();
    family.name = "foretoken_" + std::move(name);
    family.help = std::move(help);
    family.type = type;
  }
  void Add(double value, std::vector<ClientMetric::Label> labels = {}) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = std::move(labels);
    metric.counter.value = value;
    metric.gauge.value = value;
  }
  void Counter(std::string name, std::string help, double value) {
    Begin(std::move(name), std::move(help), MetricType::Counter);
    Add(value);
  }
  void Gauge(std::string name, std::string help, double value) {
    Begin(std::move(name), std::move(help), MetricType::Gauge);
    Add(value);
  }
  void Durations(std::string name, std::string help, const DurationBuckets& times) {
    Begin(std::move(name), std::move(help), MetricType::Histogram);
    ClientMetric::Histogram& histogram = families_.back().metric.emplace_back().histogram;
    histogram.sample_count = static_cast<std::uint64_t>(times.count);
    histogram.sample_sum = times.sum;
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < times.counts.size(); ++i) {
      below += static_cast<std::uint64_t>(times.counts[i]);
      const double bound = i < DurationBuckets::kBounds.size()
                               ? DurationBuckets::kBounds[i]
                               : std::numeric_limits<double>::infinity();
      histogram.bucket.push_back({below, bound});
    }
  }
  std::string Text() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families_);
    return out.str();
  }

 private:
  std::vector<prometheus::MetricFamily> families_;
};

double Share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

template <typename Counts>
void AddPerPosition(const Counts& counts, Families* families) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    // Position 0 is always there, so that a query finds the metric.
    if (i == 0 || counts[i] > 0) {
      families->Add(counts[i], {{"position", std::to_string(i)}});
    }
  }
}

void AddSpeculation(const ServerTotals& totals, Families* families) {
  families->Counter("spec_decode_num_drafts_total", "Rounds that verified a proposal.",
                    totals.drafts);
  families->Counter("spec_decode_num_draft_tokens_total", "Proposed tokens that were verified.",
                    totals.draft_tokens);
  families->Counter("spec_decode_num_accepted_tokens_total", "Proposed tokens that were accepted.",
                    totals.accepted_tokens);
  families->Begin("spec_decode_num_accepted_tokens_per_pos_total",
                  "Rounds in which the proposal's token at the position was accepted.",
                  MetricType::Counter);
  AddPerPosition(totals.accepted_at, families);
  families->Begin("ssd_cache_lookups_total",
                  "Lookups in the speculation cache, by how many tokens were accepted before.",
                  MetricType::Counter);
  AddPerPosition(totals.lookups_at, families);
  families->Begin("ssd_cache_hits_total",
                  "Lookups that found the outcome prepared, by how many tokens were accepted.",
                  MetricType::Counter);
  AddPerPosition(totals.hits_at, families);
}

void AddTokens(const ServerTotals& totals, const Engine& engine, Families* families) {
  families->Counter("prompt_tokens_total", "Prompt tokens of finished requests.",
                    totals.prompt_tokens);
  families->Counter("prompt_tokens_cached_total", "Of these, found in the prefix cache.",
                    totals.cached_prompt_tokens);
  const auto by_mode = [&](auto member) {
    for (const Mode mode : OfferedModes(engine)) {
      const auto& of_mode = totals.modes[mode];
      families->Add(of_mode.*member, {{"mode", std::string(ModeName(mode))}});
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
  for (const Mode mode : OfferedModes(engine)) {
    const auto& rounds = totals.planned_rounds[mode];
    for (std::size_t lookahead = 0; lookahead < rounds.size(); ++lookahead) {
      if (rounds[lookahead] == 0) continue;
      families->Add(rounds[lookahead], {{"mode", std::string(ModeName(mode))},
                                        {"lookahead", std::to_string(lookahead)}});
    }
  }
  families->Begin("tokens_by_origin_total",
                  "Emitted tokens by how they came: accepted from a prepared proposal, from a "
                  "fallback's, or the target's own bonus token.",
                  MetricType::Counter);
  for (std::size_t i = 0; i < totals.tokens_by_origin.size(); ++i) {
    families->Add(totals.tokens_by_origin[i], {{"origin", std::string(kOriginNames[i])}});
  }
}

void AddEngine(const ServerTotals& totals, Families* families) {
  families->Gauge("sequences_running", "Sequences in the batch.", totals.running);
  families->Gauge("sequences_waiting", "Sequences that wait for a place.", totals.waiting);
  const auto add_kv = [families](std::string name, std::string help, const KvUsage& usage) {
    families->Begin(std::move(name), std::move(help), MetricType::Gauge);
    families->Add(usage.used, {{"state", "used"}});
    families->Add(usage.cached, {{"state", "cached"}});
    families->Add(usage.free, {{"state", "free"}});
  };
  add_kv("kv_blocks", "Blocks of the KV pool by state.", totals.kv);
  add_kv("kv_recent_blocks", "The same of layers that see a window of positions.",
         totals.recent_kv);
  families->Counter("preemptions_total", "Preemptions of finished sequences.", totals.preemptions);
  families->Counter("passes_total", "Passes of the target.", totals.passes);
  families->Counter("pass_rows_total", "Rows in those passes.", totals.rows);
  families->Begin("round_seconds_total",
                  "Where the time of decoding rounds went: target passes, waiting for proposals, "
                  "all else.",
                  MetricType::Counter);
  families->Add(totals.target_seconds, {{"part", "target"}});
  families->Add(totals.wait_seconds, {{"part", "wait"}});
  families->Add(totals.host_seconds, {{"part", "host"}});
  families->Durations("time_to_first_token_seconds", "From submission to the first token.",
                      totals.time_to_first_token);
  families->Durations("time_per_output_token_seconds", "Mean time of a token after the first.",
                      totals.time_per_output_token);
  families->Durations("e2e_request_latency_seconds", "From submission to the end.",
                      totals.request_time);
}

}  // namespace

std::string MetricsText(const Service& service) {
  Families families;
  const auto outcomes = service.outcomes();
  families.Begin("requests_total", "API requests by how they ended.", MetricType::Counter);
  for (int i = 0; i < kRequestOutcomes; ++i) {
    families.Add(outcomes[i],
                 {{"outcome", std::string(RequestOutcomeName(static_cast<RequestOutcome>(i)))}});
  }
  const bool serving = service.engine().state() == EngineThread::State::kServing;
  families.Gauge(
      "up", "1 where the model is loaded and the engine makes progress.",
      serving && service.engine().SecondsWithoutProgress() < service.options().stall_seconds ? 1
                                                                                             : 0);
  if (serving) {
    const ServerTotals totals = service.engine().stats().Published();
    families.Begin("model_info", "The served model.", MetricType::Gauge);
    families.Add(1, {{"model", service.model().id}});
    AddEngine(totals, &families);
    AddTokens(totals, *service.model().engine, &families);
    AddSpeculation(totals, &families);
  }
  return families.Text();
}

namespace {

// Null: there is no datastore.
OrderedJson DatastoreJson(const DatastoreFolder* folder) {
  if (folder == nullptr) return nullptr;
  const Status learning = folder->Learning();
  return {{"failure", learning.ok() ? OrderedJson(nullptr) : OrderedJson(learning.error().message)},
          {"lost_outputs", folder->LostOutputs()}};
}

OrderedJson KvJson(const KvUsage& usage) {
  return {{"used", usage.used},
          {"cached", usage.cached},
          {"free", usage.free},
          {"total", usage.total},
          {"usage", Share(usage.used, usage.total)}};
}

}  // namespace

OrderedJson StatsJson(const Service& service) {
  const ServerTotals totals = service.engine().stats().Published();
  const Engine& engine = *service.model().engine;
  OrderedJson modes = OrderedJson::object();
  OrderedJson chosen = OrderedJson::array();
  for (const Mode mode : OfferedModes(engine)) {
    if (mode.planned()) continue;  // Its rounds are of the modes that it chooses.
    const auto& planned = totals.planned_rounds[mode];
    for (std::size_t lookahead = 0; lookahead < planned.size(); ++lookahead) {
      if (planned[lookahead] == 0) continue;
      chosen.push_back(
          {{"mode", ModeName(mode)}, {"lookahead", lookahead}, {"rounds", planned[lookahead]}});
    }
    const auto& counts = totals.modes[mode];
    modes[std::string(ModeName(mode))] = {
        {"requests", counts.requests}, {"rounds", counts.rounds}, {"tokens", counts.tokens}};
  }
  OrderedJson hits = OrderedJson::array();
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
  OrderedJson accepted = OrderedJson::array();
  for (const std::int64_t count : totals.accepted_at) {
    if (count == 0) break;
    accepted.push_back(Share(count, totals.drafts));
  }
  std::int64_t rounds = 0;
  for (const auto& mode : totals.modes) rounds += mode.rounds;
  OrderedJson outcomes = OrderedJson::object();
  const auto counts = service.outcomes();
  for (int i = 0; i < kRequestOutcomes; ++i) {
    outcomes[std::string(RequestOutcomeName(static_cast<RequestOutcome>(i)))] = counts[i];
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
  };
}

}  // namespace foretoken::server
