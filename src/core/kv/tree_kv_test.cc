#include "core/kv/tree_kv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "base/numbers/integers.h"
#include "core/backend/testing/reference_backend.h"

namespace foretoken {
namespace {

using testing::ElementsAre;

struct Tables {
  std::vector<const std::int32_t*> block_tables;
  std::vector<std::int32_t> tail_slots;
  RowPlacer For(const SequenceKv& kv) { return {kv, &block_tables, &tail_slots}; }
};

// Memory of one number per slot.
struct Memory {
  explicit Memory(std::int64_t blocks)
      : store(backend->AllocateKv({.layers = {{.kv_heads = 1, .head_dim = 1}}, .blocks = blocks})) {
  }
  KvMemory kv() { return {.backend = backend.get(), .store = &store}; }
  float& at(std::int32_t slot) { return store.keys.as<float>()[slot]; }

  std::unique_ptr<Backend> backend = MakeReferenceBackend(Precision::kF32);
  KvStore store;
};

constexpr std::int8_t kChain[] = {0, 1, 2};
constexpr std::int8_t kTree[] = {0, 1, 0, 3};  // Two chains of two.

TEST(RowPlacer, ChainsAreOnTheTrunk) {
  KvCache pool({.blocks = 4}, false);
  SequenceKv kv;
  ASSERT_TRUE(pool.Reserve(40, &kv));
  Tables tables;
  RowPlacer placer = tables.For(kv);
  EXPECT_TRUE(tables.block_tables.empty()) << "without rows there is no table";
  const KvTree tree(30, kChain);
  for (int node = 1; node <= 3; ++node) {
    const RowPlace place = placer.Node(tree, node);
    EXPECT_EQ(place.position, 30 + node);
    EXPECT_EQ(place.slot, kv.SlotOf(30 + node));
    EXPECT_EQ(place.trunk_length, 31 + node);
    EXPECT_EQ(place.sequence, 0);
  }
  EXPECT_THAT(tables.block_tables, ElementsAre(kv.blocks.data()));
  EXPECT_TRUE(tables.tail_slots.empty());
}

TEST(RowPlacer, NodesBesideTheChainHaveTheirPathsAsTails) {
  KvCache pool({.blocks = 4}, false);
  SequenceKv kv;
  SequenceKv scratch;
  ASSERT_TRUE(pool.Reserve(40, &kv) && pool.Reserve(10, &scratch));
  Tables tables;
  RowPlacer placer = tables.For(kv);
  const KvTree tree(30, kTree);
  EXPECT_TRUE(tree.OnTrunk(2));
  EXPECT_FALSE(tree.OnTrunk(3));
  const RowPlace node = placer.Node(tree, 4);
  EXPECT_EQ(node.position, 32);
  EXPECT_EQ(node.slot, kv.SlotOf(34));
  EXPECT_EQ(node.trunk_length, 31);
  EXPECT_THAT(tables.tail_slots, ElementsAre(kv.SlotOf(33), kv.SlotOf(34)));

  const std::int16_t rows[] = {5, 7};
  const RowPlace beside = placer.Branch(tree, 4, scratch, rows);
  EXPECT_EQ(beside.position, 34);
  EXPECT_EQ(beside.slot, scratch.SlotOf(7));
  EXPECT_EQ(beside.trunk_length, 31);
  EXPECT_EQ(beside.tail_begin, 2);
  const RowPlace behind = placer.Branch(tree, 2, scratch, rows);
  EXPECT_EQ(behind.position, 34);
  EXPECT_EQ(behind.trunk_length, 33);
  EXPECT_EQ(behind.tail_begin, 6);
  EXPECT_THAT(std::span(tables.tail_slots).subspan(2),
              ElementsAre(kv.SlotOf(33), kv.SlotOf(34), scratch.SlotOf(5), scratch.SlotOf(7),
                          scratch.SlotOf(5), scratch.SlotOf(7)));
  EXPECT_EQ(tables.block_tables.size(), 1U);
}

TEST(TreeKv, NodesThatStayCloseUp) {
  KvCache pool({.blocks = 4}, false);
  SequenceKv kv;
  ASSERT_TRUE(pool.Reserve(40, &kv));
  Memory memory(4);
  for (int i = 0; i < 40; ++i) memory.at(kv.SlotOf(i)) = static_cast<float>(i);
  const MovedNode moved[] = {{3, 2}, {4, 3}, {6, 4}};
  MoveNodes(30, moved, memory.kv(), kv);
  std::vector<float> nodes;
  for (int node = 0; node <= 4; ++node) nodes.push_back(memory.at(kv.SlotOf(30 + node)));
  EXPECT_THAT(nodes, ElementsAre(30, 31, 33, 34, 36));
}

TEST(TreeKv, TheAcceptedPathBecomesPositions) {
  KvCache pool({.blocks = 4}, false);
  SequenceKv kv;
  ASSERT_TRUE(pool.Reserve(40, &kv));
  Memory memory(4);
  for (int i = 0; i < 40; ++i) memory.at(kv.SlotOf(i)) = static_cast<float>(i);
  CommitRows(31, &kv);
  EXPECT_EQ(kv.committed, 31);
  const std::int8_t path[] = {3, 4};
  CommitPath(30, path, memory.kv(), &kv);
  EXPECT_EQ(kv.committed, 33);
  EXPECT_EQ(memory.at(kv.SlotOf(31)), 33);
  EXPECT_EQ(memory.at(kv.SlotOf(32)), 34);
  CommitPath(33, {}, memory.kv(), &kv);
  EXPECT_EQ(kv.committed, 34) << "the root itself";
}

// One sequence with a tree and branches, and beside it a naive model: every slot remembers the
// number of the whole token prefix that it was computed for.
class Model {
 public:
  explicit Model(std::uint32_t seed) : random_(seed) { tokens_.assign(1 + Below(50), 7); }

