#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "datastore/storage/segment_file.h"

namespace foretoken {

/// What a datastore consists of at one moment. The file MANIFEST holds it as lines of text that end
/// with a checksum; replacing that file is what commits every change.
struct Manifest {
  struct SegmentEntry {
    std::uint64_t number = 0;  ///< Names its file.
    std::uint64_t tokens = 0;
    std::uint64_t documents = 0;
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
