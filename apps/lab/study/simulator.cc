#include "apps/lab/study/simulator.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/lab/study/simulator_pool.h"
#include "base/numbers/integers.h"
#include "base/numbers/philox.h"

namespace foretoken {
namespace {

// How a verification ended: the accepted tokens, and the bonus token's rank (from 1) among the
// draft's candidates at that node; beyond kMaxFanout it is no further told apart.
struct DrawnOutcome {
  int node = 0;
  int rank = 1;
};

class Simulation {
 public:
  explicit Simulation(const SimulatorOptions& options)
      : options_(options),
        pool_(options_, &events_, [this](std::span<const DraftPool::Progress> p) { Hear(p); }),
        sequences_(1UL * options.targets * options.batch),
        targets_(options.targets) {}

  SimulatorResult Run() {
    for (Sequence& sequence : sequences_) Propose(&sequence, 0, false, -1);
    SendOrders();
    for (int target = 0; target < options_.targets; ++target) TryToStart(target);
    const std::int64_t end = 1L * (options_.warmup + options_.passes) * options_.targets;
    while (passes_ < end) FT_CHECK(events_.RunNext(), "the simulation came to a halt");
    result_.elapsed_us = events_.now() - counting_since_;
    result_.draft_tokens = pool_.tokens();
    result_.draft_busy_us = pool_.busy_us();
    result_.targets = options_.targets;
    result_.sequences = Int(sequences_.size());
    result_.draft_devices = ssd() ? options_.draft_devices : 0;
    return result_;
  }

 private:
  enum class State { kReady, kInPass, kLookingUp, kDrafting };
  struct Sequence {
    State state = State::kReady;
    std::int64_t position = 1;  // Committed tokens.
    DrawnOutcome outcome;       // The outcome of the last verification.
    DraftOrder order;           // With what is known of the proposal, in every mode.
    std::vector<int> seen;      // Steps of each draft device that this side has heard of.
  };
  struct Target {
    bool busy = false;
    double started = 0;
    double backup_us = 0;  // Spent on proposals for the next pass.
  };

  bool ssd() const { return options_.mode.during(); }
  std::span<Sequence> SequencesOf(int target) {
    return std::span(sequences_).subspan(1UL * target * options_.batch, options_.batch);
  }
  int IndexOf(const Sequence& sequence) const { return &sequence - sequences_.data(); }

  DrawnOutcome Draw(const Sequence& sequence) const {
    const auto index = static_cast<std::uint32_t>(IndexOf(sequence));
    const auto uniform = [&](std::int64_t position, std::uint32_t which) {
      return UnitInterval(
          PhiloxDraw(options_.seed, position, 2 * index + which, NoisePurpose::kScript));
    };
    const OutcomeDistribution& distribution =
        sequence.order.ranked ? options_.after_primary : options_.after_backup;
    const int last = std::ssize(distribution.acceptance) - 1;
    DrawnOutcome outcome;
    while (outcome.node < sequence.order.length &&
           uniform(sequence.position + outcome.node, 0) <
               distribution.acceptance[std::min(outcome.node, last)]) {
      ++outcome.node;
    }
    const HitCurve& curve = distribution.curves.at(outcome.node, sequence.order.length);
    const double luck = uniform(sequence.position + outcome.node, 1);
    while (outcome.rank <= kMaxFanout && luck >= curve.hit(outcome.rank)) ++outcome.rank;
    return outcome;
  }

  void Verify(Sequence* sequence) {
    sequence->outcome = Draw(*sequence);
    const int accepted = sequence->outcome.node;
    sequence->position += accepted + 1;
    ++result_.rounds;
    result_.tokens += accepted + 1;
    result_.accepted += accepted;
    result_.proposed += sequence->order.length;
    if (accepted == sequence->order.length) ++result_.rounds_at_end;
  }

  void TryToStart(int target) {
    if (targets_[target].busy) return;
    const std::span<const Sequence> sequences = SequencesOf(target);
    const auto ready = [](const Sequence& sequence) { return sequence.state == State::kReady; };
    const bool together = options_.whole_cache || options_.jit_wait == JitWait::kBatch;
    if (together ? std::ranges::all_of(sequences, ready) : std::ranges::any_of(sequences, ready)) {
      StartPass(target);
    }
  }

