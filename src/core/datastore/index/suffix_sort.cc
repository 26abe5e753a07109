#include "core/datastore/index/suffix_sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "base/threads/run_threads.h"

namespace foretoken {
namespace {

constexpr std::size_t kDirect = 12;                      // Fewer: compared token by token.
constexpr std::size_t kGathered = std::size_t{1} << 20;  // More: partitioned in place first.
constexpr std::size_t kChunk = std::size_t{1} << 14;     // Suffixes a thread takes at a time.

// As many of the next tokens as fit 64 bits, so that most comparisons are one instruction. A
// separator becomes `vocabulary`, the greatest value.
template <typename T>
class KeyPacker {
 public:
  KeyPacker(const T* text, int vocabulary)
      : text_(text),
        greatest_(static_cast<std::uint32_t>(vocabulary)),
        bits_(std::bit_width(greatest_)),
        tokens_(std::min(64 / bits_, kSortDepth)) {}

  int tokens() const { return tokens_; }
  const T* at(std::uint32_t position, int depth) const { return text_ + position + depth; }
  // The key of the suffix at `position` from its token `depth` on; no token beyond kSortDepth.
  std::uint64_t Key(std::uint32_t position, int depth) const {
    const T* next = at(position, depth);
    const int count = std::min(tokens_, kSortDepth - depth);
    std::uint64_t key = 0;
    for (int i = 0; i < count; ++i) {
      key = key << bits_ | std::min(static_cast<std::uint32_t>(next[i]), greatest_);
    }
    return key;
  }

 private:
  const T* text_;
  std::uint32_t greatest_;
  int bits_;
  int tokens_;
};

// Suffixes that agree in their first `depth` tokens and stand where they belong as a group.
struct Piece {
  std::uint32_t* first;
  std::size_t size;
  int depth;
};

// Sorts pieces of up to kGathered suffixes; one per thread.
template <typename T>
class PieceSorter {
 public:
  explicit PieceSorter(const KeyPacker<T>* packer) : packer_(packer) {}

  void Sort(Piece piece) {
    if (piece.depth >= kSortDepth || piece.size < 2) return;
    if (piece.size <= kDirect) {
      SortDirectly(piece);
    } else {
      SortGathered(piece);
    }
  }

 private:
  struct Keyed {
    std::uint64_t key;
    std::uint32_t position;
    bool operator<(const Keyed& other) const {
      return key != other.key ? key < other.key : position < other.position;
    }
  };

  void SortDirectly(Piece piece) {
    std::sort(piece.first, piece.first + piece.size,
              [text = packer_->at(0, 0), depth = piece.depth](std::uint32_t a, std::uint32_t b) {
                return SuffixBefore(text, a, b, depth);
              });
  }

  void SortGathered(Piece piece) {
    if (gathered_.size() < piece.size) gathered_.resize(piece.size);
    for (std::size_t i = 0; i < piece.size; ++i) {
      gathered_[i] = {packer_->Key(piece.first[i], piece.depth), piece.first[i]};
    }
    std::sort(gathered_.begin(), gathered_.begin() + piece.size);
    for (std::size_t i = 0; i < piece.size; ++i) piece.first[i] = gathered_[i].position;
    // A run of equal keys is sorted on by later tokens. That reuses the front of `gathered_`, where
    // every key has been looked at by then.
    for (std::size_t begin = 0; begin < piece.size;) {
      const std::uint64_t key = gathered_[begin].key;
      std::size_t end = begin + 1;
      while (end < piece.size && gathered_[end].key == key) ++end;
      Sort({piece.first + begin, end - begin, piece.depth + packer_->tokens()});
      begin = end;
    }
  }

  const KeyPacker<T>* packer_;
  std::vector<Keyed> gathered_;
};

// Hands out work: giant pieces, which are partitioned and come back as smaller ones, and before
// them chunks of the ordinary buckets.
class WorkList {
 public:
  WorkList(std::uint32_t* suffixes, std::span<const std::uint32_t> buckets)
      : suffixes_(suffixes), buckets_(buckets) {
    for (std::size_t t = 0; t + 1 < buckets_.size(); ++t) {
      const std::size_t size = buckets_[t + 1] - buckets_[t];
      if (size > kGathered) giant_.push_back({suffixes_ + buckets_[t], size, 1});
    }
  }

  // Fills `pieces` with work; false when all is done. `Done` must follow each that was given out.
  bool Next(std::vector<Piece>* pieces) {
    pieces->clear();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !giant_.empty() || HasBuckets() || working_ == 0; });
    if (!giant_.empty()) {
      pieces->push_back(giant_.back());
      giant_.pop_back();
    } else if (HasBuckets()) {
      TakeBuckets(pieces);
    } else {
      return false;
    }
    ++working_;
    return true;
  }

  void Done(std::span<const Piece> more) {
    {
      const std::scoped_lock lock(mutex_);
      giant_.insert(giant_.end(), more.begin(), more.end());
      --working_;
    }
    changed_.notify_all();
  }

