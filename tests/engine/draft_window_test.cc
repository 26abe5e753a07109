// Drafts that see a window of positions and anchors before it: what they compute, how much they
// keep, and that every mode emits the tokens of AR over texts that are much longer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/draft/model/draft_model.h"
#include "core/model/model_testing.h"
#include "door/assembly/fit_draft.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

TEST(DraftWindow, LimitsWhatAttentionSees) {
  const auto opened = [] { return OpenModel(SelfSource("skip=a2")).value(); };
  const auto limited = LimitWindow({16}, opened());
  ASSERT_TRUE(limited.ok());
  EXPECT_EQ(WindowOf(limited->config), 16);
  EXPECT_EQ(limited->config.layers[2].attention.window, 0);  // There is none.
  EXPECT_EQ(AnchorsOf(limited->config), 4);
  EXPECT_EQ(limited->config.layers[2].attention.anchors, 0);
  // What sees less stays as it is, its anchors too.
  for (const bool wide_first : {false, true}) {
    const DraftWindow wide{16, 5};
    const DraftWindow narrow{8, 3};
    const auto first = LimitWindow(wide_first ? wide : narrow, opened()).value();
    const auto twice = LimitWindow(wide_first ? narrow : wide, first);
    EXPECT_EQ(twice->config.layers[0].attention.window, 8);
    EXPECT_EQ(twice->config.layers[0].attention.anchors, 3);
  }
  EXPECT_NE(limited->identity, opened().identity);
  EXPECT_NE(limited->identity, LimitWindow({16, 5}, opened())->identity);
  EXPECT_THAT(LimitWindow({0}, opened()).error().message, HasSubstr("at least 1"));
  EXPECT_THAT(LimitWindow({8, -1}, opened()).error().message, HasSubstr("must be 0 or more"));
  OpenedModel heads = opened();
  heads.config.layers.clear();
  EXPECT_THAT(LimitWindow({8}, heads).error().message, HasSubstr("has no attention"));
}

// The bundled draft in plain loops, of all positions of a text at once, where each row sees the
// positions that a mask leaves it.
class MaskedDraft {
 public:
  explicit MaskedDraft(const ModelConfig& config)
      : config_(config), files_(Checkpoint::Open(BundledModel("demo-draft")).value()) {}

  /// Logits of every position.
  std::vector<float> Logits(const std::vector<Token>& tokens, const DraftWindow& window) {
    const std::vector<float> table = Tensor("model.embed_tokens.weight");
    const std::size_t hidden = config_.hidden;
    Rows x;
    for (const Token token : tokens) {
      const auto row = table.begin() + std::int64_t{token} * config_.hidden;
      x.emplace_back(row, row + config_.hidden);
    }
    for (int i = 0; i < config_.layer_count(); ++i) Layer(i, window, &x);
    std::vector<float> logits;
    for (const Row& row : Normed("model.norm", x)) {
      for (std::size_t token = 0; token < table.size() / hidden; ++token) {
        double sum = 0;
        for (std::size_t d = 0; d < hidden; ++d) sum += row[d] * double{table[token * hidden + d]};
        logits.push_back(static_cast<float>(sum));
      }
    }
    return logits;
  }

 private:
  using Row = std::vector<double>;
  using Rows = std::vector<Row>;

  std::vector<float> Tensor(const std::string& name) const {
    const TensorView& view = files_.tensors.at(name);
    std::vector<float> values(view.elements());
    LoadElements(view, 0, view.elements(), values.data());
    return values;
  }

  Rows Normed(const std::string& name, const Rows& x) const {
    const std::vector<float> gain = Tensor(name + ".weight");
    Rows normed = x;
    for (Row& row : normed) {
      double squares = 0;
      for (const double value : row) squares += value * value;
      const double size = static_cast<double>(row.size());
      const double factor = 1 / std::sqrt(squares / size + double{config_.norm.epsilon});
      for (std::size_t d = 0; d < row.size(); ++d) row[d] *= factor * double{gain[d]};
    }
    return normed;
  }

  Rows Product(const std::string& name, const Rows& x) const {
    const std::vector<float> weights = Tensor(name + ".weight");
    Rows y;
    for (const Row& row : x) {
      Row& out = y.emplace_back(weights.size() / row.size());
      for (std::size_t i = 0; i < weights.size(); ++i) {
        out[i / row.size()] += double{weights[i]} * row[i % row.size()];
      }
    }
    return y;
  }

  void Layer(int index, const DraftWindow& window, Rows* x) const {
    const std::string name = "model.layers." + std::to_string(index) + ".";
    const Rows attended =
        Attended(name + "self_attn.", window, Normed(name + "input_layernorm", *x));
    AddTo(Product(name + "self_attn.o_proj", attended), x);
    const Rows normed = Normed(name + "post_attention_layernorm", *x);
    Rows gates = Product(name + "mlp.gate_proj", normed);
    const Rows up = Product(name + "mlp.up_proj", normed);
    for (std::size_t p = 0; p < gates.size(); ++p) {
      for (std::size_t d = 0; d < gates[p].size(); ++d) {
        gates[p][d] *= up[p][d] / (1 + std::exp(-gates[p][d]));
      }
    }
    AddTo(Product(name + "mlp.down_proj", gates), x);
  }