  void StartPass(int target) {
    int rows = 0;
    int unseen = 0;  // Last tokens of proposals that were accepted whole: SD's draft computes them.
    for (Sequence& sequence : SequencesOf(target)) {
      if (sequence.state != State::kReady) continue;
      sequence.state = State::kInPass;
      rows += 1 + sequence.order.length;
      if (sequence.outcome.node == options_.lookahead) ++unseen;
    }
    double duration = options_.overhead_us + targets_[target].backup_us + options_.target_us(rows);
    if (options_.mode.before()) {
      duration += options_.sd_draft_us(options_.batch + unseen) +
                  (options_.lookahead - 1) * options_.sd_draft_us(options_.batch);
    }
    targets_[target] = {.busy = true, .started = events_.now()};
    events_.After(duration, [this, target] { EndPass(target); });
  }

  void EndPass(int target) {
    targets_[target].busy = false;
    if (ssd()) {
      EndPassOfSsd(target);
    } else {
      for (Sequence& sequence : SequencesOf(target)) {
        Verify(&sequence);
        Propose(&sequence, options_.mode.before() ? options_.lookahead : 0, true, -1);
      }
    }
    CountPass(target);
    TryToStart(target);
  }

  void EndPassOfSsd(int target) {
    std::vector<Sequence*> missed;
    bool any_hit = false;
    for (Sequence& sequence : SequencesOf(target)) {
      if (sequence.state != State::kInPass) continue;
      Verify(&sequence);
      if (options_.whole_cache && !CacheComplete(sequence)) {
        sequence.state = State::kLookingUp;
      } else if (LookUp(&sequence)) {
        any_hit = true;
      } else {
        missed.push_back(&sequence);
      }
    }
    for (Sequence* sequence : missed) FallBack(sequence, !any_hit);
    SendOrders();
  }

  // Looks the outcome up; false on a miss.
  bool LookUp(Sequence* sequence) {
    const auto [node, rank] = sequence->outcome;
    if (rank > sequence->order.fanout.At(node, sequence->order.length)) return false;
    const int device = pool_.DeviceOf(sequence->order, node, rank);
    const int length = pool_.TokensAfter(sequence->order, node, sequence->seen[device]);
    if (length == 0) {
      ++result_.late;
      return false;
    }
    ++result_.hits;
    if (node == sequence->order.length) ++result_.hits_at_end;
    Propose(sequence, length, true, device);
    return true;
  }

  void FallBack(Sequence* sequence, bool may_wait) {
    const bool jit = options_.fallback == Fallback::kJit;
    if (options_.fallback == Fallback::kNone ||
        (jit && options_.jit_wait == JitWait::kNobody && !may_wait)) {
      Propose(sequence, 0, false, -1);
    } else if (jit) {
      sequence->state = State::kDrafting;
      Order(sequence, {.chain = true});
    } else {
      targets_[IndexOf(*sequence) / options_.batch].backup_us += options_.backup_us;
      Propose(sequence, options_.lookahead, false, -1);
    }
  }

  bool CacheComplete(const Sequence& sequence) const {
    for (int device = 0; device < options_.draft_devices; ++device) {
      if (sequence.seen[device] < pool_.StepsOf(sequence.order, device)) return false;
    }
    return true;
  }

  void Hear(std::span<const DraftPool::Progress> progress) {
    std::vector<int> moved;
    for (const auto& [index, epoch, device, steps] : progress) {
      Sequence& sequence = sequences_[index];
      if (sequence.order.epoch != epoch) continue;
      sequence.seen[device] = steps;
      if (sequence.state == State::kDrafting && steps == options_.lookahead) {
        Propose(&sequence, options_.lookahead, true, device);
        moved.push_back(index / options_.batch);
      } else if (sequence.state == State::kLookingUp && CacheComplete(sequence)) {
        if (!LookUp(&sequence)) FallBack(&sequence, true);
        moved.push_back(index / options_.batch);
      }
    }
    SendOrders();
    for (const int target : moved) TryToStart(target);
  }

  // Sets the sequence's proposal and what the draft does meanwhile. The order leaves with the next
  // SendOrders.
  void Propose(Sequence* sequence, int length, bool from_primary, int owner) {
    sequence->state = State::kReady;
    Order(sequence, {.length = length,
                     .ranked = from_primary,
                     .owner = owner,
                     .fanout = from_primary ? options_.primary : options_.after_fallback});
  }

  void Order(Sequence* sequence, DraftOrder order) {
    order.sequence = IndexOf(*sequence);
    order.epoch = sequence->order.epoch + 1;
    order.position = sequence->position;
    sequence->order = order;
    sequence->seen.assign(options_.draft_devices, 0);
    if (ssd()) unsent_.push_back(order);
  }

  void SendOrders() {
    if (unsent_.empty()) return;
    events_.After(options_.channel_us, [this, orders = std::move(unsent_)] { pool_.Give(orders); });
    unsent_.clear();
  }

