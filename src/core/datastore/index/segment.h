#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/datastore/index/token_text.h"
#include "foretoken/types.h"

namespace foretoken {

/// Where a segment's parts lie in memory.
struct SegmentParts {
  const void* text = nullptr;  ///< `entries` tokens and separators, then kSortDepth separators.
  std::uint64_t entries = 0;
  std::uint64_t documents = 0;
  int vocabulary = 0;
  std::span<const std::uint32_t> suffixes;  ///< SuffixOrder's, one per token.
  std::span<const std::uint32_t> buckets;   ///< SuffixOrder's: vocabulary + 1.
  /// Whether some of it reads as zeros now (MappedFile::lost); null: never.
  const std::atomic<bool>* lost = nullptr;
};

/// Documents with their suffixes in order: what retrieval searches. Immutable and thread-safe; its
/// memory is its own or a mapped file.
class Segment {
 public:
  /// Sorts `text` on `threads` threads. Takes 4 bytes per token beside the text, and a little.
  /// Null when `*cancelled` meanwhile.
  static std::shared_ptr<const Segment> Build(TokenText text, int threads,
                                              const std::atomic<bool>* cancelled = nullptr);

  /// A segment of `parts` that live as long as `memory` does. The caller vouches for them.
  Segment(const SegmentParts& parts, std::shared_ptr<const void> memory)
      : parts_(parts), memory_(std::move(memory)) {}

  const SegmentParts& parts() const { return parts_; }
  int vocabulary() const { return parts_.vocabulary; }
  int token_bytes() const { return TokenBytesFor(parts_.vocabulary); }
  std::uint64_t tokens() const { return parts_.suffixes.size(); }
  std::uint64_t documents() const { return parts_.documents; }
  /// Some of its content is gone. It may still be searched, but what is found is worth nothing.
  bool lost() const { return parts_.lost != nullptr && parts_.lost->load(); }
  /// Bytes of text, suffixes and buckets.
  std::uint64_t bytes() const;

  /// Calls `visit` with the entries as const uint16_t* or const uint32_t*.
  template <typename Visitor>
  decltype(auto) Visit(Visitor&& visit) const {
    return token_bytes() == 2 ? visit(static_cast<const std::uint16_t*>(parts_.text))
                              : visit(static_cast<const std::uint32_t*>(parts_.text));
  }

  /// Calls `visit` with the documents in order, each as std::span<const Token> that lasts as long
  /// as the call.
  template <typename Visitor>
  void VisitDocuments(Visitor&& visit) const {
    Visit([&]<typename T>(const T* text) {
      std::vector<Token> document;
      for (std::uint64_t i = 0; i < parts_.entries; ++i) {
        if (text[i] != kSeparator<T>) {
          document.push_back(static_cast<Token>(text[i]));
        } else {
          visit(std::span<const Token>(document));
          document.clear();
        }
      }
    });
  }

  /// Appends the documents of this segment to `text`, of the same vocabulary.
  Status AppendTo(TokenText* text) const;

  /// Whether the suffixes are all there and in order: as much work as sorting them (`verify`).
  Status CheckOrder() const;

 private:
  SegmentParts parts_;
  std::shared_ptr<const void> memory_;
};

}  // namespace foretoken
