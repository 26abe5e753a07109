#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "study/simulator.h"
#include "study/simulator_events.h"

namespace foretoken {

/// What the draft is to do for a sequence until the next order of that sequence: draft a chain just
/// in time, or prepare branches for the outcomes of the proposal under verification.
struct DraftOrder {
  int sequence = 0;
  std::int64_t epoch = 0;     ///< Higher with every order of the sequence; 0: nothing to do.
  std::int64_t position = 0;  ///< Committed tokens.
  int length = 0;             ///< L, of the proposal under verification; 0 for a chain to come.
  bool chain = false;         ///< Draft `lookahead` tokens just in time.
  bool ranked = false;        ///< The draft made the proposal: all nodes but the last can fork.
  int owner = -1;             ///< The device that drafted the proposal: has its KV but the last.
  FanoutShape fanout;         ///< Of branches.
};

/// Draft devices that share the branches of every sequence's cache. Branch i (in order of node,
/// then rank) belongs to device i modulo their number; every unfinished branch gets a row in each
/// of its device's passes, and the rows of all sequences share passes. Where one pass does not hold
/// them, several in a row make up what is called a pass here.
class DraftPool {
 public:
  /// How far a device has come with an order.
  struct Progress {
    int sequence = 0;
    std::int64_t epoch = 0;
    int device = 0;
    int steps = 0;
  };
  using Deliver = std::function<void(std::span<const Progress>)>;

  /// Borrows `options` and `events`. `deliver` hears of every pass, `channel_us` after its end.
  DraftPool(const SimulatorOptions& options, EventQueue* events, Deliver deliver);

  /// Replaces the orders of these sequences. A pass whose rows have all become pointless is
  /// abandoned.
  void Give(std::span<const DraftOrder> orders);

  /// The device of the branch of `rank` (from 1) at `node`; of the chain, where that is ordered.
  int DeviceOf(const DraftOrder& order, int node, int rank) const;
  /// Tokens of each branch at `node`, or of the chain, after that many steps of its device.
  int TokensAfter(const DraftOrder& order, int node, int steps) const;
  /// Steps after which a device has done its part of an order.
  int StepsOf(const DraftOrder& order, int device) const;

  /// Counts from now on.
  void ResetCounters();
  double busy_us() const { return busy_us_; }
  std::int64_t tokens() const { return tokens_; }

 private:
  // One sequence on one device.
  struct Share {
    int steps = 0;
    std::int64_t kv = 0;  // Path positions whose KV this device has.
  };
  struct Device {
    bool busy = false;
    std::int64_t pass = 0;  // Abandoned passes end unheard.
    double started = 0;
    std::vector<Progress> orders;  // Those in the running pass, with the steps they reach.
    std::int64_t tokens = 0;       // Of the running pass.
  };
  struct Step {
    int rows = 0;
    int tokens = 0;
  };

  Share& share(int sequence, int device) { return shares_[sequence * devices_.size() + device]; }
  // Of the order's branches at nodes [from, to), those of `device`.
  int Branches(const DraftOrder& order, int from, int to, int device) const;
  Step NextStep(const DraftOrder& order, int device);
  void StartPass(int device);
  void EndPass(int device, std::int64_t pass);
  void AbandonIfPointless(int device);
  void StopCounting(const Device& device);

  const SimulatorOptions& options_;
  EventQueue* events_;
  Deliver deliver_;
  std::vector<Device> devices_;
  std::vector<DraftOrder> orders_;  // By sequence.
  std::vector<Share> shares_;       // [sequence, device]
  double counting_since_ = 0;
  double busy_us_ = 0;
  std::int64_t tokens_ = 0;
};

}  // namespace foretoken
