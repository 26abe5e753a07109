// One conformance test for every channel: in one thread, between threads, between processes.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "transport/process_host.h"
#include "transport/ring_channel.h"

namespace foretoken {
namespace {

std::vector<std::byte> Record(std::uint32_t number, std::size_t size) {
  std::vector<std::byte> record(std::max<std::size_t>(size, 4));
  for (std::size_t i = 0; i < record.size(); ++i) {
    record[i] = static_cast<std::byte>(number * 31 + i);
  }
  std::memcpy(record.data(), &number, 4);
  return record;
}

std::size_t SizeOf(std::uint32_t number) {
  return 4 + (number * 2654435761U >> 7) % (Channel::kMaxRecord - 4);
}

// Sends `count` records of varying sizes, waiting where the channel is full.
void SendAll(Channel& channel, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto record = Record(i, SizeOf(i));
    while (!channel.Send(record)) std::this_thread::yield();
  }
}

// Receives `count` records; returns how many came in order and intact.
std::uint32_t ReceiveAll(Channel& channel, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    auto received = channel.Receive();
    while (received.empty()) {
      channel.WaitReadable(100'000'000);
      received = channel.Receive();
    }
    const auto expected = Record(i, SizeOf(i));
    if (received.size() != expected.size() ||
        std::memcmp(received.data(), expected.data(), expected.size()) != 0) {
      return i;
    }
  }
  return count;
}

struct Ends {
  std::unique_ptr<ChannelMemory> memory = std::move(ChannelMemory::Create()).value();
  RingChannel engine{memory->to_speculator(), memory->to_engine()};
  RingChannel speculator{memory->to_engine(), memory->to_speculator()};
};

TEST(RingChannel, KeepsOrderAndContent) {
  Ends ends;
  EXPECT_FALSE(ends.speculator.Readable());
  EXPECT_TRUE(ends.speculator.Receive().empty());
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_TRUE(ends.engine.Send(Record(i, SizeOf(i))));
  EXPECT_TRUE(ends.speculator.Readable());
  EXPECT_FALSE(ends.engine.Readable());
  EXPECT_EQ(ReceiveAll(ends.speculator, 100), 100);
  EXPECT_TRUE(ends.speculator.Receive().empty());
}

TEST(RingChannel, SaysWhenItIsFullAndLosesNothing) {
  Ends ends;
  std::uint32_t sent = 0;
  while (ends.engine.Send(Record(sent, SizeOf(sent)))) ++sent;
  EXPECT_GT(sent, 300);
  EXPECT_EQ(ReceiveAll(ends.speculator, sent), sent);
  EXPECT_TRUE(ends.speculator.Receive().empty());
  EXPECT_TRUE(ends.engine.Send(Record(0, 100)));
}

TEST(RingChannel, ThreadsBothWays) {
  Ends ends;
  constexpr std::uint32_t kCount = 20000;
  std::thread peer([&] {
    EXPECT_EQ(ReceiveAll(ends.speculator, kCount), kCount);
    SendAll(ends.speculator, kCount);
  });
  SendAll(ends.engine, kCount);
  EXPECT_EQ(ReceiveAll(ends.engine, kCount), kCount);
  peer.join();
}

TEST(RingChannel, ProcessesBothWays) {
  Ends ends;
  constexpr std::uint32_t kCount = 20000;
  const pid_t child = fork();
  if (child == 0) {
    auto attached = ChannelMemory::Attach(ends.memory->fd());
    if (!attached.ok()) _exit(1);
    RingChannel channel((*attached)->to_engine(), (*attached)->to_speculator());
    if (ReceiveAll(channel, kCount) != kCount) _exit(2);
    SendAll(channel, kCount);
    _exit(0);
  }
  SendAll(ends.engine, kCount);
  EXPECT_EQ(ReceiveAll(ends.engine, kCount), kCount);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(RingChannel, WaitSleepsUntilARecordComes) {
  Ends ends;
  const std::int64_t start = NowNs();
  ends.speculator.WaitReadable(20'000'000);
  EXPECT_GE(NowNs() - start, 15'000'000);
  std::thread peer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_TRUE(ends.engine.Send(Record(0, 10)));
  });
  ends.speculator.WaitReadable(10'000'000'000);
  EXPECT_TRUE(ends.speculator.Readable());
  EXPECT_LT(NowNs() - start, 5'000'000'000);
  peer.join();
}

TEST(RingChannel, ABrokenPeerEndsTheStream) {
  Ends ends;
  RingMemory* memory = ends.memory->to_speculator();
  const std::uint64_t absurd = 1 << 30;
  std::memcpy(memory->data, &absurd, sizeof(absurd));
  memory->head = 64;
  EXPECT_TRUE(ends.speculator.Receive().empty());
  EXPECT_FALSE(ends.speculator.Readable());
}

TEST(ChannelMemory, RefusesForeignDescriptors) {
  EXPECT_FALSE(ChannelMemory::Attach(-1).ok());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto attached = ChannelMemory::Attach(ends[0]);
  EXPECT_FALSE(attached.ok());
  close(ends[0]);
  close(ends[1]);
}

TEST(ProcessHost, NoticesTheEndOfItsChildAndStartsAnother) {
  auto host = ProcessHost::Start({"/bin/sh", "-c", "exit 0", "ignored"}, "on no cores");
  ASSERT_TRUE(host.ok());
  const std::int64_t deadline = NowNs() + 5'000'000'000;
  while ((*host)->Alive() && NowNs() < deadline) usleep(1000);
  EXPECT_FALSE((*host)->Alive());
  EXPECT_TRUE((*host)->Restart().ok());
  EXPECT_FALSE(ProcessHost::Start({"/no/such/program"}, "").ok());
}

}  // namespace
}  // namespace foretoken
