#include "core/datastore/index/segment.h"

#include "core/datastore/index/suffix_sort.h"

namespace foretoken {
namespace {

struct OwnedParts {
  TokenText text;
  SuffixOrder order;
};

template <typename T>
Status CheckOrderOf(const T* text, const SegmentParts& parts) {
  for (int token = 0; token < parts.vocabulary; ++token) {
    const std::uint32_t begin = parts.buckets[token];
    const std::uint32_t end = parts.buckets[token + 1];
    if (begin > end) return Invalid("bucket {} ends before it begins", token);
    const auto bucket = parts.suffixes.subspan(begin, end - begin);
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      if (text[bucket[i]] != static_cast<T>(token)) {
        return Invalid("suffix {} of the bucket of token {} starts with token {}", i, token,
                       text[bucket[i]]);
      }
      if (i > 0 && !SuffixBefore(text, bucket[i - 1], bucket[i])) {
        return Invalid("suffixes {} and {} of the bucket of token {} are out of order", i - 1, i,
                       token);
      }
    }
  }
  // Distinct, as they ascend strictly, and as many as there are tokens: none is missing.
  return {};
}

}  // namespace

std::shared_ptr<const Segment> Segment::Build(TokenText text, int threads,
                                              const std::atomic<bool>* cancelled) {
  auto owned = std::make_shared<OwnedParts>(OwnedParts{std::move(text), {}});
  SegmentParts parts;
  parts.entries = owned->text.entries();
  parts.documents = owned->text.documents();
  parts.vocabulary = owned->text.vocabulary();
  owned->text.Visit([&]<typename T>(LargeArray<T>& entries) {
    for (int i = 0; i < kSortDepth; ++i) entries.PushBack(kSeparator<T>);
    owned->order =
        SortSuffixes(entries.span().first(parts.entries), parts.vocabulary, threads, cancelled);
    parts.text = entries.data();
  });
  if (cancelled != nullptr && *cancelled) return nullptr;
  parts.suffixes = owned->order.suffixes.span();
  parts.buckets = owned->order.buckets.span();
  return std::make_shared<const Segment>(parts, std::move(owned));
}

std::uint64_t Segment::bytes() const {
  return (parts_.entries + kSortDepth) * token_bytes() + parts_.suffixes.size_bytes() +
         parts_.buckets.size_bytes();
}

Status Segment::AppendTo(TokenText* text) const {
  return Visit([&]<typename T>(const T* entries) {
    return text->AppendEntries(std::span<const T>(entries, parts_.entries), parts_.documents);
  });
}

Status Segment::CheckOrder() const {
  return Visit([this](const auto* text) { return CheckOrderOf(text, parts_); });
}

}  // namespace foretoken
