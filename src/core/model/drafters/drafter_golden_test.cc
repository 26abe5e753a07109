#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/model/drafters/learned_draft.h"
#include "core/model/drafters/own_drafter.h"
#include "core/model/families/read_config.h"
#include "core/model/golden_testing.h"
#include "core/model/model_testing.h"
#include "core/model/open_checkpoint.h"
#include "json/json.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

fs::path DraftersFolder() { return GoldenFolder() / "drafters"; }

std::vector<std::string> DrafterNames() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(DraftersFolder())) {
    if (entry.path().filename() != "target") names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// What a pass says of the positions behind the token at `begin`, with the features of all before.
struct Block {
  std::int32_t begin = 0;
  std::vector<std::vector<float>> logits;
  std::vector<Token> path;        // The tokens before each of these, where they depend on it.
  std::vector<float> confidence;  // How sure the drafter is of its own token there.
};

struct Node {
  int parent = -1;
  Token token = 0;
  std::vector<float> logits;
};

// What the code of a drafter's authors computes with a small one (tests/golden/README.md): logits
// of all positions, and of a tree of drafts behind some of them.
struct GoldenDrafter {
  explicit GoldenDrafter(const Json& json)
      : target(json.at("target")),
        points(json.at("points")),
        tokens(json.at("token_ids")),
        drafted(json.at("drafted_ids")) {
    for (const auto& row : json.at("taps")) {
      std::vector<BFloat16>& tap = taps.emplace_back();
      for (const auto& number : row) tap.push_back(FloatToBFloat16(number.get<float>()));
    }
    if (json.contains("blocks")) {
      for (const auto& block : json["blocks"]) {
        blocks.push_back({block.at("begin"), block.at("logits"),
                          block.value("path", std::vector<Token>()),
                          block.value("confidence", std::vector<float>())});
      }
      return;
    }
    logits = json.at("logits").get<std::vector<std::vector<float>>>();
    kept = json.at("kept");
    for (const auto& node : json.at("nodes")) {
      nodes.push_back({node.at("parent"), node.at("token"), node.at("logits")});
    }
  }

  std::string target;  // Its folder.
  std::vector<int> points;
  std::vector<Token> tokens;   // The first has no row.
  std::vector<Token> drafted;  // The target's, by the drafter's.
  std::vector<std::vector<BFloat16>> taps;
  std::vector<std::vector<float>> logits;
  int kept = 0;
  std::vector<Node> nodes;
  std::vector<Block> blocks;  // In place of these.
};

class DrafterGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::ifstream file(DraftersFolder() / GetParam() / "golden.json");
    golden_ = std::make_unique<GoldenDrafter>(Json::Parse(file));
    auto target = OpenCheckpoint(GoldenFolder() / golden_->target, "");
    ASSERT_TRUE(target.ok()) << target.error().message;
    target_ = std::move(*target);
    target_config_ = *ReadModelConfig(target_);
  }

  Result<LearnedDraft> Open() {
    const fs::path file = DraftersFolder() / GetParam() / "drafter.gguf";
    FT_ASSIGN_OR_RETURN(Checkpoint files,
                        Checkpoint::Open(fs::exists(file) ? file : file.parent_path()));
    const char* const own = GetParam().starts_with("mtp") ? "mtp" : "";
    return ReadDrafter(own, std::move(files), target_, target_config_);
  }

  // In the target's tokens.
  static std::unique_ptr<Model> Load(const LearnedDraft& draft, Backend* backend) {
    auto weights = LoadWeights(draft.checkpoint, draft.config, backend);
    EXPECT_TRUE(weights.ok()) << weights.error().message;
    if (!weights.ok()) return nullptr;
    auto model = (*weights)->MakeModel(backend);
    return draft.translation ? Translate(std::move(model), draft.translation) : std::move(model);
  }

  std::unique_ptr<GoldenDrafter> golden_;
  Checkpoint target_;
  ModelConfig target_config_;
};

// A drafter's passes over one sequence, whose position p lies in slot p.
class Runner {
 public:
  Runner(const GoldenDrafter& golden, Model* model)
      : golden_(golden), model_(model), kv_(model->backend().AllocateKv(model->KvShapeFor(3))) {}

  // Rows that read what the target has kept.
  void ReadKept(int begin, int end) {
    Start();
    for (int p = begin; p < end; ++p) {
      const std::size_t at = p;
      batch_.rows.push_back({.token = golden_.tokens[at + 1],
                             .place = {p, p, 0, p + 1, 0},
                             .wants_state = true,
                             .feature = {.kept = golden_.taps[at].data()}});
    }
    const float* logits = Forward();
    for (int p = begin; p < end; ++p) {
      Compare(logits, p - begin, golden_.logits[p]);
    }
    left_ = StateOf(end - 1 - begin);
  }

