#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/numbers/integers.h"
#include "base/threads/thread_pool.h"
#include "core/backend/conformance_testing.h"
#include "core/backend/delta/delta_walk.h"

namespace foretoken {
namespace {

class DeltaRuleTest : public BackendTest {};

INSTANTIATE_TEST_SUITE_P(All, DeltaRuleTest, testing::ValuesIn(Subjects()),
                         [](const auto& param) { return param.param.Name(); });

constexpr DeltaShape kDeltaShapes[] = {
    {.key_heads = 2, .value_heads = 4, .key_dim = 8, .value_dim = 16, .taps = 4},
    {.key_heads = 1, .value_heads = 1, .key_dim = 5, .value_dim = 7, .taps = 1},
    {.key_heads = 3, .value_heads = 3, .key_dim = 20, .value_dim = 52, .taps = 3},
    {.key_heads = 2,
     .value_heads = 6,
     .key_dim = 4,
     .value_dim = 33,
     .taps = 2,
     .keys_in_turns = true}};
constexpr int kLayer = 1;
constexpr int kLayers = 2;
constexpr int kBlocks = 12;

struct Learned {
  explicit Learned(const DeltaShape& shape)
      : taps(Random(Size(shape.taps * shape.conv_width()), 1, 0.5F)),
        rates(Random(Size(shape.value_heads), 2)),
        biases(Random(Size(shape.value_heads), 3)) {
    for (float& rate : rates) rate = 0.05F + 0.3F * std::fabs(rate);
  }
  DeltaWeights weights() const { return {taps.data(), rates.data(), biases.data()}; }

  std::vector<float> taps;
  std::vector<float> rates;
  std::vector<float> biases;
};

// One sequence on a backend: the path to each of its rows is a list of nodes, whose inputs are
// random and whose outputs are noted.
class Decoding {
 public:
  Decoding(Backend* backend, const DeltaShape& shape, std::vector<std::int32_t> table)
      : backend_(backend),
        shape_(shape),
        learned_(shape),
        table_(std::move(table)),
        kv_(backend->AllocateKv({.blocks = kBlocks, .delta = shape, .delta_layers = kLayers})) {}

  // A row of a node, whose number is the seed of its inputs.
  struct Row {
    std::uint32_t node;
    RowPlace place;
  };
  std::int32_t SlotOf(std::int32_t position) const {
    return table_[position / kBlockSize] * kBlockSize + position % kBlockSize;
  }
  RowPlace OnTrunk(std::int32_t position) const {
    return {position, SlotOf(position), 0, position + 1, 0};
  }

  // The outputs of each row.
  std::vector<std::vector<float>> Pass(const std::vector<Row>& rows,
                                       std::vector<std::int32_t> tails = {}) {
    std::vector<float> x;
    std::vector<RowPlace> places;
    for (const Row& row : rows) {
      const auto own = Random(Size(shape_.row_width()), row.node);
      x.insert(x.end(), own.begin(), own.end());
      places.push_back(row.place);
    }
    const auto width = Size(2 * shape_.value_width());
    std::vector<float> out(rows.size() * width);
    const std::int32_t* tables[] = {table_.data()};
    backend_->DeltaRule({places, tables, tails}, learned_.weights(), kLayer, x.data(), kv_,
                        out.data());
    std::vector<std::vector<float>> each;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      each.emplace_back(out.begin() + static_cast<std::ptrdiff_t>(row * width),
                        out.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
    }
    return each;
  }
  void Move(const std::vector<KvMove>& moves) { backend_->CopyKv(kv_, moves); }

 private:
  Backend* backend_;
  DeltaShape shape_;
  Learned learned_;
  std::vector<std::int32_t> table_;
  KvStore kv_;
};

std::vector<std::int32_t> Shuffled(std::uint32_t seed) {
  std::vector<std::int32_t> table(kBlocks);
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), std::mt19937(seed));
  return table;
}

// One position after the other.
std::vector<std::vector<float>> Alone(Backend* backend, const DeltaShape& shape,
                                      const std::vector<std::uint32_t>& nodes) {
  Decoding decoding(backend, shape, Shuffled(0));
  std::vector<std::vector<float>> outputs;
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    const auto place = decoding.OnTrunk(static_cast<std::int32_t>(p));
    outputs.push_back(decoding.Pass({{nodes[p], place}}).front());
  }
  return outputs;
}

TEST_P(DeltaRuleTest, AgreesWithTheReference) {
  const auto backend = Make();
  const auto reference = Reference();
  for (const DeltaShape& shape : kDeltaShapes) {
    std::vector<std::uint32_t> nodes(70);
    std::iota(nodes.begin(), nodes.end(), 100);
    const auto outputs = Alone(backend.get(), shape, nodes);
    const auto expected = Alone(reference.get(), shape, nodes);
    for (std::size_t p = 0; p < nodes.size(); ++p) {
      ASSERT_THAT(outputs[p], testing::Pointwise(NearBy(Tolerance(2e-4F)), expected[p]));
    }
  }
}

