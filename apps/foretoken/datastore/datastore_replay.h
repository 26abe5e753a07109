#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/datastore/datastore_tenant.h"
#include "foretoken/types.h"
#include "json/json.h"

namespace foretoken {

/// Goes through recorded streams, of each of which the first `prompt` tokens are given, as decoding
/// would, without a model: propose s_q - 1 tokens, accept what the stream confirms, go on behind
/// the first token that was not proposed. Once for each of `lengths`, s_q in ascending order, with
/// every source of proposals. The trie cache and SuffixDecoding have seen the streams before, and,
/// as far as they can keep them, the documents of the datastore.
///
/// Gives [{"source", "speculation_length", "steps", "accepted_per_step", "tokens_per_step",
/// "retrieval_us"}], those of a source together; `retrieval_us` is the mean time of a proposal,
/// following the sequence included.
Json Replay(DatastoreTenant* tenant, std::span<const int> lengths,
            std::span<const std::vector<Token>> streams, std::size_t prompt);

/// The accepted tokens and the retrieval time of Replay's points at the largest length, for a
/// terminal.
std::string ReplayTable(const Json& points, std::span<const int> lengths);

}  // namespace foretoken
