#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/datastore/index/segment.h"
#include "core/datastore/storage/files.h"

namespace foretoken {

/// Whose tokens a datastore holds. Those of another tokenizer would be noise at best.
struct TokenizerIdentity {
  std::string name;         ///< For messages: the model's folder, usually.
  std::string fingerprint;  ///< Tokenizer::fingerprint(): 64 hexadecimal digits.
  int vocabulary = 0;

  /// An error that names both tokenizers unless `other` has the same tokens.
  Status CheckSame(const TokenizerIdentity& other, std::string_view where) const;
};

/// Whether `fingerprint` is 64 lower-case hexadecimal digits.
bool IsFingerprint(std::string_view fingerprint);

// A segment file is a header of 4 KiB (magic, version, byte order, token width, sorting depth,
// counts, fingerprint, place and XXH3 checksum of every section, its own checksum) and three
// sections that start on pages: text, suffixes, buckets.

/// Writes and publishes a segment.
Status WriteSegmentFile(FileSystem* files, const std::filesystem::path& path,
                        const Segment& segment, const TokenizerIdentity& tokenizer);

/// Maps a segment after checking all of it: checksums, and that no offset, position or token leaves
/// its bounds. Reads the whole file once, which also warms it up.
Result<std::shared_ptr<const Segment>> OpenSegmentFile(const std::filesystem::path& path,
                                                       const TokenizerIdentity& tokenizer);

/// The same for bytes in memory that live as long as `memory` and start on a multiple of 4. `lost`
/// says whether some of them read as zeros now (MappedFile::lost); null: never.
Result<std::shared_ptr<const Segment>> ParseSegment(std::span<const std::byte> file,
                                                    std::shared_ptr<const void> memory,
                                                    const TokenizerIdentity& tokenizer,
                                                    std::string_view where,
                                                    const std::atomic<bool>* lost = nullptr);

/// Sets all checksums to what they should be for the bytes as they are: for tests of what lies
/// behind them. Bytes that are too short stay as they are.
void ResealSegment(std::span<std::byte> file);

}  // namespace foretoken
