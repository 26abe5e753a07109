#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "apps/lab/study/simulator.h"

namespace foretoken {

/// A clock that jumps from event to event. Events of the same time run in the order in which they
/// were scheduled.
class EventQueue {
 public:
  double now() const { return now_; }

  /// Runs `action` in `delay` (>= 0) from now.
  void After(double delay, std::function<void()> action) {
    events_.emplace(now_ + delay, std::move(action));
  }

  /// Runs the next event; false where there is none.
  bool RunNext() {
    if (events_.empty()) return false;
    const auto event = events_.extract(events_.begin());
    now_ = event.key();
    event.mapped()();
    return true;
  }

 private:
  std::multimap<double, std::function<void()>> events_;  // By time.
  double now_ = 0;
};

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
  FanoutShape fanout;         ///< How branches fan out.
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
  DraftPool(const SimulatorOptions& options, EventQueue* events, Deliver deliver)
      : options_(options),
        events_(events),
        deliver_(std::move(deliver)),
        devices_(options.draft_devices),
        orders_(1UL * options.targets * options.batch),
        shares_(orders_.size() * devices_.size()) {}

  /// Replaces the orders of these sequences. A pass whose rows have all become pointless is
  /// abandoned.
  void Give(std::span<const DraftOrder> orders) {
    for (const DraftOrder& order : orders) {
      orders_[order.sequence] = order;
      for (int device = 0; device < std::ssize(devices_); ++device) {
        Share& mine = share(order.sequence, device);
        mine.steps = 0;
        // The newest token of what is committed, and of a proposal, has never been an input.
        mine.kv = device == order.owner ? order.position + order.length - 1
                                        : std::min(mine.kv, order.position - 1);
      }
    }
    for (int device = 0; device < std::ssize(devices_); ++device) {
      AbandonIfPointless(device);
      if (!devices_[device].busy) StartPass(device);
    }
  }

  /// The device of the branch of `rank` (from 1) at `node`; of the chain, where that is ordered.
  int DeviceOf(const DraftOrder& order, int node, int rank) const {
    const int devices = devices_.size();
    if (order.chain) return order.sequence % devices;
    return (BranchesBefore(order, node) + rank - 1) % devices;
  }

  /// Tokens of each branch at `node`, or of the chain, after that many steps of its device.
  int TokensAfter(const DraftOrder& order, int node, int steps) const {
    // Forking a node takes its ranking. The draft has it where it has drafted the node's successor;
    // that of the other nodes comes out of the first step.
    const int lag = order.chain || (order.ranked && node < order.length) ? 0 : 1;
    return std::clamp(steps - lag, 0, options_.lookahead);
  }

  /// Steps after which a device has done its part of an order.
  int StepsOf(const DraftOrder& order, int device) const {
    if (order.chain) return device == DeviceOf(order, 0, 1) ? options_.lookahead : 0;
    const bool late = Branches(order, order.length, order.length + 1, device) > 0;
    const bool early = Branches(order, 0, order.length, device) > 0;
    if (!late && !early) return 0;
    return options_.lookahead + (late || !order.ranked ? 1 : 0);
  }

  /// Counts from now on.
  void ResetCounters() {
    counting_since_ = events_->now();
    busy_us_ = 0;
    tokens_ = 0;
  }

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
    std::vector<Progress> orders;  // The orders in the running pass, with the steps they reach.
    std::int64_t tokens = 0;       // Tokens of the running pass.
  };
  struct Step {
    int rows = 0;
    int tokens = 0;
  };

  Share& share(int sequence, int device) { return shares_[sequence * devices_.size() + device]; }

  static int BranchesBefore(const DraftOrder& order, int node) {
    int branches = 0;
    for (int k = 0; k < node; ++k) branches += order.fanout.At(k, order.length);
    return branches;
  }

  // How many of the order's branches at nodes [from, to) belong to `device`.
  int Branches(const DraftOrder& order, int from, int to, int device) const {
    const int devices = devices_.size();
    // Branches i < end with i = device modulo devices.
    const auto below = [&](int end) { return (end - device + devices - 1) / devices; };
    return below(BranchesBefore(order, to)) - below(BranchesBefore(order, from));
  }

  Step NextStep(const DraftOrder& order, int device) {
    const Share& mine = share(order.sequence, device);
    if (mine.steps >= StepsOf(order, device)) return {};
    Step step;
    if (order.chain) {
      step.rows = mine.steps == 0 ? static_cast<int>(order.position - mine.kv) : 1;
      step.tokens = 1;
      return step;
    }
    if (mine.steps == 0) step.rows = static_cast<int>(order.position + order.length - mine.kv);
    const auto grows = [&](int node) {
      return TokensAfter(order, node, mine.steps + 1) > TokensAfter(order, node, mine.steps);
    };
    if (grows(0)) step.tokens += Branches(order, 0, order.length, device);
    if (grows(order.length)) step.tokens += Branches(order, order.length, order.length + 1, device);
    step.rows += step.tokens;
    return step;
  }

  void StartPass(int index) {
    Device& device = devices_[index];
    device.orders.clear();
    device.tokens = 0;
    int rows = 0;
    for (const DraftOrder& order : orders_) {
      if (order.epoch == 0) continue;
      const Step step = NextStep(order, index);
      if (step.rows == 0) continue;
      rows += step.rows;
      device.tokens += step.tokens;
      device.orders.push_back(
          {order.sequence, order.epoch, index, share(order.sequence, index).steps + 1});
    }
    if (rows == 0) return;
    device.busy = true;
    device.started = events_->now();
    double us = 0;
    for (const int most = options_.draft_rows_per_pass; most > 0 && rows > most; rows -= most) {
      us += options_.draft_us(most);
    }
    events_->After(us + options_.draft_us(rows),
                   [this, index, pass = ++device.pass] { EndPass(index, pass); });
  }

  void EndPass(int index, std::int64_t pass) {
    Device& device = devices_[index];
    if (!device.busy || device.pass != pass) return;
    Stop(&device);
    tokens_ += device.tokens;
    std::vector<Progress> done = std::move(device.orders);
    std::erase_if(done, [this](const Progress& progress) {
      return orders_[progress.sequence].epoch != progress.epoch;
    });
    for (const Progress& progress : done) {
      const DraftOrder& order = orders_[progress.sequence];
      Share& mine = share(progress.sequence, index);
      mine.steps = progress.steps;
      mine.kv = order.position + order.length + (order.chain ? progress.steps - 1 : 0);
    }
    StartPass(index);
    events_->After(options_.channel_us,
                   [this, delivered = std::move(done)] { deliver_(delivered); });
  }

  void AbandonIfPointless(int index) {
    Device& device = devices_[index];
    if (!device.busy) return;
    const bool pointless = std::ranges::none_of(device.orders, [this](const Progress& progress) {
      return orders_[progress.sequence].epoch == progress.epoch;
    });
    if (pointless) Stop(&device);
  }

  void Stop(Device* device) {
    device->busy = false;
    busy_us_ += events_->now() - std::max(device->started, counting_since_);
  }

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
