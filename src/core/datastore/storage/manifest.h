#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/datastore/storage/segment_file.h"

namespace foretoken {

/// Documents that follow one another and came on the same day.
struct Arrivals {
  int day = 0;  ///< Days since the first of January 1970, UTC.
  std::uint64_t documents = 0;
  friend bool operator==(const Arrivals&, const Arrivals&) = default;
};

/// Adds what came behind all of `arrivals`.
void AddArrivals(Arrivals more, std::vector<Arrivals>* arrivals);

/// The day of each document in turn.
class ArrivalDays {
 public:
  /// `arrivals` must outlive it.
  explicit ArrivalDays(std::span<const Arrivals> arrivals) : arrivals_(arrivals) {}
  /// The day of the next document; that of the last one where there are no more.
  int Next();

 private:
  std::span<const Arrivals> arrivals_;
  std::uint64_t given_ = 0;  // How many documents of the first of `arrivals_` were given.
};

/// What a datastore consists of at one moment. The file MANIFEST holds it as lines of text that end
/// with a checksum; replacing that file is what commits every change.
struct Manifest {
  struct SegmentEntry {
    std::uint64_t number = 0;  ///< Names its file.
    std::uint64_t tokens = 0;
    std::uint64_t documents = 0;
    /// When these came, in their order; empty where an earlier version wrote the manifest.
    std::vector<Arrivals> arrivals;
    friend bool operator==(const SegmentEntry&, const SegmentEntry&) = default;
  };

  TokenizerIdentity tokenizer;
  std::uint64_t next_number = 1;       ///< Greater than that of every file so far.
  std::uint64_t first_log = 1;         ///< Logs from this number on hold what no segment does.
  std::vector<SegmentEntry> segments;  ///< Oldest first.
};

std::string FormatManifest(const Manifest& manifest);
Result<Manifest> ParseManifest(std::string_view content, std::string_view where);

std::filesystem::path ManifestPath(const std::filesystem::path& directory);
std::filesystem::path SegmentPath(const std::filesystem::path& directory, std::uint64_t number);
std::filesystem::path LogPath(const std::filesystem::path& directory, std::uint64_t number);
/// The number in the name of a log or segment file; 0 where it is neither.
std::uint64_t FileNumber(const std::filesystem::path& path);

Status WriteManifest(FileSystem* files, const std::filesystem::path& directory,
                     const Manifest& manifest);
Result<Manifest> ReadManifest(const std::filesystem::path& directory);

}  // namespace foretoken
