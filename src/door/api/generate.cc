#include "foretoken/generate.h"
#include "base/numbers/integers.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/result.h"
#include "base/threads/clock.h"

namespace foretoken {
namespace {

class Recorder : public RequestListener {
 public:
  /// `step` tells rounds apart.
  Recorder(const Request& request, const std::int64_t* step, const GenerateHooks* hooks)
      : step_(step), hooks_(hooks) {
    const std::size_t room = std::max(0, request.stop.max_tokens);
    generation_.tokens.reserve(room);
    generation_.origins.reserve(room);
    generation_.bursts.reserve(room);
    generation_.piece_ends.reserve(room);
    generation_.text.reserve(room * 8);
  }

  void OnPrompt(SequenceId, const ScoredPrompt& prompt) override {
    generation_.prompt_logprobs.assign(prompt.logprobs.begin(), prompt.logprobs.end());
  }

  void OnRound(SequenceId sequence, const RoundRecord& round) override {
    if (hooks_->on_round) hooks_->on_round(sequence, round);
  }

  void OnEmbedding(SequenceId, std::span<const float> embedding) override {
    generation_.embedding.assign(embedding.begin(), embedding.end());
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
    if (hooks_->on_token) hooks_->on_token(sequence, token);
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
  const GenerateHooks* hooks_;
  std::int64_t last_step_ = -1;
  bool finished_ = false;
  Generation generation_;
};

}  // namespace

Status CheckFiniteLogits(std::span<const Generation> generations, std::string_view model) {
  const auto ended = [](const Generation& generation) {
    return generation.finish == FinishReason::kNotFinite;
  };
  if (std::ranges::any_of(generations, ended)) return InvalidInput(NotFiniteMessage(model));
  return {};
}

Result<std::vector<Generation>> Generate(Engine& engine, std::vector<Request> requests, int batch,
                                         const GenerateHooks& hooks) {
  engine.Attach();
  std::int64_t step = 0;
  std::vector<std::unique_ptr<Recorder>> recorders;
  for (Request& request : requests) {
    recorders.push_back(std::make_unique<Recorder>(request, &step, &hooks));
    request.listener = recorders.back().get();
  }

  Status status;
  std::size_t submitted = 0;
  std::vector<std::pair<SequenceId, const Recorder*>> in_flight;
  while (true) {
    std::erase_if(in_flight, [](const auto& entry) { return entry.second->finished(); });
    while (status.ok() && submitted < requests.size() && in_flight.size() < Size(batch)) {
      Result<SequenceId> id = engine.Submit(std::move(requests[submitted]));
      if (!id.ok()) {
        status = id.error();
        for (const auto& entry : in_flight) engine.Cancel(entry.first);
        break;
      }
      in_flight.emplace_back(*id, recorders[submitted].get());
      ++submitted;
    }
    if (in_flight.empty()) break;
    if (hooks.before_step) hooks.before_step();
    ++step;
    if (!engine.Step()) break;
  }
  FT_RETURN_IF_ERROR(status);

  std::vector<Generation> generations;
  for (const auto& recorder : recorders) {
    FT_CHECK(recorder->finished(), "the engine went idle with a request unfinished");
    generations.push_back(recorder->Take());
  }
  return generations;
}

Result<Generation> Generate(Engine& engine, Request request, const GenerateHooks& hooks) {
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  FT_ASSIGN_OR_RETURN(std::vector<Generation> generations,
                      Generate(engine, std::move(requests), 1, hooks));
  return std::move(generations.front());
}

}  // namespace foretoken
