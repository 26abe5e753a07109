// How fast a datastore is built and searched. Size in millions of tokens as the first argument
// (64); `datastore_bench 512` needs about 8 GB of memory and 4 GB in the temporary folder. The text
// is synthetic: a second-order Markov chain over a Zipf distribution of 128k tokens.
#include <benchmark/benchmark.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "base/threads/cores.h"
#include "core/datastore/storage/segment_file.h"
#include "core/draft/retrieval/retriever.h"
#include "foretoken/histogram.h"

namespace foretoken {
namespace {

constexpr int kVocabulary = 131'072;
constexpr int kDocument = 1000;  // Tokens.
constexpr int kContext = 512;
constexpr int kSpeculationLength = 16;

class Stream {
 public:
  explicit Stream(std::uint64_t seed) : state_(seed) {
    for (std::size_t i = 0; i < kZipf; ++i) {
      const double u = (static_cast<double>(i) + 0.5) / kZipf;
      zipf_.push_back(static_cast<Token>(std::exp(u * std::log(kVocabulary))) - 1);
    }
  }

  // Seven tokens in ten follow from the two before them: the likeliest follower with probability
  // 1/2, the next with 1/4 and so on.
  Token Next() {
    const std::uint64_t random = Random();
    std::uint64_t draw = random >> 40;
    if (random % 10 < 7) {
      const int rank = std::countr_zero(draw | 1U << 20);
      draw = Mix(static_cast<std::uint64_t>(before_) << 40 ^
                 static_cast<std::uint64_t>(last_) << 8 ^ static_cast<std::uint64_t>(rank)) >>
             40;
    }
    before_ = last_;
    last_ = zipf_[draw % kZipf];
    return last_;
  }

 private:
  static constexpr std::size_t kZipf = 1 << 20;

  static std::uint64_t Mix(std::uint64_t x) {  // SplitMix64.
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9U;
    x = (x ^ x >> 27) * 0x94D049BB133111EBU;
    return x ^ x >> 31;
  }
  std::uint64_t Random() { return Mix(state_ += 0x9E3779B97F4A7C15U); }

  std::uint64_t state_;
  Token before_ = 0;
  Token last_ = 0;
  std::vector<Token> zipf_;
};

TokenText MakeText(std::uint64_t tokens, std::uint64_t seed) {
  Stream stream(seed);
  TokenText text(kVocabulary);
  std::vector<Token> document(kDocument);
  for (std::uint64_t done = 0; done < tokens; done += kDocument) {
    for (Token& token : document) token = stream.Next();
    const Status status = text.Append(document);
    FT_CHECK(status.ok());
  }
  return text;
}

// The most memory this process has held since ResetPeak, in bytes.
std::int64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  }
  return 0;
}
void ResetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

// Segments as they are searched in earnest: mapped from files.
class Fixture {
 public:
  Fixture(std::uint64_t tokens, int segments) {
    const TokenizerIdentity tokenizer = {"synthetic", std::string(64, '0'), kVocabulary};
    const auto files = MakePosixFiles();
    const auto path = std::filesystem::temp_directory_path() /
                      fmt::format("datastore_bench.{}.segment", getpid());
    for (int s = 0; s < segments; ++s) {
      TokenText text = MakeText(tokens / static_cast<std::uint64_t>(segments), 1 + s);
      const auto built = Segment::Build(std::move(text), Int(AvailableCores().size()));
      const Status written = WriteSegmentFile(files.get(), path, *built, tokenizer);
      FT_CHECK(written.ok(), "{}", written.error().message);
      auto opened = OpenSegmentFile(path, tokenizer);
      FT_CHECK(opened.ok(), "{}", opened.error().message);
      segments_.push_back(std::move(*opened));
      std::filesystem::remove(path);  // The mapping keeps it.
    }
    // Contexts that the datastore has not seen, of the same kind.
    Stream stream(1000);
    for (int i = 0; i < kContext + kQueries; ++i) tokens_.push_back(stream.Next());
    for (int i = 0; i < kContext; ++i) input_.Append(tokens_[i]);
    next_ = kContext;
  }

  SegmentList segments() const { return segments_; }

  // Takes one more token and proposes.
  void Query() {
    if (next_ == tokens_.size()) next_ = kContext;
    input_.Append(tokens_[next_++]);
    const std::span<const Token> context(tokens_.data(), next_);
    retriever_.Propose(&input_, segments_, context, kSpeculationLength, &proposal_);
    benchmark::DoNotOptimize(proposal_.tokens.begin());
  }

