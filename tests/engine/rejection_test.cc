// Rejection verification end to end: the joint distribution of the first tokens that an engine
// emits, over many seeds, against the target's own distribution, which its log-probabilities give
// exactly.

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/files/temporary_testing.h"
#include "core/backend/device.h"
#include "core/draft/registry.h"
#include "core/model/model_weights.h"
#include "core/model/translated_model.h"
#include "door/assembly/text_link.h"
#include "json/json.h"
#include "tests/engine/engine_testing.h"
#include "tests/engine/speculator_testing.h"
#include "text/tokenizer/tokenizer_testing.h"

namespace foretoken {
namespace {

constexpr int kLetters = 8;
constexpr int kCompared = 3;  // Tokens.
constexpr int kRejectionLookahead = 2;

// What drafts; all but the first two read the target's states or say all positions in one pass.
enum class TestedDraft {
  kModel,
  kByText,
  kEagle3,
  kPard,
  kDflash,
  kDspark,
  kPeagle,
  kMedusa,
  kHydra
};

struct RejectionSetting {
  std::string name;
  Mode mode = Mode::kAr;
  Fallback fallback = Fallback::kJit;
  float saguaro_c = 1;
  int tree_width = 1;
  float top_p = 1;
  CacheOrder order = CacheOrder::kNoise;
  std::vector<Token> draft_lacks = {};
  TestedDraft draft = TestedDraft::kModel;