  void Round() {
    EXPECT_TRUE(pool_.Reserve(Root() + 1 + kNodes, &kv_));
    ComputeCommitted();
    if (!promoted_) DrawTree(Path{}, &tree_);
    promoted_ = false;
    ComputeTree();
    ComputeBranches();
    GiveAPassUp();
    TakeOutcome();
    CheckCommitted();
  }

  bool promoted_any() const { return promoted_any_; }

 private:
  static constexpr int kNodes = 20;
  static constexpr int kScratch = 60;
  using Path = std::vector<Token>;

  struct Tree {
    Path above;  // Tokens from the beginning to its root.
    std::vector<Token> tokens;
    std::vector<std::int8_t> parents;
    std::vector<std::int16_t> rows;  // By node; -1: not computed.
  };
  struct Branch {
    int node;
    Token bonus;
    Tree tree;
  };

  int Below(int bound) { return random_() % static_cast<std::uint32_t>(bound); }
  std::int32_t Root() const { return static_cast<std::int32_t>(tokens_.size()) - 1; }

  float IdOf(const Path& prefix) {
    return ids_.try_emplace(prefix, static_cast<float>(ids_.size() + 1)).first->second;
  }

  static std::vector<std::int8_t> NodesTo(const Tree& tree, int node) {
    std::vector<std::int8_t> nodes;
    for (; node != 0; node = tree.parents[node - 1]) nodes.insert(nodes.begin(), node);
    return nodes;
  }
  static Path PrefixOf(const Tree& tree, int node) {
    Path prefix = tree.above;
    for (const std::int8_t step : NodesTo(tree, node)) prefix.push_back(tree.tokens[step - 1]);
    return prefix;
  }

  void DrawTree(const Path& above, Tree* tree) {
    *tree = {};
    tree->above = above.empty() ? tokens_ : above;
    const int nodes = Below(above.empty() ? kNodes + 1 : 5);
    const bool chain = Below(2) == 0;
    for (int i = 0; i < nodes; ++i) {
      const int parent = chain || Below(2) == 0 ? i : Below(i + 1);
      tree->parents.push_back(static_cast<std::int8_t>(parent));
      // No two siblings alike.
      tree->tokens.push_back(static_cast<Token>(100 * i + Below(3)));
    }
    tree->rows.assign(nodes + 1, -1);
  }

  // A pass's row: every position it attends to must hold the KV of its own prefix.
  void Compute(const RowPlace& place, const Path& prefix) {
    ASSERT_EQ(place.position + 1, static_cast<std::int32_t>(prefix.size()));
    memory_.at(place.slot) = IdOf(prefix);
    for (std::int32_t position = 0; position <= place.position; ++position) {
      const std::int32_t* table = tables_.block_tables[place.sequence];
      const std::int32_t slot =
          position < place.trunk_length
              ? table[position / kBlockSize] * kBlockSize + position % kBlockSize
              : tables_.tail_slots[place.tail_begin + position - place.trunk_length];
      ASSERT_EQ(memory_.at(slot), IdOf({prefix.begin(), prefix.begin() + position + 1}))
          << "position " << position << " of " << place.position;
    }
  }

  void ComputeCommitted() {
    RowPlacer placer = tables_.For(kv_);
    for (std::int32_t p = kv_.committed; p <= Root(); ++p) {
      Compute(placer.Committed(p), {tokens_.begin(), tokens_.begin() + p + 1});
    }
    CommitRows(Root() + 1, &kv_);
  }

  void ComputeTree() {
    const KvTree place(Root(), tree_.parents);
    tree_.rows[0] = 0;
    RowPlacer placer = tables_.For(kv_);
    for (int node = 1; node < std::ssize(tree_.rows); ++node) {
      if (tree_.rows[node] >= 0) continue;  // Was a branch's.
      if (tree_.rows[tree_.parents[node - 1]] < 0 || Below(5) == 0) continue;
      Compute(placer.Node(place, node), PrefixOf(tree_, node));
      tree_.rows[node] = static_cast<std::int16_t>(node);
    }
  }