  Rows Attended(const std::string& name, const DraftWindow& window, const Rows& x) const {
    const AttentionSpec& spec = config_.layers[0].attention;
    const std::size_t dim = spec.head_dim;
    Rows q = Product(name + "q_proj", x);
    Rows k = Product(name + "k_proj", x);
    const Rows v = Product(name + "v_proj", x);
    for (std::size_t p = 0; p < x.size(); ++p) {
      Rotate(p, dim, &q[p]);
      Rotate(p, dim, &k[p]);
    }
    Rows out;
    for (std::size_t row = 0; row < x.size(); ++row) {
      Row& sum = out.emplace_back(q[row].size());
      for (std::size_t head = 0; head < q[row].size(); head += dim) {
        const std::size_t group = spec.heads / spec.kv_heads;
        const std::size_t kept = head / dim / group * dim;
        double total = 0;
        for (std::size_t p = 0; p <= row; ++p) {
          // The mask.
          if (std::cmp_greater_equal(p, window.anchors) &&
              std::cmp_less_equal(p + window.positions, row)) {
            continue;
          }
          double score = 0;
          for (std::size_t d = 0; d < dim; ++d) score += q[row][head + d] * k[p][kept + d];
          const double weight = std::exp(spec.scale * score);
          total += weight;
          for (std::size_t d = 0; d < dim; ++d) sum[head + d] += weight * v[p][kept + d];
        }
        for (std::size_t d = 0; d < dim; ++d) sum[head + d] /= total;
      }
    }
    return out;
  }

  // By the positions of the text, whatever is left out.
  void Rotate(std::size_t position, std::size_t dim, Row* row) const {
    const double theta = config_.ropes[0].theta;
    for (std::size_t head = 0; head < row->size(); head += dim) {
      for (std::size_t i = 0; i < dim / 2; ++i) {
        const double angle =
            static_cast<double>(position) *
            std::pow(theta, -2 * static_cast<double>(i) / static_cast<double>(dim));
        double& low = (*row)[head + i];
        double& high = (*row)[head + i + dim / 2];
        const double before = low;
        low = before * std::cos(angle) - high * std::sin(angle);
        high = high * std::cos(angle) + before * std::sin(angle);
      }
    }
  }

  static void AddTo(const Rows& more, Rows* x) {
    for (std::size_t p = 0; p < more.size(); ++p) {
      for (std::size_t d = 0; d < more[p].size(); ++d) (*x)[p][d] += more[p][d];
    }
  }

  ModelConfig config_;
  Checkpoint files_;
};

// Texts that the target makes of the openings of stories, of so many tokens.
std::vector<std::vector<Token>> Stories(int tokens) {
  const auto engine = MakeEngine(Mode::kAr, {.max_batch = 5}, BundledTarget(), BundledDraft());
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
  auto stories = StoryPrompts();
  const auto more = Generate(**engine, stories, {.temperature = 0.7F, .seed = 3},
                             {.max_tokens = tokens, .ignore_eos = true});
  for (std::size_t i = 0; i < stories.size(); ++i) {
    stories[i].insert(stories[i].end(), more[i].tokens.begin(), more[i].tokens.end());
    stories[i].resize(tokens);
  }
  return stories;
}

TEST(DraftWindow, LogitsAreThoseOfTheMask) {
  const auto device = std::make_shared<Device>(CoreSet{TargetCore()});
  const auto whole = OpenModel({.path = BundledModel("demo-draft")});
  ASSERT_TRUE(whole.ok());
  MaskedDraft masked(whole->config);
  const std::vector<Token> tokens = Stories(100)[0];
  for (const DraftWindow window : {DraftWindow{20, 4}, {20, 0}, {33, 33}, {7, 1}, {100, 0}}) {
    const auto draft =
        LoadModel(LimitWindow(window, *whole).value(), device, Precision::kF32).value();
    SequenceRunner runner(draft->model.get(), 100);
    const float* const logits = runner.Append(tokens);
    const std::vector<float> expected = masked.Logits(tokens, window);
    EXPECT_THAT(std::vector<float>(logits, logits + expected.size()),
                Pointwise(FloatNear(0.01F), expected))
        << window.positions << " and " << window.anchors;
  }
}

// However long the texts that it has room for.
TEST(DraftWindow, KeysAndValuesAreBounded) {
  const auto device = std::make_shared<Device>(CoreSet{TargetCore()});
  const auto backend = device->MakeBackend(Precision::kBF16);
  const auto bytes = [&](int context, const DraftWindow& window) {
    OpenedModel draft = OpenModel({.path = BundledModel("demo-draft")}).value();
    draft.config.max_positions = 8192;
    draft = LimitWindow(window, draft).value();
    const auto model = SyntheticModel(draft.config, 1, backend.get());
    DraftModel made(model.get(), /*max_sequences=*/2, context, /*scratch=*/0);
    return made.kv.store().keys.bytes();
  };
  const std::size_t of_4k = bytes(4096, {128, 4});
  EXPECT_EQ(of_4k, bytes(8000, {128, 4}));
  EXPECT_LT(of_4k, bytes(4096, {2048, 4}) / 2);
  // A block of each sequence more than without anchors.
  const std::size_t block = kBlockSize * 32 * 2 * 2;  // 2 layers with a head of 32 numbers.
  EXPECT_EQ(of_4k, bytes(4096, {128, 0}) + 2 * block);
  EXPECT_EQ(bytes(4096, {128, 33}), of_4k + 2 * block);
}

