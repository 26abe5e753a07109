#include "study/simulator_pool.h"

#include <algorithm>
#include <utility>

namespace foretoken {
namespace {

int BranchesBefore(const DraftOrder& order, int node) {
  int branches = 0;
  for (int k = 0; k < node; ++k) branches += order.fanout.At(k, order.length);
  return branches;
}

}  // namespace

DraftPool::DraftPool(const SimulatorOptions& options, EventQueue* events, Deliver deliver)
    : options_(options),
      events_(events),
      deliver_(std::move(deliver)),
      devices_(options.draft_devices),
      orders_(1UL * options.targets * options.batch),
      shares_(orders_.size() * devices_.size()) {}

int DraftPool::Branches(const DraftOrder& order, int from, int to, int device) const {
  const int devices = static_cast<int>(devices_.size());
  // Branches i < end with i = device modulo devices.
  const auto below = [&](int end) { return (end - device + devices - 1) / devices; };
  return below(BranchesBefore(order, to)) - below(BranchesBefore(order, from));
}

int DraftPool::DeviceOf(const DraftOrder& order, int node, int rank) const {
  const int devices = static_cast<int>(devices_.size());
  if (order.chain) return order.sequence % devices;
  return (BranchesBefore(order, node) + rank - 1) % devices;
}

int DraftPool::TokensAfter(const DraftOrder& order, int node, int steps) const {
  // Forking a node takes its ranking. The draft has it where it has drafted the node's successor;
  // that of the other nodes comes out of the first step.
  const int lag = order.chain || (order.ranked && node < order.length) ? 0 : 1;
  return std::clamp(steps - lag, 0, options_.lookahead);
}

int DraftPool::StepsOf(const DraftOrder& order, int device) const {
  if (order.chain) return device == DeviceOf(order, 0, 1) ? options_.lookahead : 0;
  const bool late = Branches(order, order.length, order.length + 1, device) > 0;
  const bool early = Branches(order, 0, order.length, device) > 0;
  if (!late && !early) return 0;
  return options_.lookahead + (late || !order.ranked ? 1 : 0);
}

DraftPool::Step DraftPool::NextStep(const DraftOrder& order, int device) {
  const Share& mine = share(order.sequence, device);
  if (mine.steps >= StepsOf(order, device)) return {};
  Step step;
  if (order.chain) {
    step.rows = mine.steps == 0 ? static_cast<int>(order.position - mine.kv) : 1;
    step.tokens = 1;
    return step;
  }
  if (mine.steps == 0) step.rows = static_cast<int>(order.position + order.length - mine.kv);
  const auto grow = [&](int from, int to) {
    if (from == to ||
        TokensAfter(order, from, mine.steps + 1) == TokensAfter(order, from, mine.steps)) {
      return;
    }
    step.tokens += Branches(order, from, to, device);
  };
  grow(0, order.length);
  grow(order.length, order.length + 1);
  step.rows += step.tokens;
  return step;
}

void DraftPool::Give(std::span<const DraftOrder> orders) {
  for (const DraftOrder& order : orders) {
    orders_[order.sequence] = order;
    for (int device = 0; device < static_cast<int>(devices_.size()); ++device) {
      Share& mine = share(order.sequence, device);
      mine.steps = 0;
      // The newest token of what is committed, and of a proposal, has never been an input.
      mine.kv = device == order.owner ? order.position + order.length - 1
                                      : std::min(mine.kv, order.position - 1);
    }
  }
  for (int device = 0; device < static_cast<int>(devices_.size()); ++device) {
    AbandonIfPointless(device);
    if (!devices_[device].busy) StartPass(device);
  }
}

void DraftPool::StartPass(int index) {
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

void DraftPool::EndPass(int index, std::int64_t pass) {
  Device& device = devices_[index];
  if (!device.busy || device.pass != pass) return;
  device.busy = false;
  StopCounting(device);
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
  events_->After(options_.channel_us, [this, delivered = std::move(done)] { deliver_(delivered); });
}

void DraftPool::AbandonIfPointless(int index) {
  Device& device = devices_[index];
  if (!device.busy) return;
  const bool pointless = std::ranges::none_of(device.orders, [this](const Progress& progress) {
    return orders_[progress.sequence].epoch == progress.epoch;
  });
  if (!pointless) return;
  device.busy = false;
  StopCounting(device);
}

void DraftPool::ResetCounters() {
  counting_since_ = events_->now();
  busy_us_ = 0;
  tokens_ = 0;
}

void DraftPool::StopCounting(const Device& device) {
  busy_us_ += events_->now() - std::max(device.started, counting_since_);
}

}  // namespace foretoken
