#include "apps/foretoken/datastore/datastore_replay.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/foretoken/common/terminal.h"
#include "base/threads/clock.h"
#include "core/draft/registry.h"
#include "core/draft/retrieval/retriever.h"
#include "core/draft/suffix/suffix_drafter.h"
#include "core/draft/trie/trie_drafter.h"
#include "core/speculation/verify.h"

namespace foretoken {
namespace {

// What proposes in a replay.
struct Source {
  const char* name;
  DrafterId drafter;
  bool reads_sequence = true;
  bool reads_datastore = true;
};
constexpr Source kSources[] = {
    {"input only", DrafterId::kRetrieval, true, false},
    {"datastore only", DrafterId::kRetrieval, false},
    {"both (SSSD)", DrafterId::kRetrieval},
    {"prompt lookup", DrafterId::kNgram},
    {"ANPD", DrafterId::kAnpd},
    {"REST", DrafterId::kRest},
    {"trie cache", DrafterId::kTrie},
    {"SuffixDecoding", DrafterId::kSuffix},
};

// Retrieval that does not look into the sequence.
class DatastoreDrafter : public Drafter {
 public:
  void Propose(std::span<DraftContext> contexts) override {
    for (const DraftContext& context : contexts) {
      retriever_.Propose(nullptr, context.datastore->Segments(), context.tokens,
                         context.lookahead + 1, context.proposal);
    }
  }

 private:
  Retriever retriever_;
};

// One that remembers ended sequences, as if the documents had been such.
template <typename Remembering>
std::unique_ptr<Drafter> Warmed(SegmentList segments) {
  auto drafter = std::make_unique<Remembering>();
  for (const auto& segment : segments) {
    segment->VisitDocuments(
        [&](std::span<const Token> document) { drafter->Remember({.tokens = document}); });
  }
  return drafter;
}

std::unique_ptr<Drafter> DrafterOf(const Source& source, SegmentList segments) {
  if (!source.reads_sequence) return std::make_unique<DatastoreDrafter>();
  if (source.drafter == DrafterId::kTrie) return Warmed<TrieDrafter>(segments);
  if (source.drafter == DrafterId::kSuffix) return Warmed<SuffixDrafter>(segments);
  return MakeDrafter(source.drafter, {});
}

Json ReplayOne(const Source& source, DatastoreTenant* tenant, int speculation_length,
               std::span<const std::vector<Token>> streams, std::size_t prompt) {
  const std::unique_ptr<Drafter> drafter = DrafterOf(source, tenant->Segments());
  Proposal proposal;
  DraftContext context = {.datastore = source.reads_datastore ? tenant : nullptr,
                          .lookahead = speculation_length - 1,
                          .max_nodes = speculation_length - 1,
                          .proposal = &proposal};
  std::int64_t steps = 0;
  std::int64_t accepted = 0;  // Proposal tokens that came true.
  std::int64_t emitted = 0;   // Accepted and bonus tokens.
  std::int64_t retrieval_ns = 0;
  for (const std::span<const Token> tokens : streams) {
    std::size_t known = prompt;
    while (known < tokens.size()) {
      context.tokens = tokens.first(known);
      const std::int64_t start = NowNs();
      drafter->Propose(std::span(&context, 1));
      retrieval_ns += NowNs() - start;
      std::size_t right = 0;
      VerifySharedNoise(proposal, [&](int node) -> Token {
        right += node > 0 ? 1 : 0;
        return known + right < tokens.size() ? tokens[known + right] : Token{-1};
      });
      const std::size_t tokens_of_step = std::min(right + 1, tokens.size() - known);
      ++steps;
      accepted += right;
      emitted += tokens_of_step;
      known += tokens_of_step;
    }
    drafter->Forget(context.sequence++);
  }
  const auto per_step = [steps](auto sum) {
    return static_cast<double>(sum) / std::max<double>(1, static_cast<double>(steps));
  };
  return {{"source", source.name},
          {"speculation_length", speculation_length},
          {"steps", steps},
          {"accepted_per_step", per_step(accepted)},
          {"tokens_per_step", per_step(emitted)},
          {"retrieval_us", per_step(retrieval_ns) / 1e3}};
}

}  // namespace

Json Replay(DatastoreTenant* tenant, std::span<const int> lengths,
            std::span<const std::vector<Token>> streams, std::size_t prompt) {
  Json points = Json::array();
  ProgressBar bar("replaying", static_cast<std::int64_t>(std::size(kSources) * lengths.size()));
  for (const Source& source : kSources) {
    for (const int length : lengths) {
      points.push_back(ReplayOne(source, tenant, length, streams, prompt));
      bar.Advance();
    }
  }
  return points;
}

std::string ReplayTable(const Json& points, std::span<const int> lengths) {
  std::vector<std::string> header = {"accepted per step"};
  for (const int length : lengths) header.push_back(fmt::format("s_q {}", length));
  header.push_back("us");
  TextTable table(header);
  for (std::size_t first = 0; first < points.size(); first += lengths.size()) {
    std::vector<std::string> row = {points[first]["source"]};
    for (std::size_t i = first; i < first + lengths.size(); ++i) {
      row.push_back(fmt::format("{:.3f}", points[i]["accepted_per_step"].get<double>()));
    }
    const Json& longest = points[first + lengths.size() - 1];
    row.push_back(fmt::format("{:.1f}", longest["retrieval_us"].get<double>()));
    table.Add(std::move(row));
  }
  return table.Render();
}

}  // namespace foretoken
