// Acceptance and cache hits of both ways to verify, at single positions of the target's own
// samples: what a pair of models allows, whatever the machine. Usage: verification_bench [TARGET
// DRAFT], folders of the models; the bundled pair by default.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "core/draft/model/draw.h"
#include "core/model/model_testing.h"
#include "core/speculation/rejection.h"
#include "door/assembly/loaded_model.h"

namespace foretoken {
namespace {

constexpr int kTokens = 150;  // Per text.
constexpr int kTexts = 6;
constexpr int kDraws = 5;  // Per position.
constexpr int kFanout = 3;

struct Position {
  std::vector<float> target;  // Logits.
  std::vector<float> draft;
  std::vector<float> p;                     // The target's distribution; empty at T = 0.
  std::vector<TokenProbability> likeliest;  // The draft's.
};

struct Rates {
  double accepted = 0;
  double inner_hits = 0;  // At k < K: after a rejection.
  double leaf_hits = 0;   // At k = K.
};

struct Way {
  std::string name;
  bool draws = true;
  double saguaro_c = 1;
  CacheOrder order = CacheOrder::kNoise;
};

class Measurement {
 public:
  Measurement(LoadedModel* target, LoadedModel* draft)
      : target_(target),
        draft_(draft),
        vocabulary_(target->model->config().vocabulary),
        target_sampler_(target->backend.get(), vocabulary_),
        draft_sampler_(draft->backend.get(), vocabulary_),
        history_(vocabulary_) {}

  std::vector<Position> SamplePositions(float temperature) {
    const char* prompts[] = {"Once upon a time, there was a little girl named Lily.",
                             "One day, a small dragon found a red ball in the park.",
                             "Tom and his dog went to the sea. The dog was very",
                             "Sara wanted to fly like a bird, so she"};
    std::vector<Position> positions;
    for (int text = 0; text < kTexts; ++text) {
      SequenceRunner target(target_->model.get(), 512);
      SequenceRunner draft(draft_->model.get(), 512);
      std::vector<Token> tokens = target_->tokenizer->Encode(prompts[text % 4], true, false);
      const SamplingParams params{.temperature = temperature, .seed = 1000U + text};
      std::size_t rows = tokens.size();
      for (std::size_t i = 0; i < kTokens; ++i) {
        const auto last = (rows - 1) * vocabulary_;
        const float* p = target.Append(tokens) + last;
        const float* q = draft.Append(tokens) + last;
        Position position{{p, p + vocabulary_}, {q, q + vocabulary_}, {}, {}};
        if (temperature > 0) {
          const auto distribution = target_sampler_.Probabilities(p, params, history_, {});
          position.p.assign(distribution.begin(), distribution.end());
          const auto most =
              draft_sampler_.LikeliestTokens(q, params, history_, {}, kMaxDistributionTokens);
          position.likeliest.assign(most.begin(), most.end());
        }
        positions.push_back(std::move(position));
        tokens = {target_sampler_.Choose(p, params, history_, {}, i).token};
        rows = 1;
        const auto& eos = target_->model->config().eos;
        if (std::find(eos.begin(), eos.end(), tokens[0]) != eos.end()) break;
      }
    }
    return positions;
  }

  Rates Measure(const std::vector<Position>& positions, float temperature, const Way& way) {
    int rounds = 0;
    int accepted = 0;
    int inner_hits = 0;
    int leaf_hits = 0;
    std::uint64_t seed = 1;
    for (const Position& position : positions) {
      for (int draw = 0; draw < (temperature == 0 ? 1 : kDraws); ++draw, ++rounds) {
        const SamplingParams params{.temperature = temperature, .seed = ++seed};
        Token proposed = -1;
        const DrawnTokens inner = Candidates(position, params, way, /*leaf=*/false, &proposed);
        Token emitted = -1;
        const bool taken = Verify(position, params, way, proposed, &emitted);
        accepted += taken;
        inner_hits += !taken && Holds(inner, proposed, emitted);
        // At k = K the target's own choice is the bonus token.
        const Token bonus =
            target_sampler_.Choose(position.target.data(), params, history_, {}, kPosition).token;
        leaf_hits += Holds(Candidates(position, params, way, /*leaf=*/true, nullptr), -1, bonus);
      }
    }
    return {double(accepted) / rounds, double(inner_hits) / std::max(1, rounds - accepted),
            double(leaf_hits) / rounds};
  }

 private:
  static constexpr std::uint64_t kPosition = 5;