  // SSD's rounds wait for another thread; that distributions travel with proposals shows in fewer.
  int requests() const { return mode == Mode::kSsd ? 1'500 : 12'000; }
  bool reads_states() const {
    return draft != TestedDraft::kModel && draft != TestedDraft::kByText &&
           draft != TestedDraft::kPard;
  }
  int batch() const { return mode != Mode::kSsd ? 16 : fallback == Fallback::kJit ? 1 : 4; }
};

std::ostream& operator<<(std::ostream& out, const RejectionSetting& setting) {
  return out << setting.name;
}

// What a draft by text has for the target's letters: some together, and in another order.
constexpr const char* kTargetWords[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
constexpr const char* kDraftWords[] = {"h", "f", "d", "b", "a", "c", "e", "g", "bf", "cf", "gh"};

ModelConfig TinyShape(int hidden) {
  return LlamaConfig({.hidden = hidden,
                      .intermediate = 2 * hidden,
                      .layers = 1,
                      .heads = 2,
                      .kv_heads = 1,
                      .head_dim = hidden / 2,
                      .vocabulary = kLetters,
                      .max_positions = 64});
}

constexpr int kTinyHidden = 32;

FeatureSpec Features(FeatureSpec::Join join) {
  return {.join = join,
          .points = {0, 1, TapShape::kFinalState},
          .tapped = kTinyHidden,
          .reduced = true};
}

ModelConfig DraftShape(const RejectionSetting& setting) {
  using Join = FeatureSpec::Join;
  constexpr int kPositions = 2 * kRejectionLookahead;
  const bool heads = setting.draft == TestedDraft::kMedusa || setting.draft == TestedDraft::kHydra;
  ModelConfig shape = TinyShape(heads ? kTinyHidden : 16);
  switch (setting.draft) {
    case TestedDraft::kModel:
      return shape;
    case TestedDraft::kByText:
      shape.vocabulary = static_cast<int>(std::size(kDraftWords));
      return shape;
    case TestedDraft::kEagle3:
      shape.feature = Features(Join::kAttended);
      return shape;
    case TestedDraft::kPeagle:
      shape.feature = Features(Join::kAttended);
      shape.feature.masked = true;
      [[fallthrough]];
    case TestedDraft::kPard:
      shape.parallel = {.positions = kRejectionLookahead, .mask_token = 2};
      return shape;
    case TestedDraft::kMedusa:
      shape.feature = {.join = Join::kHeads,
                       .points = {TapShape::kFinalState},
                       .tapped = kTinyHidden,
                       .heads = kPositions,
                       .head_blocks = 1,
                       .output_norm = false};
      shape.parallel = {.positions = kPositions, .mask_token = 0, .block = kPositions};
      shape.layers.clear();
      return shape;
    case TestedDraft::kHydra:
      shape.feature = {.join = Join::kSequentialHeads,
                       .points = {TapShape::kFinalState},
                       .tapped = kTinyHidden,
                       .leaves_normed = true,
                       .heads = kPositions,
                       .head_blocks = 1,
                       .output_norm = false};
      shape.layers.clear();
      return shape;
    case TestedDraft::kDflash:
      shape.parallel = {
          .positions = kPositions, .mask_token = 2, .block = kPositions + 1, .in_place = true};
      break;
    case TestedDraft::kDspark:
      shape.parallel = {.positions = kPositions, .mask_token = 2, .block = kPositions};
      shape.markov = {.rank = 4,
                      .kind = MarkovSpec::Kind::kGated,
                      .confidence = true,
                      .confidence_reads_tokens = true};
      break;
  }
  shape.feature = Features(Join::kContext);
  for (LayerSpec& layer : shape.layers) layer.attention.both_ways = true;
  return shape;
}

/// The target's words and the draft's, each made by BPE: of those of two letters by a merge.
std::shared_ptr<const TextLink> Pair() {
  const auto tokenizer = [](std::span<const char* const> words) {
    Json model = {{"type", "BPE"}, {"merges", Json::array()}};
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string word = words[i];
      model["vocab"][word] = i;
      if (word.size() == 2) model["merges"].push_back(word.substr(0, 1) + " " + word.substr(1));
    }
    const TemporaryFolder folder;
    folder.Write("tokenizer.json",
                 Json{{"added_tokens", Json::array()},
                      {"normalizer", nullptr},
                      {"pre_tokenizer",
                       {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
                      {"post_processor", nullptr},
                      {"decoder", {{"type", "ByteLevel"}}},
                      {"model", model}}
                     .dump());
    return MustLoad(folder.path());
  };
  return LinkByText(tokenizer(kTargetWords), tokenizer(kDraftWords));
}

/// A model on a device of its own.
struct Tiny {
  Tiny(const ModelConfig& shape, std::uint64_t seed, int core, const std::vector<Token>& lacks = {})
      : device({core}),
        backend(device.MakeBackend(Precision::kF32)),
        model(SyntheticWeights(shape, seed, backend.get())->MakeModel(backend.get())) {
    if (lacks.empty()) return;
    // The others under other ids.
    Translation translation;
    for (Token token = 0; token < kLetters; ++token) {
      translation.read.push_back((token + 3) % kLetters);
      const bool lacked = std::ranges::find(lacks, token) != lacks.end();
      translation.said.push_back(lacked ? -1 : (token + 3) % kLetters);
    }
    model = Translate(std::move(model), std::make_shared<const Translation>(translation));
  }
  Device device;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};

class RejectionTest : public testing::TestWithParam<RejectionSetting> {
 protected:
  static SamplingParams Sampling(std::uint64_t seed) {
    SamplingParams sampling;
    sampling.temperature = 2.0F;
    sampling.top_p = GetParam().top_p;
    sampling.seed = seed;
    return sampling;
  }

  std::unique_ptr<Engine> NewEngine(const RejectionSetting& setting) {
    EngineConfig options;
    options.plan.mode = setting.mode;
    options.plan.lookahead = kRejectionLookahead;
    options.plan.fallback = setting.fallback;
    options.plan.saguaro_c = setting.saguaro_c;
    options.plan.tree_width = setting.tree_width;
    options.plan.cache_order = setting.order;
    options.plan.primary = options.plan.after_fallback = UniformFanout(2, kRejectionLookahead);
    options.max_batch = setting.batch();
    options.max_waiting = setting.requests();
    options.verification = Verification::kRejection;
    Proposers proposers;
    const FeatureSpec& feature = draft_.model->config().feature;
    if (setting.mode.drafts()) {
      proposers.taps[DrafterId::kModel] = {.points = feature.points, .hidden = feature.tapped};
    }
    if (setting.mode == Mode::kSd) {
      const std::shared_ptr<Model> draft(std::shared_ptr<Model>(), draft_.model.get());
      proposers.before[DrafterId::kModel] =
          MakeModelDrafter({.vocabulary = kLetters,
                            .max_sequences = options.max_batch,
                            .max_context = 64,
                            .draft = draft,
                            .text = setting.draft == TestedDraft::kByText ? Pair() : nullptr});
    } else if (setting.mode.before()) {
      proposers.before[setting.mode.drafter] = MakeDrafter(
          setting.mode.drafter,
          {.vocabulary = kLetters, .max_context = 64, .backend = target_.backend.get()});
    } else if (setting.mode == Mode::kSsd) {
      proposers.speculator = StartSpeculator(options);
    }
    auto engine =
        CreateEngine(options, target_.model.get(), &target_.device, nullptr, std::move(proposers));
    EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
    return std::move(engine).value();
  }

  std::unique_ptr<SpeculatorClient> StartSpeculator(const EngineConfig& options) {
    auto client = StartTestSpeculator(draft_.model.get(), &draft_.device,
                                      ConfigureFor(options, target_.model->config()));
    client_ = client.get();
    return client;
  }

  /// The target's distribution after the prompt and `prefix`, from its log-probabilities.
  std::vector<double> DistributionAfter(Engine& plain, const std::vector<Token>& prefix) {
    Collector collector;
    Request request{.prompt = prompt_, .sampling = {}, .listener = &collector};
    request.prompt.insert(request.prompt.end(), prefix.begin(), prefix.end());
    request.sampling.top_logprobs = kLetters;
    request.stop.max_tokens = 1;
    const auto id = plain.Submit(request);
    EXPECT_TRUE(id.ok());
    plain.RunUntilIdle();
    std::vector<double> distribution(kLetters, 0.0);
    const auto logprobs = collector.outputs[*id].logprobs.at(0);
    double sum = 0;
    for (std::size_t i = 1; i < logprobs.size(); ++i) {
      sum += distribution[logprobs[i].token] =
          std::exp(logprobs[i].logprob / Sampling(0).temperature);
    }
    // top-p keeps the smallest leading set with that much mass.
    double kept = 0;
    double cut = 0;
    for (std::size_t i = 1; i < logprobs.size(); ++i) {
      double& probability = distribution[logprobs[i].token];
      probability /= sum;
      if (cut >= GetParam().top_p) {
        probability = 0;
      } else {
        cut += probability;
        kept += probability;
      }
    }
    for (double& probability : distribution) probability /= kept;
    return distribution;
  }

  /// Expected and counted, by the first kCompared tokens read as digits.
  std::vector<double> ExactJoint() {
    const auto plain = NewEngine({.name = "ar"});
    std::vector<double> joint = {1};
    std::vector<std::vector<Token>> prefixes = {{}};
    for (int length = 0; length < kCompared; ++length) {
      std::vector<double> longer;
      std::vector<std::vector<Token>> extended;
      for (std::size_t i = 0; i < prefixes.size(); ++i) {
        const auto distribution = DistributionAfter(*plain, prefixes[i]);
        for (Token token = 0; token < kLetters; ++token) {
          longer.push_back(joint[i] * distribution[token]);
          extended.push_back(prefixes[i]);
          extended.back().push_back(token);
        }
      }
      joint = std::move(longer);
      prefixes = std::move(extended);
    }
    return joint;
  }

  std::vector<int> CountEmitted(Engine& engine, RequestStats* total) {
    std::vector<int> counts(1U << (3 * kCompared), 0);
    Collector collector;
    for (int i = 0; i < GetParam().requests(); ++i) {
      Request request{.prompt = prompt_, .sampling = Sampling(i), .listener = &collector};
      request.stop.max_tokens = kCompared + 2;  // The limit must not shorten what is compared.
      EXPECT_TRUE(engine.Submit(request).ok());
    }
    while (engine.Step()) {
      // A draft that reads states is told of a sequence in the round behind its first token.
      if (client_ != nullptr) {
        AwaitPrepared(*client_, collector, GetParam().reads_states() ? 2 : 0);
      }
    }
    for (const auto& [id, output] : collector.outputs) {
      std::size_t index = 0;
      for (int i = 0; i < kCompared; ++i) index = index * kLetters + output.tokens.at(i);
      ++counts[index];
      total->proposed += output.stats.proposed;
      total->accepted += output.stats.accepted;
      total->hits_partial += output.stats.hits_partial;
      total->hits_full += output.stats.hits_full;
    }
    return counts;
  }

  SpeculatorClient* client_ = nullptr;  // The engine's.
  Tiny target_{TinyShape(kTinyHidden), 3, TargetCore()};
  Tiny draft_{DraftShape(GetParam()), 8, DraftCore(), GetParam().draft_lacks};
  const std::vector<Token> prompt_ = {1, 5, 2, 5, 1, 5};
};

TEST_P(RejectionTest, EmitsTheTargetsJointDistribution) {
  const std::vector<double> expected = ExactJoint();
  RequestStats stats;
  const std::vector<int> counts = CountEmitted(*NewEngine(GetParam()), &stats);
  double statistic = 0;
  double rare_expected = 0;
  int rare = 0;
  int cells = 0;
  const auto add = [&](double mean, int count) {
    statistic += (count - mean) * (count - mean) / mean;
    ++cells;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double mean = expected[i] * GetParam().requests();
    EXPECT_TRUE(expected[i] > 0 || counts[i] == 0) << "cell " << i << " was filtered out";
    if (mean >= 8) {
      add(mean, counts[i]);
    } else {
      rare_expected += mean;
      rare += counts[i];
    }
  }
  if (rare_expected >= 8) add(rare_expected, rare);
  ASSERT_GT(cells, 10) << "the test would not see much";
  // The 1 - 1e-4 quantile of chi-square, by Wilson and Hilferty.
  const double freedom = cells - 1;
  const double root = 1 - 2 / (9 * freedom) + 3.72 * std::sqrt(2 / (9 * freedom));
  EXPECT_LT(statistic, freedom * root * root * root) << cells << " cells";
  if (GetParam().mode != Mode::kAr) {
    EXPECT_GT(stats.accepted, GetParam().requests() / 20) << "of " << stats.proposed;
    EXPECT_LT(stats.accepted, stats.proposed);
  }
  if (GetParam().mode == Mode::kSsd) {
    EXPECT_GT(stats.hits_partial + stats.hits_full, GetParam().requests() / 20);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, RejectionTest,
    testing::Values(
        RejectionSetting{.name = "Ar", .mode = Mode::kAr},
        RejectionSetting{.name = "Sd", .mode = Mode::kSd},
        RejectionSetting{.name = "SdTopP", .mode = Mode::kSd, .top_p = 0.8F},
        RejectionSetting{.name = "SdTree", .mode = Mode::kSd, .tree_width = 2},
        RejectionSetting{.name = "SdLacking", .mode = Mode::kSd, .draft_lacks = {1, 4, 6}},
        RejectionSetting{.name = "SdEagle3", .mode = Mode::kSd, .draft = TestedDraft::kEagle3},
        RejectionSetting{.name = "SdEagle3Lacking",
                         .mode = Mode::kSd,
                         .draft_lacks = {1, 4, 6},
                         .draft = TestedDraft::kEagle3},
        RejectionSetting{.name = "SdEagle3Tree",
                         .mode = Mode::kSd,
                         .tree_width = 2,
                         .draft = TestedDraft::kEagle3},
        RejectionSetting{.name = "SsdEagle3", .mode = Mode::kSsd, .draft = TestedDraft::kEagle3},
        RejectionSetting{.name = "SsdEagle3Tree",
                         .mode = Mode::kSsd,
                         .tree_width = 2,
                         .draft = TestedDraft::kEagle3},
        RejectionSetting{.name = "SdPard", .mode = Mode::kSd, .draft = TestedDraft::kPard},
        RejectionSetting{.name = "SdPardLackingTree",
                         .mode = Mode::kSd,
                         .tree_width = 2,
                         .draft_lacks = {1, 4, 6},
                         .draft = TestedDraft::kPard},
        RejectionSetting{.name = "SsdPard", .mode = Mode::kSsd, .draft = TestedDraft::kPard},
        RejectionSetting{.name = "SsdPardTree",
                         .mode = Mode::kSsd,
                         .tree_width = 2,
                         .draft = TestedDraft::kPard},
        RejectionSetting{.name = "SdDflash", .mode = Mode::kSd, .draft = TestedDraft::kDflash},
        RejectionSetting{.name = "SsdDflashTree",
                         .mode = Mode::kSsd,
                         .tree_width = 2,
                         .draft = TestedDraft::kDflash},
        RejectionSetting{.name = "SdDspark", .mode = Mode::kSd, .draft = TestedDraft::kDspark},
        RejectionSetting{.name = "SdDsparkLackingTree",
                         .mode = Mode::kSd,
                         .tree_width = 2,
                         .draft_lacks = {1, 4, 6},
                         .draft = TestedDraft::kDspark},
        RejectionSetting{.name = "SsdDsparkTree",
                         .mode = Mode::kSsd,
                         .tree_width = 2,
                         .draft = TestedDraft::kDspark},
        RejectionSetting{.name = "SdPeagle", .mode = Mode::kSd, .draft = TestedDraft::kPeagle},
        RejectionSetting{.name = "SdPeagleLackingTree",
                         .mode = Mode::kSd,
                         .tree_width = 2,
                         .draft_lacks = {1, 4, 6},
                         .draft = TestedDraft::kPeagle},
        RejectionSetting{.name = "SsdPeagleTree",
                         .mode = Mode::kSsd,
                         .tree_width = 2,
                         .draft = TestedDraft::kPeagle},
        RejectionSetting{.name = "SdMedusa", .mode = Mode::kSd, .draft = TestedDraft::kMedusa},
        RejectionSetting{.name = "SdMedusaTopPTree",
                         .mode = Mode::kSd,
                         .tree_width = 2,
                         .top_p = 0.8F,
                         .draft = TestedDraft::kMedusa},
        RejectionSetting{.name = "SsdMedusaTree",
                         .mode = Mode::kSsd,
                         .tree_width = 2,
                         .draft = TestedDraft::kMedusa},
        RejectionSetting{.name = "SdHydra", .mode = Mode::kSd, .draft = TestedDraft::kHydra},
        RejectionSetting{.name = "SdHydraLackingTree",
                         .mode = Mode::kSd,
                         .tree_width = 2,
                         .draft_lacks = {1, 4, 6},
                         .draft = TestedDraft::kHydra},
        RejectionSetting{.name = "SsdHydraTree",
                         .mode = Mode::kSsd,
                         .tree_width = 2,
                         .draft = TestedDraft::kHydra},
        RejectionSetting{.name = "Jacobi", .mode = {Schedule::kBefore, DrafterId::kJacobi}},
        RejectionSetting{
            .name = "JacobiTopP", .mode = {Schedule::kBefore, DrafterId::kJacobi}, .top_p = 0.8F},
        RejectionSetting{.name = "Lookahead", .mode = {Schedule::kBefore, DrafterId::kLookahead}},
        RejectionSetting{.name = "Recycle", .mode = {Schedule::kBefore, DrafterId::kRecycle}},
        RejectionSetting{.name = "Racer", .mode = {Schedule::kBefore, DrafterId::kRacer}},
        RejectionSetting{
            .name = "RacerTopP", .mode = {Schedule::kBefore, DrafterId::kRacer}, .top_p = 0.8F},
        RejectionSetting{.name = "SdByText", .mode = Mode::kSd, .draft = TestedDraft::kByText},
        RejectionSetting{.name = "SdByTextTopP",
                         .mode = Mode::kSd,
                         .top_p = 0.8F,
                         .draft = TestedDraft::kByText},
        RejectionSetting{.name = "Ngram", .mode = Mode::kNgram},
        RejectionSetting{.name = "Ssd", .mode = Mode::kSsd},
        RejectionSetting{.name = "SsdSaguaro", .mode = Mode::kSsd, .saguaro_c = 0.3F},
        RejectionSetting{.name = "SsdSaguaroAtZeroTopP",
                         .mode = Mode::kSsd,
                         .saguaro_c = 0,
                         .top_p = 0.9F,
                         .order = CacheOrder::kProbability},
        RejectionSetting{.name = "SsdLacking", .mode = Mode::kSsd, .draft_lacks = {0, 5}},
        RejectionSetting{.name = "SsdNgram", .mode = Mode::kSsd, .fallback = Fallback::kNgram},
        RejectionSetting{.name = "SsdRandom", .mode = Mode::kSsd, .fallback = Fallback::kRandom},
        RejectionSetting{.name = "SsdNoneTree",
                         .mode = Mode::kSsd,
                         .fallback = Fallback::kNone,
                         .saguaro_c = 0.5F,
                         .tree_width = 2}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace foretoken