// Prompts in parts, chains and trees of which some nodes are kept: whatever was computed on the
// way, a row has the bits that it has alone.
TEST_P(DeltaRuleTest, ARowHasTheSameBitsOnEveryWayToIt) {
  ThreadPool pool(AvailableCores());
  const auto backend = Make(&pool);
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    const DeltaShape& shape = kDeltaShapes[seed % std::size(kDeltaShapes)];
    Decoding decoding(backend.get(), shape, Shuffled(seed));
    std::mt19937 random(seed);
    std::uint32_t next_node = 1000;
    std::vector<std::uint32_t> committed;
    std::vector<std::vector<float>> outputs;
    while (committed.size() < 200) {
      // Committed rows, then a tree whose node i hangs below node parents[i] and lies i behind the
      // root, the last of them.
      const auto begin = static_cast<std::int32_t>(committed.size());
      const int prompt = random() % 4 == 0 ? static_cast<int>(random() % 60) + 1 : 1;
      std::vector<Decoding::Row> rows;
      for (int i = 0; i < prompt; ++i) rows.push_back({next_node++, decoding.OnTrunk(begin + i)});
      const std::int32_t root = begin + prompt - 1;
      const int nodes = random() % 12;
      const bool chain = random() % 2 == 0;
      std::vector<int> parents = {-1};
      std::vector<std::int32_t> tails;
      int on_trunk = 0;
      for (int node = 1; node <= nodes; ++node) {
        parents.push_back(chain ? node - 1 : static_cast<int>(random() % node));
        std::vector<std::int32_t> path;
        for (int at = node; at > 0; at = parents[at]) {
          path.insert(path.begin(), decoding.SlotOf(root + at));
        }
        const std::int32_t position = root + static_cast<std::int32_t>(path.size());
        const bool trunk = on_trunk == node - 1 && parents.back() == node - 1;
        if (trunk) on_trunk = node;
        RowPlace place = decoding.OnTrunk(position);
        if (!trunk) {
          place = {position, path.back(), 0, root + 1, static_cast<std::int32_t>(tails.size())};
          tails.insert(tails.end(), path.begin(), path.end());
        }
        rows.push_back({next_node++, place});
      }
      const auto results = decoding.Pass(rows, tails);
      for (int i = 0; i < prompt; ++i) {
        committed.push_back(rows[i].node);
        outputs.push_back(results[i]);
      }
      // A walk from the root that ends somewhere.
      std::vector<KvMove> moves;
      for (int node = 0, child = 1; child <= nodes; ++child) {
        if (parents[child] != node || random() % 3 == 0) continue;
        node = child;
        const auto end = static_cast<std::int32_t>(committed.size());
        moves.push_back({decoding.SlotOf(root + child), decoding.SlotOf(end)});
        const std::size_t row = prompt - 1 + child;
        committed.push_back(rows[row].node);
        outputs.push_back(results[row]);
      }
      decoding.Move(moves);
    }
    const auto alone = Alone(backend.get(), shape, committed);
    for (std::size_t p = 0; p < committed.size(); ++p) {
      ASSERT_TRUE(SameBits(outputs[p].data(), alone[p].data(), outputs[p].size()))
          << "position " << p << ", seed " << seed;
    }
  }
}

// What the rule is, in float64 and without a convolution's gate to hide behind.
TEST(DeltaRule, IsWhatItIsCalled) {
  constexpr DeltaShape kShape = {
      .key_heads = 1, .value_heads = 2, .key_dim = 3, .value_dim = 2, .taps = 2};
  const Learned learned(kShape);
  const auto backend = MakeReferenceBackend(Precision::kF32);
  std::vector<std::uint32_t> nodes = {1, 2, 3, 4, 5};
  const auto outputs = Alone(backend.get(), kShape, nodes);
  std::vector<std::vector<double>> states(2, std::vector<double>(6, 0.0));
  std::vector<float> before;
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    const auto x = Random(Size(kShape.row_width()), nodes[p]);
    std::vector<double> y;
    for (std::size_t i = 0; i < 10; ++i) {
      double sum = learned.taps[10 + i] * double{x[i]};
      if (p > 0) sum += learned.taps[i] * double{before[i]};
      y.push_back(sum / (1 + std::exp(-sum)));
    }
    before = x;
    for (const int at : {0, 3}) {
      const double root =
          std::sqrt(y[at] * y[at] + y[at + 1] * y[at + 1] + y[at + 2] * y[at + 2] + 1e-6);
      for (int i = at; i < at + 3; ++i) y[i] /= root * (at == 0 ? std::sqrt(3.0) : 1);
    }
    for (int head = 0; head < 2; ++head) {
      const double write = 1 / (1 + std::exp(-double{x[14 + head]}));
      const double forget = double{x[16 + head]} + learned.biases[head];
      const double decay = std::exp(-learned.rates[head] * std::log1p(std::exp(forget)));
      auto& state = states[head];
      for (double& cell : state) cell *= decay;
      for (int j = 0; j < 2; ++j) {
        double remembered = 0;
        for (int i = 0; i < 3; ++i) remembered += y[3 + i] * state[2 * i + j];
        const double written = (y[6 + 2 * head + j] - remembered) * write;
        double read = 0;
        for (int i = 0; i < 3; ++i) read += y[i] * (state[2 * i + j] += y[3 + i] * written);
        const std::size_t at = 2 * head + j;
        EXPECT_NEAR(outputs[p][4 + at], read, 1e-5) << p;
        EXPECT_EQ(outputs[p][at], x[10 + at]) << "gates are passed on";
      }
    }
  }
}

