#include "cli/datastore/datastore_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "cli/common/html_page.h"
#include "cli/common/report_chart.h"
#include "draft/ngram/ngram_drafter.h"
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
        pld_.Propose(std::span(&context, 1));
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
  NgramDrafter pld_;
  RestDrafter rest_;
  TrieDrafter trie_;
};

std::vector<int> LengthsOf(std::span<const ReplayPoint> points) {
  std::set<int> lengths;
  for (const ReplayPoint& point : points) lengths.insert(point.speculation_length);
  return {lengths.begin(), lengths.end()};
}

// A chart of `value` against s_q, one line a source.
template <typename Value>
std::string Chart(std::string_view title, std::span<const ReplayPoint> points, const Value& value,
                  bool logarithmic) {
  std::vector<ChartSeries> series;
  double high = 0;
  double low = 1e30;
  for (const ReplaySource source : kReplaySources) {
    ChartSeries line = {std::string(ReplaySourceName(source)), static_cast<int>(series.size()), {}};
    for (const ReplayPoint& point : points) {
      if (point.source != source) continue;
      line.points.emplace_back(point.speculation_length, value(point));
      high = std::max(high, value(point));
      low = std::min(low, std::max(value(point), 0.01));
    }
    std::ranges::sort(line.points);
    series.push_back(std::move(line));
  }
  const std::vector<int> lengths = LengthsOf(points);
  ChartAxis x = {.label = "speculation length s_q",
                 .low = static_cast<double>(lengths.front()),
                 .high = static_cast<double>(lengths.back()),
                 .logarithmic = true};
  if (x.low == x.high) x.high = x.low * 2;
  for (const int length : lengths) x.ticks.push_back(length);
  ChartAxis y = {.label = std::string(title), .low = 0, .high = std::max(high * 1.05, 0.1)};
  if (logarithmic) {
    y = {.label = std::string(title),
         .low = low / 1.5,
         .high = std::max(high, low) * 1.5,
         .logarithmic = true};
    y.ticks = LogarithmicTicks(y.low, y.high);
  } else {
    const double step = y.high > 4 ? 1 : y.high > 1 ? 0.5 : 0.1;
    for (double tick = 0; tick <= y.high; tick += step) y.ticks.push_back(tick);
  }
  return fmt::format("<div class=\"card\"><h3>{}</h3>{}</div>", EscapeHtml(title),
                     LineChart(title, x, y, series, /*markers=*/true));
}

std::string Legend() {
  std::string items;
  for (std::size_t i = 0; i < kReplaySources.size(); ++i) {
    items += fmt::format("<li><span class=\"key\" style=\"background:var(--s{})\"></span>{}</li>",
                         i, ReplaySourceName(kReplaySources[i]));
  }
  return "<ul class=\"legend\">" + items + "</ul>";
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

std::string RenderReplay(std::span<const ReplayPoint> points, const nlohmann::json& meta) {
  std::string body =
      "<h1>Retrieval replay</h1><p>Recorded token streams, gone through as decoding would: how "
      "many "
      "proposed tokens come true a step, by how many rows are verified.</p>";
  body += MetaList(meta) + Legend() + "<div class=\"charts\">";
  body += Chart(
      "accepted tokens per step", points,
      [](const ReplayPoint& point) { return point.accepted_per_step(); }, false);
  body += Chart(
      "retrieval time, us", points, [](const ReplayPoint& point) { return point.retrieval_us; },
      true);
  return HtmlPage("Retrieval replay", body + "</div>");
}

}  // namespace foretoken