 private:
  bool HasBuckets() const { return next_bucket_ + 1 < buckets_.size(); }
  void TakeBuckets(std::vector<Piece>* pieces) {
    std::size_t taken = 0;
    for (; HasBuckets() && taken < kChunk; ++next_bucket_) {
      const std::size_t begin = buckets_[next_bucket_];
      const std::size_t size = buckets_[next_bucket_ + 1] - begin;
      if (size < 2 || size > kGathered) continue;
      pieces->push_back({suffixes_ + begin, size, 1});
      taken += size;
    }
  }

  std::uint32_t* suffixes_;
  std::span<const std::uint32_t> buckets_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Piece> giant_;
  std::size_t next_bucket_ = 0;
  int working_ = 0;
};

// Splits a giant piece in place into suffixes with a smaller, the same and a greater key than a
// pivot: memory for a key of each suffix would exceed what a build may take.
template <typename T>
std::array<Piece, 3> Partition(const KeyPacker<T>& packer, Piece piece) {
  constexpr std::size_t kSamples = 63;
  std::array<std::uint64_t, kSamples> samples;
  for (std::size_t i = 0; i < kSamples; ++i) {
    samples[i] = packer.Key(piece.first[i * (piece.size / kSamples)], piece.depth);
  }
  std::nth_element(samples.begin(), samples.begin() + kSamples / 2, samples.end());
  const std::uint64_t pivot = samples[kSamples / 2];
  std::size_t less = 0;
  std::size_t greater = piece.size;
  for (std::size_t i = 0; i < greater;) {
    const std::uint64_t key = packer.Key(piece.first[i], piece.depth);
    if (key < pivot) {
      std::swap(piece.first[less++], piece.first[i++]);
    } else if (key > pivot) {
      std::swap(piece.first[i], piece.first[--greater]);
    } else {
      ++i;
    }
  }
  return {Piece{piece.first, less, piece.depth},
          Piece{piece.first + less, greater - less, piece.depth + packer.tokens()},
          Piece{piece.first + greater, piece.size - greater, piece.depth}};
}

// Sorts a piece; a giant one is only split, into `more`.
template <typename T>
void SortPiece(const KeyPacker<T>& packer, const Piece& piece, PieceSorter<T>* sorter,
               std::vector<Piece>* more) {
  if (piece.depth >= kSortDepth) {  // Partitioning has disturbed the order of positions.
    std::sort(piece.first, piece.first + piece.size);
  } else if (piece.size <= kGathered) {
    sorter->Sort(piece);
  } else {
    for (const Piece& part : Partition(packer, piece)) {
      if (part.size > 0) more->push_back(part);
    }
  }
}

template <typename T>
void SortPieces(const KeyPacker<T>& packer, const std::atomic<bool>* cancelled, WorkList* list) {
  PieceSorter<T> sorter(&packer);
  std::vector<Piece> pieces;
  std::vector<Piece> more;
  while (list->Next(&pieces)) {
    more.clear();
    if (cancelled != nullptr && *cancelled) pieces.clear();
    try {
      for (const Piece& piece : pieces) SortPiece(packer, piece, &sorter, &more);
    } catch (...) {  // Out of memory: the other threads must not wait for this one.
      list->Done({});
      throw;
    }
    list->Done(more);
  }
}

}  // namespace

template <typename T>
SuffixOrder SortSuffixes(std::span<const T> entries, int vocabulary, int threads,
                         const std::atomic<bool>* cancelled) {
  FT_CHECK(entries.size() <= kMaxTextEntries, "{} entries", entries.size());
  const std::size_t size = entries.size();
  const auto slice = [&](int t) { return size * t / threads; };
  const std::size_t buckets = vocabulary;

  // Counting by first token; then every thread knows where the suffixes of its slice go.
  std::vector<std::vector<std::uint32_t>> places(threads);
  RunThreads(threads, [&](int t) {
    places[t].resize(buckets);
    for (std::size_t i = slice(t); i < slice(t + 1); ++i) {
      if (entries[i] != kSeparator<T>) ++places[t][entries[i]];
    }
  });
  SuffixOrder order;
  order.buckets.Resize(buckets + 1);
  std::uint32_t place = 0;
  for (std::size_t token = 0; token < buckets; ++token) {
    order.buckets[token] = place;
    for (auto& thread_places : places) place += std::exchange(thread_places[token], place);
  }
  order.buckets[buckets] = place;
  order.suffixes.Resize(place);
  RunThreads(threads, [&](int t) {
    for (std::size_t i = slice(t); i < slice(t + 1); ++i) {
      if (entries[i] == kSeparator<T>) continue;
      order.suffixes[places[t][entries[i]]++] = static_cast<std::uint32_t>(i);
    }
  });

  const KeyPacker<T> packer(entries.data(), vocabulary);
  WorkList list(order.suffixes.data(), order.buckets.span());
  RunThreads(threads, [&](int) { SortPieces(packer, cancelled, &list); });
  return order;
}

template SuffixOrder SortSuffixes(std::span<const std::uint16_t>, int, int,
                                  const std::atomic<bool>*);
template SuffixOrder SortSuffixes(std::span<const std::uint32_t>, int, int,
                                  const std::atomic<bool>*);

}  // namespace foretoken