  // Rows with the features of positions, and behind them masks without any.
  void DraftMasks(int kept, const Block& block) {
    Start();
    for (int p = kept; p < block.begin; ++p) {
      const std::size_t at = p;
      batch_.rows.push_back({.token = golden_.tokens[at + 1],
                             .place = {p, p, 0, p + 1, 0},
                             .wants_logits = p + 1 == block.begin,
                             .feature = {.kept = golden_.taps[at].data()}});
    }
    const int depths = std::ssize(block.logits);
    for (std::int32_t p = block.begin; p + 1 < block.begin + depths; ++p) {
      batch_.rows.push_back(
          {.token = model_->config().parallel.mask_token, .place = {p, p, 0, p + 1, 0}});
    }
    const float* logits = Forward();
    for (int depth = 0; depth < depths; ++depth) {
      Compare(logits, depth, block.logits[depth]);
    }
  }

  // The features of positions, and a pass over a block behind them, which leaves nothing.
  void DraftBlock(int kept, const Block& block) {
    Start();
    for (int p = kept; p < block.begin; ++p) {
      const std::size_t at = p;
      batch_.rows.push_back({.token = golden_.tokens[at],
                             .place = {p, p, 0, p + 1, 0},
                             .wants_logits = false,
                             .feature = {.kept = golden_.taps[at].data()}});
    }
    const ParallelSpec& spec = model_->config().parallel;
    const int depths = std::ssize(block.logits);
    ASSERT_EQ(spec.positions, depths);
    for (int row = 0; row < spec.block; ++row) {
      const std::int32_t p = block.begin + row;
      const Token token = golden_.tokens[block.begin];
      const bool read = model_->config().feature.head_for_each_row();
      const std::int32_t before = block.begin - 1;
      const std::int32_t at = read ? before : p;
      const auto& tap = golden_.taps[before];
      batch_.rows.push_back({.token = row == 0 ? token : spec.mask_token,
                             .place = {at, at, 0, at + 1, 0},
                             .wants_logits = spec.Says(row, depths),
                             .feature = {.kept = read ? tap.data() : nullptr},
                             .block_left = spec.block - 1 - row});
    }
    const float* logits = Forward();
    if (!block.path.empty()) return CompareFollowed(block);
    for (int depth = 0; depth < depths; ++depth) {
      Compare(logits, depth, block.logits[depth]);
    }
  }

  // All positions together and each by itself, beside one of another path.
  void CompareFollowed(const Block& block) const {
    std::vector<PathRow> rows;
    for (const Token token : block.path) {
      PathRow row = rows.empty() ? PathRow{} : rows.back();
      row.path.push_back(token);
      rows.push_back(row);
    }
    CompareAll(model_->Follow(rows), block);
    const PathLogits together = model_->Follow(rows);
    const std::int64_t vocabulary = model_->config().vocabulary;
    const std::vector<float> all(together.logits.values,
                                 together.logits.values + std::ssize(rows) * vocabulary);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      PathRow other = rows[i];
      other.path[0] = other.path[0] == 0 ? 1 : 0;
      const std::vector<PathRow> pair = {other, rows[i]};
      const float* alone = model_->Follow(pair).logits.Row(1, vocabulary).values;
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(i) * vocabulary;
      EXPECT_TRUE(std::equal(alone, alone + vocabulary, begin)) << "depth " << i;
    }
  }
  void CompareAll(const PathLogits& said, const Block& block) const {
    for (int depth = 0; depth < std::ssize(block.logits); ++depth) {
      Compare(said.logits.values, depth, block.logits[depth]);
    }
    EXPECT_EQ(said.confidence != nullptr, !block.confidence.empty());
    for (std::size_t i = 0; i < block.confidence.size(); ++i) {
      EXPECT_NEAR(said.confidence[i], block.confidence[i], kGoldenTolerance) << "depth " << i;
    }
  }

  // The nodes of a tree level by level, or those that follow one another on one path.
  void DraftTree() {
    std::vector<int> level = Children(-1);
    while (!level.empty()) {
      Start();
      std::vector<int> next;
      for (const int node : level) {
        const std::vector<int> path = PathTo(node);
        const auto depth = static_cast<std::int32_t>(path.size());
        const auto begin = static_cast<std::int32_t>(batch_.tail_slots.size());
        for (const int each : path) batch_.tail_slots.push_back(kTreeSlots + each);
        batch_.rows.push_back(
            RowOf(node, {golden_.kept + depth - 1, kTreeSlots + node, 0, golden_.kept, begin}));
        std::ranges::copy(Children(node), std::back_inserter(next));
      }
      CompareNodes(level);
      level = next;
    }
  }
  void DraftChain() {
    int position = golden_.kept;
    for (std::vector<int> next = Children(-1); !next.empty(); next = Children(next[0])) {
      next.resize(1);
      Start();
      batch_.rows.push_back(RowOf(next[0], {position, position, 0, position + 1, 0}));
      CompareNodes(next);
      ++position;
    }
  }

 private:
  static constexpr std::int32_t kTreeSlots = 2 * kBlockSize;

  void Start() {
    batch_.Clear();
    batch_.block_tables.push_back(blocks_);
  }
  const float* Forward() { return model_->Forward(batch_, kv_).values; }
  std::vector<float> StateOf(int row) const {
    const int hidden = model_->config().hidden;
    const float* state = model_->states() + std::ptrdiff_t{row} * hidden;
    return {state, state + hidden};
  }
  std::vector<int> Children(int parent) const {
    std::vector<int> children;
    for (int node = 0; node < std::ssize(golden_.nodes); ++node) {
      if (NodeAt(node).parent == parent) children.push_back(node);
    }
    return children;
  }
  std::vector<int> PathTo(int node) const {
    std::vector<int> path;
    for (; node >= 0; node = NodeAt(node).parent) path.insert(path.begin(), node);
    return path;
  }
  const Node& NodeAt(int node) const { return golden_.nodes[node]; }

  ForwardRow RowOf(int node, const RowPlace& place) {
    const int parent = NodeAt(node).parent;
    const std::vector<float>& left = parent < 0 ? left_ : node_left_[parent];
    std::vector<Token> path = {golden_.tokens[golden_.kept]};
    for (const int each : PathTo(parent)) path.push_back(NodeAt(each).token);
    return {.token = NodeAt(node).token,
            .place = place,
            .wants_state = true,
            .feature = {.left = left.data()},
            .path = batch_.AddPath(path)};
  }
  void CompareNodes(const std::vector<int>& nodes) {
    const float* logits = Forward();
    for (int row = 0; row < std::ssize(nodes); ++row) {
      const int node = nodes[row];
      Compare(logits, row, NodeAt(node).logits);
      node_left_[node] = StateOf(row);
    }
  }
  void Compare(const float* logits, int row, const std::vector<float>& expected) const {
    const int vocabulary = model_->config().vocabulary;
    const float* of_row = logits + std::ptrdiff_t{row} * vocabulary;
    std::vector<float> said;
    for (const Token token : golden_.drafted) said.push_back(of_row[token]);
    EXPECT_LT(Apart(said, expected), kGoldenTolerance) << "row " << row;
    const auto others =
        std::count_if(of_row, of_row + vocabulary, [](float logit) { return std::isinf(logit); });
    EXPECT_EQ(others, vocabulary - std::ssize(said));
  }

  const GoldenDrafter& golden_;
  Model* model_;
  KvStore kv_;
  std::int32_t blocks_[1] = {0};
  ForwardBatch batch_;
  std::vector<float> left_;
  std::map<int, std::vector<float>> node_left_;
};

