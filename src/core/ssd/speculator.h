#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "core/draft/model/draft_model.h"
#include "core/prediction/estimates.h"
#include "core/ssd/channel.h"
#include "core/ssd/hello.h"
#include "core/ssd/speculated_sequence.h"
#include "foretoken/constraint.h"

namespace foretoken {

/// SSD's speculator (Algorithm 1 of the paper, draft side): prepares, while the target verifies,
/// chains or trees for the likely outcomes, one draft pass at a time over all branches, and streams
/// each token to the engine as soon as it exists. An outcome interrupts the pass under way.
///
/// Runs on one thread with its own device; everything it knows came through the channel.
class Speculator {
 public:
  /// `compile`, for the draft's vocabulary, may be empty: sequences with a grammar are then drafted
  /// without it. `identity` is what the draft and its tokenizer are known by.
  Speculator(Model* draft, Channel* channel, CompileConstraint compile,
             const ModelIdentity& identity = {});
  ~Speculator();

  /// Serves the channel until a shutdown message comes or `stop` returns true (asked at least
  /// every 50 ms). An error if the engine is of another version or expects another draft.
  Status Run(bool (*stop)(void* context), void* context);

 private:
  // A sequence whose committed tokens are read in the pass under way, to before position `end`.
  struct Reading {
    SpeculatedSequence* sequence;
    std::int32_t end;
  };
  // A row of the pass under way whose logits are wanted.
  struct WorkRow {
    SpeculatedSequence* sequence;
    WantedRow wanted;
    int slot = 0;  // The scratch slot of a branch's row.
    // How many rows the pass has if this row is the last one that it takes: likelier ones come
    // first.
    std::size_t rows = 0;
  };

  // Where the results of a row begin in those of the pass.
  struct PassPlace {
    std::int64_t row;  // Its first row of logits.
    const float* states;
  };

  /// Waits a bounded time for a record while there are sequences. False if none came.
  bool SpinWhileLive();
  /// Handles every waiting record. False at shutdown and where the engine is refused.
  bool HandleMessages();
  bool Greet(std::span<const std::byte> record);
  bool Handle(std::span<const std::byte> record);
  void Configure(const ConfigureMessage& config);
  void Open(const OpenMessage& message);
  SpeculatedSequence* Find(SequenceId sequence);

  /// One draft pass over the rows that matter most. False when there is nothing to prepare.
  bool Step();
  void CollectTrunkRows(bool only_jit);
  bool AppendTrunkRows(SpeculatedSequence* sequence);
  void CollectWorkRows();
  void ChooseWorkRows();
  /// Takes in what the pass has computed. False if a record came in before all rows that prepare
  /// for outcomes had been looked at.
  bool TakeRows(Logits logits);
  /// Takes in what one row says, and moves on to the next.
  void TakeRow(const WorkRow& work, PassPlace* place);
  /// Ranks the candidates after the nodes at one depth below the row's, whose logits begin at row
  /// `first` of the pass.
  void RankNodes(const WorkRow& work, const TreeNodes& nodes, int depth, std::int64_t first);
  /// Ranks the candidates after a node; `take` stores that and returns what it has added.
  template <typename Take>
  void RankNode(SpeculatedSequence& sequence, const WantedRow& node, const SaidRow& said,
                const Take& take);
  void SendBranchTokens(const Branch& branch, int added, const SpeculatedSequence& sequence);
  void FlushBranchTokens();
  /// Tells the engine what the children below `wanted` were drawn from.
  void SendDistribution(const SpeculatedSequence& sequence, const WantedRow& wanted,
                        std::span<const TokenProbability> distribution);
  void FinishJit(SpeculatedSequence* sequence);
  void DelayForTests();

  Model* model_;
  Channel* channel_;
  ModelIdentity identity_;
  bool greeted_ = false;  // The engine has said hello.
  Status refusal_;        // Why the engine was refused, where it has said anything but hello.
  CompileConstraint compile_;
  std::optional<ConfigureMessage> config_;
  std::unique_ptr<DraftModel> draft_;
  std::vector<std::unique_ptr<SpeculatedSequence>> sequences_;
  std::vector<Reading> readings_;
  // Rows of committed tokens, or of nodes that draft just in time.
  std::vector<WorkRow> trunk_rows_;
  // Rows that prepare for outcomes; they come behind the trunks' in a pass.
  std::vector<WorkRow> work_rows_;
  std::vector<WantedRow> wanted_;
  int reading_rows_;      // How many rows of contexts a pass reads at most.
  int reading_left_ = 0;  // How many more rows of contexts the pass under way may read.
  BranchTokensMessage outgoing_;
  LineEstimate pass_times_;  // The times of passes that grow branches, by their rows.
  RetrievalRates retrieval_rates_;
  std::minstd_rand delay_noise_;
};

}  // namespace foretoken