 private:
  static constexpr int kQueries = 20'000;

  std::vector<std::shared_ptr<const Segment>> segments_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  InputTrie input_{4 * kContext};
  Retriever retriever_;
  Proposal proposal_;
};

void Queries(benchmark::State& state, Fixture* fixture, int batch) {
  PinCurrentThread(AvailableCores().front());
  for (int i = 0; i < 20'000; ++i) fixture->Query();  // Warm.
  Histogram times;
  for (auto _ : state) {
    for (int i = 0; i < batch; ++i) {
      const std::int64_t start = NowNs();
      fixture->Query();
      times.Add(NowNs() - start);
    }
  }
  state.counters["mean_us"] = times.mean() / 1e3;
  state.counters["p50_us"] = times.Quantile(0.5) / 1e3;
  state.counters["p99_us"] = times.Quantile(0.99) / 1e3;
  UnpinCurrentThread();
}

// While another thread of low priority sorts, as a merge does.
void QueriesDuringMerge(benchmark::State& state, Fixture* fixture, std::uint64_t tokens) {
  std::atomic<bool> done = false;
  std::atomic<bool> sorting = false;
  std::thread merger([&] {
    UnpinCurrentThread();
    setpriority(PRIO_PROCESS, 0, 19);
    while (!done) {
      TokenText text = MakeText(std::min<std::uint64_t>(tokens, 64'000'000), 77);
      sorting = true;
      Segment::Build(std::move(text), 1, &done);
    }
  });
  while (!sorting) std::this_thread::yield();
  Queries(state, fixture, 1);
  done = true;
  merger.join();
}

void Build(benchmark::State& state, std::uint64_t tokens) {
  const int threads = AvailableCores().size();
  double bytes = 0;
  std::int64_t sorted_ns = 0;
  for (auto _ : state) {
    TokenText text = MakeText(tokens, 1);
    ResetPeak();
    const std::int64_t start = NowNs();
    const auto segment = Segment::Build(std::move(text), threads);
    const std::int64_t elapsed = NowNs() - start;
    state.SetIterationTime(static_cast<double>(elapsed) / 1e9);
    sorted_ns += elapsed;
    bytes = static_cast<double>(PeakBytes()) / static_cast<double>(tokens);
    benchmark::DoNotOptimize(segment->tokens());
  }
  const double sorted = static_cast<double>(tokens) * static_cast<double>(state.iterations());
  state.counters["Mtokens/s"] = sorted / static_cast<double>(sorted_ns) * 1e3;
  state.counters["peak_B/token"] = bytes;
}

int Main(int argc, char** argv) {
  std::uint64_t millions = 64;
  if (argc > 1 && argv[1][0] != '-') {
    millions = std::strtoull(argv[1], nullptr, 10);
    if (millions == 0 || millions > 2000) {
      fmt::print(stderr, "datastore_bench: '{}' is not a size in millions of tokens\n", argv[1]);
      return 2;
    }
    --argc;
    ++argv;
  }
  const std::uint64_t tokens = millions * 1'000'000;
  benchmark::RegisterBenchmark(fmt::format("Build/{}M", millions).c_str(), Build, tokens)
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
  std::unique_ptr<Fixture> fixture;
  for (const int segments : {1, 4}) {
    // The first benchmark of a kind builds what all of its kind search.
    const auto prepared = [&fixture, tokens, segments] {
      if (fixture == nullptr || fixture->segments().size() != Size(segments)) {
        fixture.reset();
        fixture = std::make_unique<Fixture>(tokens, segments);
      }
      return fixture.get();
    };
    const std::string size = fmt::format("{}M/{}_segments", millions, segments);
    for (const int batch : {1, 32}) {
      const auto run = [prepared, batch](benchmark::State& state) {
        Queries(state, prepared(), batch);
      };
      benchmark::RegisterBenchmark(fmt::format("Query/{}/batch_{}", size, batch).c_str(), run)
          ->Unit(benchmark::kMicrosecond);
    }
    const auto run = [prepared, tokens](benchmark::State& state) {
      QueriesDuringMerge(state, prepared(), tokens);
    };
    benchmark::RegisterBenchmark(fmt::format("Query/{}/during_merge", size).c_str(), run)
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) { return foretoken::Main(argc, argv); }