struct WindowCase {
  std::string name;
  Mode mode;
  EngineConfig config;
  DraftWindow window = {.positions = 20};
  ModelSource draft = {.path = BundledModel("demo-draft")};
};

void PrintTo(const WindowCase& test, std::ostream* out) { *out << test.name; }

class WindowedDraft : public testing::TestWithParam<WindowCase> {
 protected:
  static DraftOptions Windowed(const ModelSource& source) {
    DraftOptions draft = BundledDraft();
    draft.source = source;
    draft.window = GetParam().window;
    return draft;
  }
};

// Prompts of 250 tokens and 120 more, twice, so that the second time prefixes are found.
TEST_P(WindowedDraft, EveryTokenOfALongTextEqualsAr) {
  static const std::vector<std::vector<Token>> prompts = Stories(250);
  const bool rejection = GetParam().config.verification == Verification::kRejection;
  const SamplingParams sampling{.temperature = rejection ? 0.0F : 0.8F, .seed = 7};
  const StopRules stop{.max_tokens = 120, .ignore_eos = true};
  const auto decode = [&](Mode mode, const EngineConfig& config, int times) {
    // Also as a further draft, and as one that another drafts for.
    const std::vector<DraftOptions> drafts = {
        Windowed(GetParam().draft),
        Windowed({.path = BundledModel("demo-target"), .weights = "q4_0"})};
    const auto engine = MakeEngine(std::span(&mode, 1), config, BundledTarget(), drafts);
    EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
    std::vector<Collector::Output> outputs;
    for (int i = 0; i < times; ++i) outputs = Generate(**engine, prompts, sampling, stop);
    return outputs;
  };
  const auto truth = TokensOf(decode(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, 1));
  const auto outputs = decode(GetParam().mode, GetParam().config, 2);
  EXPECT_EQ(TokensOf(outputs), truth);
  std::int64_t accepted = 0;
  int preemptions = 0;
  for (const auto& output : outputs) {
    accepted += output.stats.accepted;
    preemptions += output.stats.preemptions;
  }
  EXPECT_GT(accepted, 0);
  const auto& kv_tokens = GetParam().config.kv_tokens;
  EXPECT_EQ(preemptions > 0, kv_tokens.has_value() && kv_tokens < 5 * 400);
}

EngineConfig WithVerification(EngineConfig config, Verification verification) {
  config.verification = verification;
  return config;
}

INSTANTIATE_TEST_SUITE_P(
    Modes, WindowedDraft,
    testing::Values(
        WindowCase{"Sd", Mode::kSd, {.plan = {.lookahead = 4}, .max_batch = 3}},
        WindowCase{"SdWithoutAnchors", Mode::kSd, {.max_batch = 3}, {20, 0}},
        WindowCase{"SdAnchorsOfTwoBlocks", Mode::kSd, {.max_batch = 3}, {40, 33}},
        WindowCase{
            "SdTree", Mode::kSd, {.plan = {.lookahead = 5, .tree_width = 3, .max_nodes = 16}}},
        WindowCase{
            "SdTinyPool", Mode::kSd, {.max_batch = 5, .max_context = 400, .kv_tokens = 1000}},
        WindowCase{"Ssd", Mode::kSsd, {.plan = {.lookahead = 4}, .max_batch = 3}},
        WindowCase{
            "SsdTree", Mode::kSsd, {.plan = {.lookahead = 5, .tree_width = 3, .max_nodes = 16}}},
        WindowCase{
            "SsdTinyPool", Mode::kSsd, {.max_batch = 5, .max_context = 400, .kv_tokens = 1000}},
        WindowCase{"Sd2", kSd2, {.plan = {.lookahead = 4}, .max_batch = 3}},
        WindowCase{"Staged", kStaged, {.max_batch = 3}},
        WindowCase{"Ensemble", kEnsemble, {.plan = {.speculation_length = 16}, .max_batch = 3}},
        WindowCase{"Exit", Mode::kSd, {.max_batch = 3}, {.positions = 20}, SelfSource("exit=4")},
        WindowCase{
            "ExitDuring", Mode::kSsd, {.max_batch = 3}, {.positions = 20}, SelfSource("exit=4")},
        WindowCase{"Rejection", Mode::kSd,
                   WithVerification({.max_batch = 2}, Verification::kRejection)},
        WindowCase{"RejectionDuring", Mode::kSsd,
                   WithVerification({.max_batch = 2}, Verification::kRejection)}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace foretoken
