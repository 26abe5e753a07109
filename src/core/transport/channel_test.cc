// One conformance test for every channel: in one thread, between threads, between processes; and
// the hosts at whose end of it a speculator runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/files/temporary_testing.h"
#include "base/threads/clock.h"
#include "core/transport/process_host.h"
#include "core/transport/ring_channel.h"
#include "core/transport/thread_host.h"

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
  EXPECT_TRUE(ends.speculator.broken());
  EXPECT_FALSE(ends.engine.broken());
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

// What a shell that is started as a speculator has open, with what it is open on.
std::string OpenFilesOfAChild() {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "files").string();
  // The shell reads its own folder, so that nothing is open which it opened itself.
  const std::string script = "for fd in /proc/$$/fd/*; do echo ${fd##*/} $(readlink $fd); done >" +
                             out + ".part; mv " + out + ".part " + out + "; exec sleep 100";
  auto host = ProcessHost::Start({"/bin/sh", "-c", script, "ignored"}, "on no cores");
  EXPECT_TRUE(host.ok());
  const std::int64_t deadline = NowNs() + 10'000'000'000;
  while (!std::filesystem::exists(out) && NowNs() < deadline) usleep(1000);
  std::stringstream text;
  text << std::ifstream(out).rdbuf();
  return text.str();
}

TEST(ProcessHost, AChildHasNoOpenFilesOfThisProcess) {
  const int inherited = socket(AF_INET, SOCK_STREAM, 0);  // As a library opens them.
  ASSERT_GE(inherited, 0);
  const std::string files = OpenFilesOfAChild();
  close(inherited);
  EXPECT_THAT(files, testing::HasSubstr("3 /memfd:foretoken-channel"));
  EXPECT_THAT(files, testing::Not(testing::HasSubstr("socket:")));
  EXPECT_EQ(files.find("memfd"), files.rfind("memfd")) << files;
}

TEST(ProcessHost, AChildThatStandsStillIsReplaced) {
  auto host = ProcessHost::Start({"/bin/sh", "-c", "kill -STOP $$", "ignored"}, "on no cores");
  ASSERT_TRUE(host.ok());
  usleep(100'000);
  EXPECT_TRUE((*host)->Alive()) << "as far as the system knows";
  const std::string before = (*host)->Describe();
  EXPECT_TRUE((*host)->Restart().ok());
  EXPECT_NE((*host)->Describe(), before);
}

TEST(ThreadHost, IsStartedAgainOnceItsThreadIsFree) {
  std::atomic<int> starts = 0;
  std::atomic<bool> busy = true;
  auto host = ThreadHost::Start(
      [&](Channel& channel, const std::atomic<bool>& stop) {
        ++starts;
        (void)channel.Send(Record(7, 10));
        while (busy || !stop) std::this_thread::yield();
      },
      "in the test");
  ASSERT_TRUE(host.ok());
  const Status still = (*host)->Restart();
  ASSERT_FALSE(still.ok());
  EXPECT_THAT(still.error().message, testing::HasSubstr("its thread is still busy"));
  busy = false;
  const std::int64_t deadline = NowNs() + 10'000'000'000;
  while ((*host)->Alive() && NowNs() < deadline) std::this_thread::yield();
  ASSERT_TRUE((*host)->Restart().ok());
  EXPECT_TRUE((*host)->Alive());
  (*host)->channel().WaitReadable(10'000'000'000);
  EXPECT_EQ((*host)->channel().Receive().size(), 10U) << "on a fresh channel";
  EXPECT_EQ(starts, 2);
}

}  // namespace
}  // namespace foretoken