  void CountPass(int target) {
    ++result_.passes;
    result_.target_busy_us += events_.now() - std::max(targets_[target].started, counting_since_);
    if (++passes_ == 1L * options_.warmup * options_.targets) {
      result_ = {};
      counting_since_ = events_.now();
      pool_.ResetCounters();
    }
  }

  const SimulatorOptions& options_;
  EventQueue events_;
  DraftPool pool_;
  std::vector<Sequence> sequences_;  // [target, batch]
  std::vector<Target> targets_;
  std::vector<DraftOrder> unsent_;
  std::int64_t passes_ = 0;
  double counting_since_ = 0;
  SimulatorResult result_;
};

Status CheckTime(std::string_view what, double us, bool may_be_none = true) {
  if (std::isfinite(us) && (may_be_none ? us >= 0 : us > 0)) return {};
  return Invalid("{} {} us: a time must be finite and {}", what, us,
                 may_be_none ? "not negative" : "positive");
}

Status CheckTimes(const SimulatorOptions& options) {
  const int most = options.batch * (options.lookahead + 1);
  for (const int rows : {1, options.batch, most}) {
    FT_RETURN_IF_ERROR(CheckTime(fmt::format("a target pass over {} rows takes", rows),
                                 options.target_us(rows), /*may_be_none=*/false));
  }
  for (const int rows : {1, options.batch, most * kMaxFanout}) {
    if (!options.mode.drafts()) break;
    const PassTime& draft_us = options.mode.during() ? options.draft_us : options.sd_draft_us;
    FT_RETURN_IF_ERROR(
        CheckTime(fmt::format("a draft pass over {} rows takes", rows), draft_us(rows)));
  }
  FT_RETURN_IF_ERROR(CheckTime("the overhead takes", options.overhead_us));
  FT_RETURN_IF_ERROR(CheckTime("a backup proposal takes", options.backup_us));
  return CheckTime("a message over the channel", options.channel_us);
}

Status CheckDistribution(const OutcomeDistribution& distribution, std::string_view which) {
  if (distribution.acceptance.empty()) {
    return Invalid("the acceptance of {} is missing", which);
  }
  for (const double a : distribution.acceptance) {
    if (a >= 0 && a <= 1) continue;
    return Invalid("an acceptance of {} {} is not in [0, 1]", which, a);
  }
  return {};
}

}  // namespace

Status CheckSimulatorOptions(const SimulatorOptions& options) {
  const auto within = [](const char* what, int value, int low, int high) -> Status {
    if (value >= low && value <= high) return {};
    return Invalid("{} {} is not in {} .. {}", what, value, low, high);
  };
  if (options.mode != Mode::kAr && options.mode != Mode::kSd && options.mode != Mode::kSsd) {
    return Invalid("mode {} cannot be simulated: choose ar, sd or ssd", ModeName(options.mode));
  }
  if (options.fallback == Fallback::kAuto) {
    return InvalidInput("fallback auto cannot be simulated: choose jit, ngram, random or none");
  }
  FT_RETURN_IF_ERROR(within("the number of targets", options.targets, 1, 256));
  FT_RETURN_IF_ERROR(within("the batch", options.batch, 1, 4096));
  FT_RETURN_IF_ERROR(within("the number of draft devices", options.draft_devices, 1, 256));
  FT_RETURN_IF_ERROR(within("the lookahead", options.lookahead, 1, kMaxProposal));
  FT_RETURN_IF_ERROR(within("the number of passes", options.passes, 1, 10'000'000));
  FT_RETURN_IF_ERROR(within("the rows of a draft pass", options.draft_rows_per_pass, 0, 1 << 20));
  FT_RETURN_IF_ERROR(within("the number of warm-up passes", options.warmup, 0, 10'000'000));
  for (const FanoutShape* shape : {&options.primary, &options.after_fallback}) {
    if (std::ssize(shape->at) == options.lookahead + 1) continue;
    return Invalid("a fan-out of {} nodes does not fit a lookahead of {}", shape->at.size(),
                   options.lookahead);
  }
  FT_RETURN_IF_ERROR(CheckDistribution(options.after_primary, "the draft's tokens"));
  FT_RETURN_IF_ERROR(CheckDistribution(options.after_backup, "the fallback's tokens"));
  return CheckTimes(options);
}

SimulatorResult Simulate(const SimulatorOptions& options) {
  const Status status = CheckSimulatorOptions(options);
  FT_CHECK(status.ok(), "{}", status.error().message);
  return Simulation(options).Run();
}

}  // namespace foretoken
