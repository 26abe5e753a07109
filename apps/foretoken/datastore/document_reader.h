#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "foretoken/types.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {

/// Takes one document's tokens; an error ends the reading.
using TakeDocument = std::function<Status(std::vector<Token>)>;

/// Reads the documents of a file in their order, encoding on `threads` threads. What the file is
/// follows from its name and content:
/// - NAME.u16, NAME.u32: one document of unsigned little-endian tokens;
/// - JSON lines (the first character is '{'): of each object the array `tokens` of token ids, or
///   each text in `prompt`, `turns`, `question`, `text` and `answer`, as documents;
/// - anything else: text, in documents of some 4 KB that end with a line.
/// `advance` is called with bytes of the file that are done.
Status ReadDocuments(const std::string& path, const Tokenizer& tokenizer, int threads,
                     const TakeDocument& take, const std::function<void(std::int64_t)>& advance);

}  // namespace foretoken