TEST_P(DrafterGoldenTest, LogitsAgreeInPrefillChainTreeAndBehindThem) {
  auto draft = Open();
  ASSERT_TRUE(draft.ok()) << draft.error().message;
  EXPECT_EQ(draft->config.feature.points, golden_->points);
  for (const BackendCase& each : BackendCases()) {
    SCOPED_TRACE(each.name);
    const auto backend = each.make(Precision::kF32);
    const auto model = Load(*draft, backend.get());
    ASSERT_NE(model, nullptr);
    Runner runner(*golden_, model.get());
    int before = 0;
    for (const Block& block : golden_->blocks) {
      SCOPED_TRACE(block.begin);
      if (draft->config.feature.masked) {
        runner.DraftMasks(before, block);
      } else {
        runner.DraftBlock(before, block);
      }
      before = block.begin;
    }
    if (before > 0) continue;
    runner.ReadKept(0, golden_->kept);
    runner.DraftTree();
    runner.DraftChain();
    // What was drafted is forgotten: true features replace what drafts have left.
    const int half = (golden_->kept + static_cast<int>(std::ssize(golden_->taps))) / 2;
    runner.ReadKept(golden_->kept, half);
    runner.ReadKept(half, static_cast<int>(std::ssize(golden_->taps)));
  }
}

// What passes of the target keep is what its authors' code gives a drafter.
TEST_P(DrafterGoldenTest, TheTargetKeepsWhatTheDrafterReads) {
  const auto backend = MakeCpuBackend(*AvailableKernels().back(), nullptr, Precision::kF32);
  auto weights = LoadWeights(target_, target_config_, backend.get());
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  const auto model = (*weights)->MakeModel(backend.get());
  KvShape shape = model->KvShapeFor(1);
  shape.taps = {.points = golden_->points, .hidden = target_config_.hidden};
  KvStore kv = backend->AllocateKv(shape);
  const std::int32_t block = 0;
  ForwardBatch batch;
  batch.block_tables.push_back(&block);
  for (std::int32_t p = 0; p < std::ssize(golden_->taps); ++p) {
    batch.rows.push_back({.token = golden_->tokens[p], .place = {p, p, 0, p + 1, 0}});
  }
  model->Forward(batch, kv);
  for (std::int32_t p = 0; p < std::ssize(golden_->taps); ++p) {
    std::vector<float> kept;
    std::vector<float> expected;
    for (const BFloat16 number : golden_->taps[p]) {
      kept.push_back(BFloat16ToFloat(kv.taps.Row(p)[kept.size()]));
      expected.push_back(BFloat16ToFloat(number));
    }
    EXPECT_LT(Apart(kept, expected), 1.0F / 256) << "position " << p;  // One step of BF16.
  }
}

INSTANTIATE_TEST_SUITE_P(Drafters, DrafterGoldenTest, testing::ValuesIn(DrafterNames()),
                         [](const auto& test) { return TestName(test.param); });

}  // namespace
}  // namespace foretoken
