#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datastore/index/segment_search.h"
#include "foretoken/types.h"

namespace foretoken {

/// What proposes in a replay.
enum class ReplaySource : std::uint8_t { kInput, kDatastore, kBoth, kPld, kRest, kTrie };
inline constexpr std::array kReplaySources = {ReplaySource::kInput, ReplaySource::kDatastore,
                                              ReplaySource::kBoth,  ReplaySource::kPld,
                                              ReplaySource::kRest,  ReplaySource::kTrie};
std::string_view ReplaySourceName(ReplaySource source);

/// Tokens whose first `prompt` are given.
struct ReplayStream {
  std::vector<Token> tokens;
  std::size_t prompt = 0;
};

/// How one source did with proposals of s_q - 1 tokens.
struct ReplayPoint {
  ReplaySource source = ReplaySource::kBoth;
  int speculation_length = 0;
  std::int64_t steps = 0;     ///< Verifications.
  std::int64_t accepted = 0;  ///< Proposal tokens that came true.
  std::int64_t tokens = 0;    ///< Tokens that the steps emitted: accepted and bonus.
  double retrieval_us = 0;    ///< Mean time of a proposal, following the sequence included.

  double accepted_per_step() const {
    return steps == 0 ? 0 : static_cast<double>(accepted) / static_cast<double>(steps);
  }
};

/// Goes through recorded streams as decoding would, without a model: propose, accept what the
/// stream confirms, go on behind the first token that was not proposed. The trie cache has seen the
/// streams before, and, as far as it can keep them, the documents of the datastore.
ReplayPoint Replay(ReplaySource source, int speculation_length, SegmentList segments,
                   std::span<const ReplayStream> streams);

/// {"streams", "datastore_tokens", "points": [{"source", "speculation_length", "steps",
/// "accepted_per_step", "tokens_per_step", "retrieval_us"}]}
nlohmann::json ReplayJson(std::span<const ReplayPoint> points, std::size_t streams,
                          std::uint64_t datastore_tokens);

/// A page with the paper's Figure 4: accepted tokens against s_q, and retrieval times. `points` are
/// those of ReplayJson.
std::string RenderReplay(const nlohmann::json& points, const nlohmann::json& meta);

}  // namespace foretoken
