#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>

namespace foretoken {

/// What becomes of a read from a mapped file whose bytes are there no more, since another program
/// has truncated the file or the disk fails.
enum class WhenLost {
  kEnd,   ///< One sentence, and the process ends with exit code 1: nothing may be computed from it.
  kZeros  ///< Reads as zeros from there on, and `lost()` says so.
};

/// Keeps such a read, for which the system raises SIGBUS, from killing the process without a word.
/// From the first watch on a handler is in place; other SIGBUS go to the one that was there before.
class MappingWatch {
 public:
  /// Watches a private mapping until destroyed; `name` is the file's. Nothing reads the mapping
  /// when it is destroyed.
  MappingWatch(std::span<const std::byte> mapping, WhenLost when, std::string_view name);
  ~MappingWatch();
  MappingWatch(const MappingWatch&) = delete;
  MappingWatch& operator=(const MappingWatch&) = delete;

  /// Set before the first zero is read.
  const std::atomic<bool>& lost() const { return *lost_; }

  struct Entry;

 private:
  Entry* entry_;
  const std::atomic<bool>* lost_;
};

}  // namespace foretoken
