#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/datastore/storage/files.h"
#include "foretoken/types.h"

namespace foretoken {

// Live entries, before a segment holds them: a header with the tokenizer's fingerprint, then one
// record a document: length, checksum, tokens. What follows the first bad record was never promised
// to anybody.

/// Appends documents to a log file of its own. Not thread-safe.
class EntryLogWriter {
 public:
  /// Creates the file; a crash may leave it empty or with a part of its header.
  static Result<std::unique_ptr<EntryLogWriter>> Create(FileSystem* files,
                                                        const std::filesystem::path& path,
                                                        std::string_view fingerprint);
  /// Goes on with a log whose records are all good.
  static Result<std::unique_ptr<EntryLogWriter>> Continue(FileSystem* files,
                                                          const std::filesystem::path& path);
  Status Append(std::span<const Token> document);
  Status Sync() { return file_->Sync(); }

 private:
  explicit EntryLogWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}

  std::unique_ptr<WritableFile> file_;
  std::vector<std::uint32_t> record_;
};

/// What a log holds.
struct LogContents {
  std::vector<std::vector<Token>> documents;
  std::uint64_t good_bytes = 0;  ///< Up to the end of the last good record; 0 without a header.
};

/// Reads up to the first bad record. Refuses a log of another tokenizer.
Result<LogContents> ParseEntryLog(std::span<const std::byte> file, std::string_view fingerprint,
                                  std::string_view where);
Result<LogContents> ReadEntryLog(const std::filesystem::path& path, std::string_view fingerprint);

}  // namespace foretoken