using Kind = DeltaStep::Kind;

// The positions that a walk takes in, copies and rows left out.
int Applied(const DeltaWalk& walk) {
  return std::ranges::count(walk.steps(), Kind::kApply, &DeltaStep::kind);
}

TEST(DeltaWalk, BeginsWhereTheLastOneWas) {
  const std::vector<std::int32_t> table = {2, 0, 1};
  const std::int32_t* tables[] = {table.data()};
  DeltaStore store = DeltaStore::Allocate(kDeltaShapes[0], 1, 3);
  std::vector<std::int8_t>& applied = store.applied;
  DeltaWalk walk;
  const auto plan = [&](std::int32_t begin, std::int32_t count) {
    std::vector<RowPlace> rows;
    for (std::int32_t p = begin; p < begin + count; ++p) {
      rows.push_back({p, table[p / kBlockSize] * kBlockSize + p % kBlockSize, 0, p + 1, 0});
    }
    walk.Plan({rows, tables, {}}, nullptr, 0, &store);
  };
  plan(0, 40);
  EXPECT_EQ(Applied(walk), 39) << "every row but the last is taken in on the way";
  EXPECT_EQ(applied[2], kBlockSize) << "the block that was filled has its state";
  plan(40, 1);
  EXPECT_EQ(Applied(walk), 8) << "from the block's end on";
  plan(41, 1);
  EXPECT_EQ(Applied(walk), 1);
  EXPECT_EQ(walk.steps().front(), (DeltaStep{Kind::kApply, 0, 8})) << "in place";
  plan(42, 3);
  plan(43, 1);
  EXPECT_EQ(Applied(walk), 1) << "of two that were not kept nothing is left";
}

// Level by level, as proposals lie: a root at position 40 and nodes below those of `parents`.
TEST(DeltaWalk, TakesEachPositionOfATreeInOnce) {
  const std::vector<std::int32_t> table = {0, 1, 2};
  const std::int32_t* tables[] = {table.data()};
  struct Case {
    std::vector<int> parents;
    int applied;  // Nodes with children.
    int kept;
  };
  const Case cases[] = {{{}, 0, 0},
                        {{0, 0, 0}, 1, 1},
                        {{0, 1, 2, 3, 4, 5, 6, 7}, 8, 1},
                        {{0, 0, 1, 2, 3, 4, 5, 6}, 7, 2},
                        {{0, 0, 0, 0, 1, 2, 3, 4}, 5, 2},
                        {{0, 0, 1, 1, 2, 2, 3, 4, 5, 6}, 7, 3}};
  for (const Case& each : cases) {
    DeltaStore store = DeltaStore::Allocate(kDeltaShapes[0], 1, 3);
    store.applied[1] = 8;  // The state before the root.
    std::vector<RowPlace> rows = {{40, 40, 0, 41, 0}};
    std::vector<std::vector<std::int32_t>> paths = {{}};
    std::vector<std::int32_t> tails;
    for (const int parent : each.parents) {
      auto path = paths[parent];
      path.push_back(40 + static_cast<std::int32_t>(rows.size()));
      rows.push_back({40 + static_cast<std::int32_t>(path.size()), path.back(), 0, 41,
                      static_cast<std::int32_t>(tails.size())});
      tails.insert(tails.end(), path.begin(), path.end());
      paths.push_back(std::move(path));
    }
    DeltaWalk walk;
    walk.Plan({rows, tables, tails}, nullptr, 0, &store);
    EXPECT_EQ(Applied(walk), each.applied) << testing::PrintToString(each.parents);
    EXPECT_EQ(walk.kept_states(), each.kept) << testing::PrintToString(each.parents);
    EXPECT_EQ(std::ranges::count(walk.steps(), Kind::kRow, &DeltaStep::kind), std::ssize(rows));
  }
}

}  // namespace
}  // namespace foretoken