  void ComputeBranches() {
    branches_.clear();
    std::int16_t used = 0;
    for (int i = Below(6); i > 0; --i) {
      const int node = Below(Int(tree_.rows.size()));
      if (tree_.rows[node] < 0) continue;
      Branch branch{.node = node, .bonus = 50 + i, .tree = {}};
      Path above = PrefixOf(tree_, node);
      above.push_back(branch.bonus);
      DrawTree(above, &branch.tree);
      for (int at = 0; at < std::ssize(branch.tree.rows) && used < kScratch; ++at) {
        if (at > 0 && branch.tree.rows[branch.tree.parents[at - 1]] < 0) continue;
        if (at > 0 && Below(4) == 0) continue;
        ComputeBranchRow(&branch, at, used++);
      }
      if (branch.tree.rows[0] >= 0) branches_.push_back(branch);
    }
  }

  void ComputeBranchRow(Branch* branch, int node, std::int16_t slot) {
    ASSERT_TRUE(pool_.Reserve(slot + 1, &scratch_));
    branch->tree.rows[node] = slot;
    std::vector<std::int16_t> rows = {branch->tree.rows[0]};
    for (const std::int8_t step : NodesTo(branch->tree, node)) {
      rows.push_back(branch->tree.rows[step]);
    }
    RowPlacer placer = tables_.For(kv_);
    Compute(placer.Branch({Root(), tree_.parents}, branch->node, scratch_, rows),
            PrefixOf(branch->tree, node));
  }

  // Rows that are written and never committed must not matter.
  void GiveAPassUp() {
    const KvTree place(Root(), tree_.parents);
    RowPlacer placer = tables_.For(kv_);
    for (int node = 1; node < std::ssize(tree_.rows); ++node) {
      if (tree_.rows[node] < 0) memory_.at(placer.Node(place, node).slot) = -1;
    }
  }

  void TakeOutcome() {
    const std::int32_t old_root = Root();
    const Branch* hit =
        branches_.empty() || Below(3) == 0 ? nullptr : &branches_[Below(int(branches_.size()))];
    int node = hit != nullptr ? hit->node : Below(Int(tree_.rows.size()));
    while (tree_.rows[node] < 0) node = tree_.parents[node - 1];
    const std::vector<std::int8_t> path = NodesTo(tree_, node);
    for (const std::int8_t step : path) tokens_.push_back(tree_.tokens[step - 1]);
    tokens_.push_back(hit != nullptr ? hit->bonus : 1 + Below(3));
    CommitPath(old_root, path, memory_.kv(), &kv_);
    ASSERT_EQ(kv_.committed, Root());
    if (hit != nullptr) Promote(*hit);
  }

  void Promote(const Branch& branch) {
    promoted_ = promoted_any_ = true;
    ASSERT_TRUE(pool_.Reserve(Root() + 1 + kNodes, &kv_));
    std::vector<PromotedRow> kept;
    for (std::size_t node = 0; node < branch.tree.rows.size(); ++node) {
      if (branch.tree.rows[node] < 0) continue;
      kept.push_back({branch.tree.rows[node], static_cast<std::int16_t>(node)});
    }
    MoveBranch(Root(), kept, scratch_, memory_.kv(), &kv_);
    CommitRows(Root() + 1, &kv_);
    ASSERT_EQ(kv_.committed, Root() + 1);
    for (const PromotedRow& row : kept) {
      ASSERT_EQ(memory_.at(kv_.SlotOf(Root() + row.node)), IdOf(PrefixOf(branch.tree, row.node)));
    }
    tree_ = branch.tree;
    for (const PromotedRow& row : kept) tree_.rows[row.node] = row.node;
  }

  void CheckCommitted() {
    for (std::int32_t p = 0; p < kv_.committed; ++p) {
      ASSERT_EQ(memory_.at(kv_.SlotOf(p)), IdOf({tokens_.begin(), tokens_.begin() + p + 1}))
          << "position " << p;
    }
  }

  std::mt19937 random_;
  KvCache pool_{{.blocks = 30}, false};
  Memory memory_{30};
  SequenceKv kv_;
  SequenceKv scratch_;
  Tables tables_;
  std::vector<Token> tokens_;
  Tree tree_;
  std::vector<Branch> branches_;
  std::map<Path, float> ids_;
  bool promoted_ = false;  // The tree is what was a branch.
  bool promoted_any_ = false;
};

TEST(TreeKvProperty, AgreesWithANaiveModel) {
  bool promoted = false;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    Model model(seed);
    for (int round = 0; round < 25; ++round) {
      model.Round();
      if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) {
        FAIL() << "seed " << seed << ", round " << round;
      }
    }
    promoted = promoted || model.promoted_any();
  }
  EXPECT_TRUE(promoted);
}

}  // namespace
}  // namespace foretoken
