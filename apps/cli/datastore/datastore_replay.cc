#include "cli/datastore/datastore_replay.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/common/html_page.h"
#include "cli/common/report_chart.h"
#include "draft/registry.h"
#include "draft/rest/rest_drafter.h"
#include "draft/retrieval/retriever.h"
#include "draft/retrieval/sequence_tries.h"
#include "draft/trie/trie_drafter.h"
#include "speculation/verify.h"

namespace foretoken {
namespace {

// Proposals of one kind for one stream after another.
class Proposer {
 public:
  Proposer(ReplaySource source, int speculation_length, SegmentList segments)
      : source_(source), speculation_length_(speculation_length), segments_(segments) {
    if (source == ReplaySource::kTrie) WarmTrie();
  }

  void Propose(SequenceId stream, std::span<const Token> tokens, Proposal* proposal) {
    const bool uses_input = source_ != ReplaySource::kDatastore;
    DraftContext context = {.sequence = stream,
                            .tokens = tokens,
                            .lookahead = speculation_length_ - 1,
                            .proposal = proposal};
    switch (source_) {
      case ReplaySource::kInput:
      case ReplaySource::kDatastore:
      case ReplaySource::kBoth:
        retriever_.Propose(uses_input ? &tries_.Follow(stream, tokens) : nullptr,
                           source_ == ReplaySource::kInput ? SegmentList{} : segments_, tokens,
                           speculation_length_, proposal);
        break;
      case ReplaySource::kPld:
        pld_->Propose(std::span(&context, 1));
        break;
      case ReplaySource::kRest:
        rest_.Propose(segments_, tokens, speculation_length_ - 1, proposal);
        break;
      case ReplaySource::kTrie:
        trie_.Propose(std::span(&context, 1));
        break;
    }
  }

  void Forget(SequenceId stream) {
    tries_.Forget(stream);
    trie_.Forget(stream);
  }

 private:
  void WarmTrie() {
    for (const auto& segment : segments_) {
      segment->VisitDocuments([&](std::span<const Token> document) { trie_.Remember(document); });
    }
  }

  ReplaySource source_;
  int speculation_length_;
  SegmentList segments_;
  Retriever retriever_;
  SequenceTries tries_;
  std::unique_ptr<Drafter> pld_ = MakeDrafter(DrafterId::kNgram, {});
  RestDrafter rest_;
  TrieDrafter trie_;
};

// A card of the values of `key` against s_q, one line a source.
ChartCard CardOf(const nlohmann::json& points, ChartCard card, const char* key) {
  card.x_label = "speculation length s_q";
  card.logarithmic_x = true;
  for (const auto& point : points) {  // Those of a source lie together, by ascending length.
    if (card.series.empty() || card.series.back().name != point["source"]) {
      card.series.push_back({point["source"], static_cast<int>(card.series.size())});
    }
    const double value = point[key];
    card.series.back().points.emplace_back(point["speculation_length"], std::max(value, 0.01));
  }
  for (const auto& [length, value] : card.series[0].points) card.x_ticks.push_back(length);
  return card;
}

}  // namespace

std::string_view ReplaySourceName(ReplaySource source) {
  constexpr std::array<std::string_view, kReplaySources.size()> kNames = {
      "input only", "datastore only", "both (SSSD)", "prompt lookup", "REST", "trie cache"};
  return kNames[static_cast<std::size_t>(source)];
}

ReplayPoint Replay(ReplaySource source, int speculation_length, SegmentList segments,
                   std::span<const ReplayStream> streams) {
  ReplayPoint point = {.source = source, .speculation_length = speculation_length};
  Proposer proposer(source, speculation_length, segments);
  Proposal proposal;
  std::int64_t retrieval_ns = 0;
  for (std::size_t s = 0; s < streams.size(); ++s) {
    const std::span<const Token> tokens = streams[s].tokens;
    std::size_t known = std::max<std::size_t>(streams[s].prompt, 1);
    while (known < tokens.size()) {
      const std::int64_t start = NowNs();
      proposer.Propose(s, tokens.first(known), &proposal);
      retrieval_ns += NowNs() - start;
      std::size_t accepted = 0;
      VerifySharedNoise(proposal, [&](int node) -> Token {
        accepted += node > 0 ? 1 : 0;
        return known + accepted < tokens.size() ? tokens[known + accepted] : Token{-1};
      });
      const std::size_t emitted = std::min(accepted + 1, tokens.size() - known);
      ++point.steps;
      point.accepted += static_cast<std::int64_t>(accepted);
      point.tokens += static_cast<std::int64_t>(emitted);
      known += emitted;
    }
    proposer.Forget(s);
  }
  if (point.steps > 0) {
    point.retrieval_us = static_cast<double>(retrieval_ns) / 1e3 / static_cast<double>(point.steps);
  }
  return point;
}

nlohmann::json ReplayJson(std::span<const ReplayPoint> points, std::size_t streams,
                          std::uint64_t datastore_tokens) {
  nlohmann::json list = nlohmann::json::array();
  for (const ReplayPoint& point : points) {
    const double steps = std::max<double>(1, static_cast<double>(point.steps));
    list.push_back({{"source", ReplaySourceName(point.source)},
                    {"speculation_length", point.speculation_length},
                    {"steps", point.steps},
                    {"accepted_per_step", point.accepted_per_step()},
                    {"tokens_per_step", static_cast<double>(point.tokens) / steps},
                    {"retrieval_us", point.retrieval_us}});
  }
  return {{"streams", streams}, {"datastore_tokens", datastore_tokens}, {"points", list}};
}

std::string RenderReplay(const nlohmann::json& points, const nlohmann::json& meta) {
  const std::vector<ChartCard> cards = {
      CardOf(points, {.heading = "accepted tokens per step", .y_reach = 0.1}, "accepted_per_step"),
      CardOf(points, {.heading = "retrieval time, us", .logarithmic_y = true}, "retrieval_us")};
  return HtmlPage(
      "Retrieval replay",
      "<h1>Retrieval replay</h1>" + MetaList(meta) +
          CardSection("Proposals",
                      "Recorded token streams, gone through as decoding would: how many "
                      "proposed tokens come true a step, by how many rows are verified.",
                      cards));
}

}  // namespace foretoken
