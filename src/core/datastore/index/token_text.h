#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <variant>

#include "base/result.h"
#include "core/datastore/index/large_array.h"
#include "foretoken/types.h"

namespace foretoken {

/// Suffixes are ordered by this many tokens; equal ones by position.
inline constexpr int kSortDepth = 16;

/// Stands between documents and is greater than every token. Retrieval never crosses it.
template <typename T>
inline constexpr T kSeparator = std::numeric_limits<T>::max();

/// Positions are 32 bits wide.
inline constexpr std::uint64_t kMaxTextEntries =
    std::numeric_limits<std::uint32_t>::max() - 4 * kSortDepth;

/// Bytes per stored token: 2 where the vocabulary and the separator fit, else 4. Unsigned.
inline int TokenBytesFor(int vocabulary) { return vocabulary <= kSeparator<std::uint16_t> ? 2 : 4; }

/// Documents of one vocabulary, one after another, each followed by a separator, in 16 or 32 bits a
/// token.
class TokenText {
 public:
  explicit TokenText(int vocabulary);

  int vocabulary() const { return vocabulary_; }
  int token_bytes() const { return TokenBytesFor(vocabulary_); }
  /// Tokens and separators.
  std::size_t entries() const;
  std::uint64_t documents() const { return documents_; }

  /// Adds a document; an empty one is left out. Refuses tokens outside [0, vocabulary) and what
  /// exceeds kMaxTextEntries, and is then unchanged.
  Status Append(std::span<const Token> document);
  /// Adds the `entries` of another text of the same vocabulary. Refuses only what is too long.
  template <typename T>
  Status AppendEntries(std::span<const T> entries, std::uint64_t documents) {
    FT_RETURN_IF_ERROR(CheckRoom(entries.size()));
    auto& text = std::get<LargeArray<T>>(text_);
    const std::size_t before = text.size();
    text.Resize(before + entries.size());
    std::memcpy(text.data() + before, entries.data(), entries.size_bytes());
    documents_ += documents;
    return {};
  }

  /// Calls `visit` with the LargeArray<uint16_t> or LargeArray<uint32_t> of all entries.
  template <typename Visitor>
  decltype(auto) Visit(Visitor&& visit) {
    return std::visit(visit, text_);
  }
  template <typename Visitor>
  decltype(auto) Visit(Visitor&& visit) const {
    return std::visit(visit, text_);
  }

 private:
  Status CheckRoom(std::size_t entries) const;

  int vocabulary_;
  std::uint64_t documents_ = 0;
  std::variant<LargeArray<std::uint16_t>, LargeArray<std::uint32_t>> text_;
};

}  // namespace foretoken
