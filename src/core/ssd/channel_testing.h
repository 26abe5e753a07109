#pragma once

// Helpers shared by the tests of this layer: a channel within one thread.

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/ssd/messages.h"
#include "core/ssd/speculator_client.h"

namespace foretoken {

/// One end of a channel of unlimited room.
class QueueChannel : public Channel {
 public:
  using Queue = std::deque<std::vector<std::byte>>;
  QueueChannel(Queue* out, Queue* in) : out_(out), in_(in) {}

  bool Send(std::span<const std::byte> record) override {
    if (full) return false;
    out_->emplace_back(record.begin(), record.end());
    return true;
  }
  bool Readable() const override { return !in_->empty(); }
  std::span<const std::byte> Receive() override {
    if (in_->empty()) return {};
    last_ = std::move(in_->front());
    in_->pop_front();
    return last_;
  }
  void WaitReadable(std::int64_t) override { waited = true; }

  bool full = false;
  bool waited = false;  ///< There was nothing to do.

 private:
  Queue* out_;
  Queue* in_;
  std::vector<std::byte> last_;
};

struct ChannelPair {
  QueueChannel::Queue to_speculator;
  QueueChannel::Queue to_engine;
  QueueChannel engine{&to_speculator, &to_engine};
  QueueChannel speculator{&to_engine, &to_speculator};
};

/// A host whose speculator is the test.
class TestHost : public SpeculatorHost {
 public:
  explicit TestHost(ChannelPair* pair) : pair_(pair) {}
  Channel& channel() override { return pair_->engine; }
  bool Alive() override { return alive; }
  Status Restart() override {
    pair_->to_speculator.clear();
    pair_->to_engine.clear();
    alive = true;
    return {};
  }
  std::string Describe() const override { return "in the test"; }

  bool alive = true;

 private:
  ChannelPair* pair_;
};

template <typename Message>
void SendMessage(const Message& message, Channel* channel) {
  ASSERT_TRUE(channel->Send(RecordOf(message)));
}

}  // namespace foretoken
