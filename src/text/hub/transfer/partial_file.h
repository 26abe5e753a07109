#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {

/// A file of known size that comes in pieces, several at a time and each from its front. On disk it
/// has its bytes at their places and, behind them, a record of how many of each piece are there: it
/// can be gone on with from wherever its writer was stopped. One process writes it at a time.
class PartialFile {
 public:
  /// Goes on with what lies at `path` where that is one of this size and of this account, else
  /// begins anew, in pieces of `piece_bytes`.
  static Result<PartialFile> Open(const std::filesystem::path& path, std::uint64_t size,
                                  std::uint64_t piece_bytes);
  ~PartialFile();
  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&&) = delete;

  /// Forgets what is there and begins anew.
  Status StartOver(std::uint64_t piece_bytes);

  std::size_t pieces() const { return done_.size(); }
  /// Where a piece begins, where its next byte belongs, and where it ends.
  std::uint64_t begin(std::size_t piece) const { return piece * piece_bytes_; }
  std::uint64_t next(std::size_t piece) const { return begin(piece) + done_[piece]; }
  std::uint64_t end(std::size_t piece) const;
  std::uint64_t size() const { return size_; }
  std::uint64_t done() const;
  bool complete() const { return done() == size_; }

  /// Writes the next bytes of a piece, which must not be more than it lacks.
  Status Append(std::size_t piece, std::string_view bytes);
  /// Drops what is there of a piece.
  Status Restart(std::size_t piece);

  /// Once it is complete: makes sure that it is on disk, without the record, and gives it its name.
  Status Finish(const std::filesystem::path& name);

 private:
  PartialFile(std::filesystem::path path, int descriptor, std::uint64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  bool ReadRecord();
  Status WriteDone(std::size_t piece);
  Error Failed() const;

  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t size_;
  std::uint64_t piece_bytes_ = 1;
  std::vector<std::uint64_t> done_;
};

}  // namespace foretoken
