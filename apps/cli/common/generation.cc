#include "cli/common/generation.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"

namespace foretoken {

class GenerationRunner::Recorder : public RequestListener {
 public:
  /// `step` tells rounds apart.
  Recorder(const Request& request, const std::int64_t* step, const TokenCallback* on_token)
      : step_(step), on_token_(on_token) {
    const auto room = static_cast<std::size_t>(std::max(0, request.stop.max_tokens));
    generation_.tokens.reserve(room);
    generation_.origins.reserve(room);
    generation_.bursts.reserve(room);
    generation_.piece_ends.reserve(room);
    generation_.text.reserve(room * 8);
  }

  void OnToken(SequenceId sequence, const EmittedToken& token) override {
    if (generation_.bursts.empty() || last_step_ != *step_) {
      generation_.bursts.push_back({.time_ns = NowNs()});
      last_step_ = *step_;
    }
    ++generation_.bursts.back().tokens;
    generation_.tokens.push_back(token.token);
    generation_.origins.push_back(token.origin);
    if (token.logprobs != nullptr) generation_.logprobs.push_back(*token.logprobs);
    generation_.text += token.text;
    generation_.piece_ends.push_back(generation_.text.size());
    if (*on_token_) (*on_token_)(sequence, token);
  }

  void OnFinish(SequenceId, FinishReason reason, const RequestStats& stats) override {
    generation_.finish = reason;
    generation_.stats = stats;
    finished_ = true;
  }

  bool finished() const { return finished_; }
  Generation Take() { return std::move(generation_); }

 private:
  const std::int64_t* step_;
  const TokenCallback* on_token_;
  std::int64_t last_step_ = -1;
  bool finished_ = false;
  Generation generation_;
};

Result<std::vector<Generation>> GenerationRunner::Run(std::vector<Request> requests, int batch) {
  std::int64_t step = 0;
  std::vector<std::unique_ptr<Recorder>> recorders;
  for (Request& request : requests) {
    recorders.push_back(std::make_unique<Recorder>(request, &step, &on_token_));
    request.listener = recorders.back().get();
  }

  Status status;
  std::size_t submitted = 0;
  std::vector<std::pair<SequenceId, const Recorder*>> in_flight;
  while (true) {
    std::erase_if(in_flight, [](const auto& entry) { return entry.second->finished(); });
    while (status.ok() && submitted < requests.size() &&
           in_flight.size() < static_cast<std::size_t>(batch)) {
      Result<SequenceId> id = engine_->Submit(std::move(requests[submitted]));
      if (!id.ok()) {
        status = id.error();
        for (const auto& entry : in_flight) engine_->Cancel(entry.first);
        break;
      }
      in_flight.emplace_back(*id, recorders[submitted].get());
      ++submitted;
    }
    if (in_flight.empty()) break;
    if (before_step_) before_step_();
    ++step;
    if (!engine_->Step()) break;
  }
  FT_RETURN_IF_ERROR(status);

  std::vector<Generation> generations;
  for (const auto& recorder : recorders) {
    FT_CHECK(recorder->finished(), "the engine went idle with a request unfinished");
    generations.push_back(recorder->Take());
  }
  return generations;
}

Result<Generation> GenerationRunner::Run(Request request) {
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  FT_ASSIGN_OR_RETURN(std::vector<Generation> generations, Run(std::move(requests), 1));
  return std::move(generations.front());
}

std::string_view DescribeFinish(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfSequence:
      return "ended by the model";
    case FinishReason::kStopToken:
      return "ended by a stop token";
    case FinishReason::kStopString:
      return "ended by a stop string";
    case FinishReason::kMaxTokens:
      return "ended at --max-tokens";
    case FinishReason::kGrammarEnd:
      return "ended by the grammar";
    case FinishReason::kGrammarStuck:
      return "ended because the grammar is too ambiguous";
    case FinishReason::kContextFull:
      return "ended with the context full";
    case FinishReason::kCancelled:
      return "interrupted";
  }
  return "";
}

double HitRate(const RequestStats& stats) {
  const int lookups = stats.lookups_partial + stats.lookups_full;
  return lookups == 0 ? -1 : static_cast<double>(stats.hits_partial + stats.hits_full) / lookups;
}

nlohmann::json StatsJson(const RequestStats& stats) {
  const auto milliseconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
  nlohmann::json json = {
      {"prompt_tokens", stats.prompt_tokens},
      {"cached_prompt_tokens", stats.cached_prompt_tokens},
      {"output_tokens", stats.output_tokens},
      {"time_to_first_token_ms", milliseconds(stats.first_token_ns - stats.submitted_ns)},
      {"decode_ms", milliseconds(stats.finished_ns - stats.first_token_ns)},
      {"tokens_per_s", stats.decode_tokens_per_second()},
      {"rounds", stats.rounds},
      {"proposed", stats.proposed},
      {"accepted", stats.accepted},
      {"acceptance_length", stats.acceptance_length()},
      {"lookups", {{"before_k", stats.lookups_partial}, {"at_k", stats.lookups_full}}},
      {"hits", {{"before_k", stats.hits_partial}, {"at_k", stats.hits_full}}},
      {"hits_retrieved", stats.hits_retrieved},
      {"fallbacks", stats.fallbacks},
      {"preemptions", stats.preemptions},
  };
  const double hits = HitRate(stats);
  json["hit_rate"] = hits < 0 ? nlohmann::json() : nlohmann::json(hits);
  return json;
}

nlohmann::json PlannerJson(const PlannerReport& report) {
  nlohmann::json modes = nlohmann::json::object();
  for (int mode = 0; mode < kModes; ++mode) {
    const ModeReport& of = report.modes[mode];
    if (of.rounds == 0) continue;
    modes[std::string(ModeName(static_cast<Mode>(mode)))] = {
        {"rounds", of.rounds},
        {"measured_tokens_per_s", of.tokens_per_second},
        {"predicted_tokens_per_s", of.predicted},
        {"correction", of.correction}};
  }
  return {{"modes", std::move(modes)},
          {"replans", report.replans},
          {"replan_us", report.replan_us},
          {"switches", report.switches}};
}

}  // namespace foretoken
