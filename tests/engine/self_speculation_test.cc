// Drafts that are the target itself without some of its layers, with its own weights: what they
// compute, whose memory they use, and that every mode emits the tokens of AR with them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "base/files/temporary_testing.h"
#include "core/model/model_testing.h"
#include "core/weights/weights_testing.h"
#include "door/assembly/fit_draft.h"
#include "door/assembly/open_draft.h"
#include "json/json.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;

constexpr int kLayers = 6;  // The bundled target's.

std::string ReadBundled(const char* file) {
  std::ifstream stream(BundledModel("demo-target") + "/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The number of the layer that a tensor is of, and what follows it in the name; -1 of others.
std::pair<int, std::string> LayerOf(const std::string& name) {
  constexpr std::string_view kStem = "model.layers.";
  if (!name.starts_with(kStem)) return {-1, ""};
  const std::string rest = name.substr(kStem.size());
  return {std::stoi(rest), rest.substr(rest.find('.'))};
}

// A file with the bundled target's tensors, called as `name_of` says; those that are called "" are
// left out, and those of `zeroed` are zeros.
std::string BundledTensors(const std::function<std::string(const std::string&)>& name_of,
                           const std::vector<std::string>& zeroed = {}) {
  const std::string file = ReadBundled("model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  Json kept;
  std::string data;
  const auto header = Json::Parse(file.substr(8, length));
  for (const auto& [name, entry] : header.items()) {
    const std::string called = name == "__metadata__" ? "" : name_of(name);
    if (called.empty()) continue;
    const std::array<std::size_t, 2> place = entry["data_offsets"];
    std::string bytes = file.substr(8 + length + place[0], place[1] - place[0]);
    if (std::ranges::find(zeroed, name) != zeroed.end()) bytes.assign(bytes.size(), '\0');
    kept[called] = {{"dtype", entry["dtype"]},
                    {"shape", entry["shape"]},
                    {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data += bytes;
  }
  return FrameSafetensors(kept.dump(), data);
}

// A folder with some of the bundled target's layers, in this order, in which tensors whose names
// `zeroed` has are zeros.
class TargetVariant {
 public:
  explicit TargetVariant(const std::vector<int>& layers,
                         const std::vector<std::string>& zeroed = {}) {
    auto config = Json::Parse(ReadBundled("config.json"));
    config["num_hidden_layers"] = layers.size();
    folder_.Write("config.json", config.dump());
    for (const char* file : {"tokenizer_config.json", "tokenizer.model"}) {
      folder_.Write(file, ReadBundled(file));
    }
    const auto name_of = [&](const std::string& name) -> std::string {
      const auto [layer, rest] = LayerOf(name);
      if (layer < 0) return name;
      const auto found = std::ranges::find(layers, layer);
      if (found == layers.end()) return "";
      return "model.layers." + std::to_string(found - layers.begin()) + rest;
    };
    folder_.Write("model.safetensors", BundledTensors(name_of, zeroed));
  }

  std::string path() const { return folder_.path().string(); }

 private:
  TemporaryFolder folder_;
};

std::vector<int> FirstLayers(int count) {
  std::vector<int> layers(count);
  std::iota(layers.begin(), layers.end(), 0);
  return layers;
}

// An exit behind `exit` layers whose own is the bundled target's layer number `own`.
void WriteExit(const TemporaryFolder& folder, int exit, int own, int hidden = 256) {
  const Json config = {{"model_type", "exit"}, {"exit", exit}, {"hidden_size", hidden}};
  folder.Write("config.json", config.dump());
  folder.Write("model.safetensors", BundledTensors([&](const std::string& name) -> std::string {
                 if (name == "model.norm.weight") return name;
                 const auto [layer, rest] = LayerOf(name);
                 return layer == own ? "model.layers." + std::to_string(exit) + rest : "";
               }));
}

std::unique_ptr<LoadedModel> LoadOnTarget(const ModelSource& source) {
  auto loaded = LoadModel(source, BundledTarget()->device, Precision::kBF16);
  EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message);
  return std::move(loaded).value();
}

std::vector<float> RunnerLogits(Model* model) {
  const std::vector<Token> tokens = RandomTokens(70, model->config().vocabulary);
  SequenceRunner runner(model, 80);
  std::vector<float> logits;
  for (const std::size_t count : {40, 1, 29}) {  // Later rows read what the first have kept, too.
    const float* const made = runner.Append(std::span(tokens).first(count));
    logits.insert(logits.end(), made, made + count * model->config().vocabulary);
  }
  return logits;
}

// Packed from the files, and with the target's own weights.
void ExpectLogits(const ModelSource& self, const std::vector<float>& expected) {
  EXPECT_EQ(RunnerLogits(LoadOnTarget(self)->model.get()), expected) << self.own_drafter;
  const LoadedModel& target = *BundledTarget();
  const auto opened = OpenModel(self);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const auto shared = SharedWeights(*opened, Precision::kBF16, target);
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(RunnerLogits(shared->MakeModel(target.backend.get()).get()), expected)
      << self.own_drafter;
  EXPECT_LT(shared->MakeModel(target.backend.get())->weight_bytes(), target.model->weight_bytes());
}

TEST(SelfDraft, AnEarlyExitIsAModelOfFewerLayers) {
  for (const int exit : {1, 3, 5}) {
    const TargetVariant shorter(FirstLayers(exit));
    ExpectLogits(SelfSource("exit=" + std::to_string(exit)),
                 RunnerLogits(LoadOnTarget({.path = shorter.path()})->model.get()));
  }
}

TEST(SelfDraft, ASkippedSublayerIsOneThatAddsNothing) {
  const TargetVariant zeroed(
      FirstLayers(kLayers),
      {"model.layers.2.self_attn.o_proj.weight", "model.layers.3.self_attn.o_proj.weight",
       "model.layers.3.mlp.down_proj.weight", "model.layers.4.mlp.down_proj.weight"});
  ExpectLogits(SelfSource("skip=a2-a3,m3-m4"),
               RunnerLogits(LoadOnTarget({.path = zeroed.path()})->model.get()));
}

TEST(SelfDraft, ATrainedExitStandsBehindTheFirstLayers) {
  const TemporaryFolder exit;
  WriteExit(exit, /*exit=*/2, /*own=*/5);
  const ModelSource self = SelfSource("exit=" + exit.path().string());
  const TargetVariant expected({0, 1, 5});
  EXPECT_EQ(RunnerLogits(LoadOnTarget(self)->model.get()),
            RunnerLogits(LoadOnTarget({.path = expected.path()})->model.get()));
  const auto opened = OpenModel(self);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(SharedWeights(*opened, Precision::kBF16, *BundledTarget()), nullptr);
  EXPECT_NE(opened->identity, OpenModel(SelfSource("exit=3"))->identity);

  const auto refusal = [&] {
    const auto refused = OpenModel(self);
    return refused.ok() ? std::string("opened") : refused.error().message;
  };
  EXPECT_EQ(refusal(), "opened");
  WriteExit(exit, 2, 5, /*hidden=*/128);
  EXPECT_THAT(refusal(), HasSubstr("was trained for a model of width 128, and this one's is 256"));
  WriteExit(exit, 5, 5);
  EXPECT_THAT(refusal(), HasSubstr("saves nothing of a model of 6 layers"));
  WriteExit(exit, 2, 5);
  exit.Write("model.safetensors", BundledTensors([](const std::string& name) { return name; }));
  EXPECT_THAT(refusal(), HasSubstr("which is none of the model's layer 2"));
  exit.Write("model.safetensors", BundledTensors([](const std::string& name) -> std::string {
               return name == "model.norm.weight" ? name : "";
             }));
  EXPECT_THAT(refusal(), HasSubstr("lacks tensor 'model.layers.2."));
  exit.Write("config.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("model_type"));
}

TEST(SelfDraft, SharesTheWeightsOfItsTargetOnly) {
  const LoadedModel& target = *BundledTarget();
  const auto shares = [&](const ModelSource& source, Precision precision = Precision::kBF16) {
    const auto opened = OpenDraftFor(
        {.config = target.model->config(), .tokenizer = target.tokenizer, .path = target.path},
        source, /*by_text=*/{});
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
    return SharedWeights(*opened, precision, target) != nullptr;
  };
  EXPECT_TRUE(shares(SelfSource("exit=2")));
  EXPECT_TRUE(shares(SelfSource("")));  // The whole target, as a draft with a window would be.
  EXPECT_FALSE(shares(SelfSource("exit=2"), Precision::kF32));
  EXPECT_FALSE(shares({.path = BundledModel("demo-draft")}));
  ModelSource converted = SelfSource("exit=2");
  converted.weights = "q8_0";
  EXPECT_FALSE(shares(converted));
}

TEST(SelfDraft, RefusesWhatTheTargetHasNot) {
  const auto refusal = [](const std::string& own) {
    const auto opened = OpenModel(SelfSource(own));
    return opened.ok() ? std::string("opened") : opened.error().message;
  };
  EXPECT_EQ(refusal("exit=2"), "opened");
  EXPECT_THAT(refusal("exit=6"), HasSubstr("the model has 6, so a draft of its first ones has"));
  EXPECT_THAT(refusal("exit=0"), HasSubstr("from 1 to 5"));
  EXPECT_THAT(refusal("skip=a6"), HasSubstr("the model has layers 0 to 5"));
  EXPECT_THAT(refusal("skip=a0-a5"), HasSubstr("leave fewer out"));

  DraftOptions random;
  random.source = {.synthetic = "draft-12m", .own_drafter = "exit=2"};
  random.cores = BundledDraft().cores;
  random.process = true;
  const auto device = std::make_shared<Device>(CoreSet{TargetCore()});
  const auto target = LoadModel({.synthetic = "draft-12m"}, device, Precision::kBF16);
  ASSERT_TRUE(target.ok());
  const auto engine = MakeEngine(Mode::kSsd, {.max_batch = 1}, target->get(), random);
  EXPECT_THAT(engine.error().message, HasSubstr("draft in a thread"));
}

struct SelfCase {
  std::string name;
  ModelSource source = {};
  std::optional<DraftWindow> window = {};
};

void PrintTo(const SelfCase& test, std::ostream* out) { *out << test.name; }

class SelfSpeculation : public testing::TestWithParam<SelfCase> {
 protected:
  struct Run {
    std::vector<std::vector<Token>> tokens;
    std::int64_t accepted = 0;
  };

  static Run Decode(Mode mode, EngineConfig config, const SamplingParams& sampling) {
    DraftOptions draft = BundledDraft();
    if (!GetParam().source.path.empty()) draft.source = GetParam().source;
    draft.window = GetParam().window;
    // Also as a further draft.
    std::vector<DraftOptions> drafts(DraftIndexOf(mode) + 1, BundledDraft());
    drafts.back() = draft;
    const auto engine = MakeEngine(std::span(&mode, 1), config, BundledTarget(), drafts);
    EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
    Run run;
    for (const auto& output : Generate(**engine, StoryPrompts(), sampling, {.max_tokens = 40})) {
      run.tokens.push_back(output.tokens);
      run.accepted += output.stats.accepted;
    }
    return run;
  }

 private:
  static std::size_t DraftIndexOf(Mode mode) {
    return mode.drafts() && NeedsDraft(mode) ? DraftIndex(mode.drafter) : 0;
  }
};

TEST_P(SelfSpeculation, EveryModeEmitsTheTokensOfAr) {
  constexpr Mode kSd3{Schedule::kBefore, DrafterId::kModel3};
  const EngineConfig chain{.plan = {.lookahead = 4}, .max_batch = 3};
  const EngineConfig tree{.plan = {.lookahead = 5, .tree_width = 3, .max_nodes = 16},
                          .max_batch = 2};
  const SamplingParams sampling{.temperature = 0.8F, .seed = 7};
  const Run truth = Decode(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, sampling);
  for (const Mode mode : {Mode::kSd, kSd2, kSd3, Mode::kSsd, Mode::kAuto}) {
    const Run run = Decode(mode, chain, sampling);
    EXPECT_EQ(run.tokens, truth.tokens) << ModeName(mode);
    if (mode.before()) {
      EXPECT_GT(run.accepted, 0) << ModeName(mode);
    }
  }
  for (const Mode mode : {Mode::kSd, Mode::kSsd}) {
    EXPECT_EQ(Decode(mode, tree, sampling).tokens, truth.tokens) << ModeName(mode) << ", tree";
  }
}

// At T = 0 rejection is equality with the target's choice.
TEST_P(SelfSpeculation, RejectionEmitsTheTokensOfArAtZero) {
  const Run truth = Decode(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, {});
  EngineConfig config{.plan = {.lookahead = 4}, .max_batch = 2};
  config.verification = Verification::kRejection;
  for (const Mode mode : {Mode::kSd, Mode::kSsd}) {
    EXPECT_EQ(Decode(mode, config, {}).tokens, truth.tokens) << ModeName(mode);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Drafts, SelfSpeculation,
    testing::Values(SelfCase{"Exit2", SelfSource("exit=2")},
                    SelfCase{"Exit5", SelfSource("exit=5")},
                    SelfCase{"Skip", SelfSource("skip=a2,m3,a4")},
                    SelfCase{"WindowOfADraft", {}, DraftWindow{12}},
                    SelfCase{"WindowOfTheTarget", SelfSource(""), DraftWindow{40, 33}},
                    SelfCase{"ExitWithAWindow", SelfSource("exit=4"), DraftWindow{1, 0}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace foretoken