  static bool Holds(const DrawnTokens& candidates, Token proposed, Token bonus) {
    int number = 0;
    for (const Token candidate : candidates) {
      if (candidate == proposed) continue;
      if (number++ == kFanout) return false;
      if (candidate == bonus) return true;
    }
    return false;
  }

  DrawnTokens Candidates(const Position& position, const SamplingParams& params, const Way& way,
                         bool leaf, Token* proposed) {
    if (!way.draws || params.temperature == 0) {
      std::array<Candidate, kFanout + 1> best;
      draft_sampler_.Rank(position.draft.data(), params, history_, {}, kPosition, best);
      DrawnTokens ranking;
      for (const Candidate& candidate : best) ranking.push_back(candidate.token);
      if (proposed != nullptr) *proposed = ranking[0];
      return ranking;
    }
    std::vector<TokenProbability> distribution = position.likeliest;
    const DrawnTokens ranking = draw_.Draw({.root = kPosition - 1,
                                            .path = {},
                                            .children = leaf ? 0 : 1,
                                            .candidates = kFanout,
                                            .seed = params.seed,
                                            .fanout = kFanout,
                                            .saguaro_c = way.saguaro_c,
                                            .order = way.order},
                                           distribution);
    distributions_.Clear();
    distributions_.SetListed(0, distribution);
    if (proposed != nullptr) *proposed = ranking[0];
    return ranking;
  }

  bool Verify(const Position& position, const SamplingParams& params, const Way& way,
              Token proposed, Token* emitted) {
    const auto choose = [&] {
      return target_sampler_.Choose(position.target.data(), params, history_, {}, kPosition).token;
    };
    if (!way.draws || params.temperature == 0) {
      *emitted = choose();
      return *emitted == proposed;
    }
    Proposal proposal;
    proposal.Extend(proposed);
    const Outcome outcome = VerifyRejection(
        proposal, distributions_,
        [&](int) {
          p_ = position.p;
          return std::span(p_);
        },
        [&](int, int index) { return AcceptanceUniform(params.seed, kPosition, index); },
        [&](int node, std::span<float> weights) {
          if (node == 1) return Token{0};  // Another position: not looked at here.
          return weights.empty() ? choose()
                                 : target_sampler_.ChooseByWeight(weights, params.seed, kPosition);
        });
    *emitted = outcome.node == 1 ? proposed : outcome.bonus;
    return outcome.node == 1;
  }

  LoadedModel* target_;
  LoadedModel* draft_;
  int vocabulary_;
  Sampler target_sampler_;
  Sampler draft_sampler_;
  TokenHistory history_;
  DraftDraw draw_;
  DraftDistributions distributions_;
  std::vector<float> p_;
};

int Main(const std::string& target_folder, const std::string& draft_folder) {
  const auto device = std::make_shared<Device>(CoreSet{AvailableCores().front()});
  auto target = LoadModel({.path = target_folder}, device, Precision::kBF16);
  auto draft = LoadModel({.path = draft_folder}, device, Precision::kBF16);
  if (!target.ok() || !draft.ok()) {
    fmt::print(stderr, "{}\n", (target.ok() ? draft.error() : target.error()).message);
    return 1;
  }
  const std::vector<Way> ways = {
      {"shared noise", false},
      {"rejection", true},
      {"rejection, C = 0.5", true, 0.5},
      {"rejection, C = 0.2", true, 0.2},
      {"rejection, cached by probability", true, 1, CacheOrder::kProbability},
      {"rejection, cached by probability, C = 0.5", true, 0.5, CacheOrder::kProbability},
      {"rejection, cached by probability, C = 0.2", true, 0.2, CacheOrder::kProbability},
  };
  Measurement measurement(target->get(), draft->get());
  fmt::print("| T | verification | acceptance | hit at k < K | hit at k = K |\n");
  fmt::print("|---|---|---|---|---|\n");
  for (const float temperature : {0.0F, 0.7F, 1.0F, 1.3F}) {
    const auto positions = measurement.SamplePositions(temperature);
    for (const Way& way : ways) {
      if (temperature == 0 && way.draws) continue;  // The same.
      const Rates rates = measurement.Measure(positions, temperature, way);
      fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.3f} |\n", temperature,
                 temperature == 0 ? "any" : way.name, rates.accepted, rates.inner_hits,
                 rates.leaf_hits);
      std::fflush(stdout);
    }
    fmt::print(stderr, "{} positions at T = {}\n", positions.size(), temperature);
  }
  return 0;
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  const std::string models = std::string(FORETOKEN_SOURCE_DIR) + "/models/";
  return foretoken::Main(argc > 2 ? argv[1] : models + "demo-target",
                         argc > 2 ? argv[2] : models + "demo-draft");
}
