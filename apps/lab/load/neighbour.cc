#include "apps/lab/load/neighbour.h"

#include <fmt/core.h>

#include <charconv>
#include <chrono>
#include <optional>

#include "apps/foretoken/options/options.h"
#include "base/numbers/philox.h"
#include "base/threads/clock.h"

namespace foretoken {
namespace {

constexpr double kLeastBurstS = 0.01;
constexpr double kMostBurstS = 3600;

// Arithmetic over more memory than a first-level cache has, as a compiler's: some 100 us.
class Labour {
 public:
  void DoSome() {
    for (std::uint64_t& number : numbers_)
      number = number * 6364136223846793005U + 1442695040888963407U;
  }

 private:
  std::vector<std::uint64_t> numbers_ = std::vector<std::uint64_t>(std::size_t{1} << 17, 1);
};

std::optional<double> ReadSeconds(std::string_view text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(seconds >= kLeastBurstS && seconds <= kMostBurstS)) return std::nullopt;
  return seconds;
}

}  // namespace

Result<BurstLengths> ParseBurstLengths(std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::optional<double> least = ReadSeconds(text.substr(0, dash));
  const std::optional<double> most =
      dash == std::string_view::npos ? least : ReadSeconds(text.substr(dash + 1));
  if (!least || !most || *least > *most) {
    return Invalid(
        "'{}' does not say how long bursts are: give seconds from {} to {}, as 2 or 0.5-3", text,
        kLeastBurstS, kMostBurstS);
  }
  return BurstLengths{*least, *most};
}

Bursts::Bursts(BurstLengths lengths, std::uint64_t seed, int core)
    : lengths_(lengths), seed_(seed), core_(static_cast<std::uint64_t>(core)), working_(false) {
  working_ = Draw() < 0.5;
}

double Bursts::Draw() {
  return UnitInterval(PhiloxDraw(seed_, draws_++, core_, NoisePurpose::kScript));
}

std::int64_t Bursts::Next() {
  working_ = !working_;
  const double seconds = lengths_.least_s + Draw() * (lengths_.most_s - lengths_.least_s);
  return static_cast<std::int64_t>(seconds * 1e9);
}

void AddNeighbourOptions(CLI::App* command, NeighbourOptions* options) {
  const OptionGroup add(command, "Neighbour");
  const AddedOption neighbour =
      add("--neighbour", &options->cores, "CORES",
          "Measure beside another program that uses these cores in bursts, like 1 or 0-1; every "
          "mode has the same bursts beside it");
  add("--neighbour-bursts", &options->bursts, "S[-S]",
      "How many seconds it works and then rests, each time (default 0.5-3)")
      ->needs(neighbour);
}

Result<NeighbourPlan> NeighbourPlan::Read(const NeighbourOptions& options) {
  NeighbourPlan plan;
  if (options.cores.empty()) return plan;
  FT_ASSIGN_OR_RETURN(plan.cores, ParseCores(options.cores));
  FT_ASSIGN_OR_RETURN(plan.lengths, ParseBurstLengths(options.bursts));
  return plan;
}

Json NeighbourPlan::Describe() const {
  if (cores.empty()) return nullptr;
  return fmt::format("on cores {}, working and resting for {:g} to {:g} s in turn",
                     FormatCores(cores), lengths.least_s, lengths.most_s);
}

std::string NeighbourPlan::Sentence() const {
  if (cores.empty()) return {};
  return fmt::format("Beside a neighbour {}\n", Describe().get<std::string>());
}

Neighbour::Neighbour(const NeighbourPlan& plan, std::uint64_t seed) {
  try {
    for (const int core : plan.cores) {
      threads_.emplace_back(
          [this, core, bursts = Bursts(plan.lengths, seed, core)] { Work(core, bursts); });
    }
  } catch (...) {  // A neighbour on fewer cores would measure something else.
    Stop();
    throw;
  }
}

Neighbour::~Neighbour() { Stop(); }

void Neighbour::Stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Neighbour::Ends() {
  const std::lock_guard lock(mutex_);
  return ends_;
}

bool Neighbour::Rest(std::int64_t deadline_ns) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, std::chrono::nanoseconds(deadline_ns - NowNs()),
                         [this] { return ends_; });
}

void Neighbour::Work(int core, Bursts bursts) {
  PinCurrentThread(core);
  Labour labour;
  for (std::int64_t deadline_ns = NowNs();;) {
    deadline_ns += bursts.Next();
    if (!bursts.working()) {
      if (Rest(deadline_ns)) return;
      continue;
    }
    while (NowNs() < deadline_ns) {
      if (Ends()) return;
      labour.DoSome();
    }
  }
}

}  // namespace foretoken
