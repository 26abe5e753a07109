#include "core/datastore/storage/entry_log.h"

#include <xxhash.h>

#include <array>
#include <cstring>

#include "base/check.h"
#include "base/files/mapped_file.h"
#include "core/datastore/storage/segment_file.h"

namespace foretoken {
namespace {

struct LogHeader {
  std::array<char, 8> magic = {'F', 'T', 'E', 'N', 'T', 'L', 'O', 'G'};
  std::uint32_t version = 1;
  std::uint32_t byte_order = 0x01020304;
  std::array<char, 64> fingerprint = {};
};
static_assert(sizeof(LogHeader) == 80);

LogHeader HeaderFor(std::string_view fingerprint) {
  FT_CHECK(IsFingerprint(fingerprint), "fingerprint '{}'", fingerprint);
  LogHeader header;
  fingerprint.copy(header.fingerprint.data(), header.fingerprint.size());
  return header;
}

// The checksum of a record's tokens; the seed makes the length part of it, so that zeros are no
// record.
std::uint32_t RecordChecksum(std::span<const std::byte> tokens) {
  return XXH32(tokens.data(), tokens.size(), static_cast<std::uint32_t>(tokens.size()) + 1);
}

}  // namespace

Result<std::unique_ptr<EntryLogWriter>> EntryLogWriter::Create(FileSystem* files,
                                                               const std::filesystem::path& path,
                                                               std::string_view fingerprint) {
  FT_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files->Create(path));
  const LogHeader header = HeaderFor(fingerprint);
  FT_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(&header, 1))));
  FT_RETURN_IF_ERROR(file->Sync());
  FT_RETURN_IF_ERROR(files->SyncDirectory(path.parent_path()));
  return std::unique_ptr<EntryLogWriter>(new EntryLogWriter(std::move(file)));
}

Result<std::unique_ptr<EntryLogWriter>> EntryLogWriter::Continue(
    FileSystem* files, const std::filesystem::path& path) {
  FT_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files->OpenToAppend(path));
  return std::unique_ptr<EntryLogWriter>(new EntryLogWriter(std::move(file)));
}

Status EntryLogWriter::Append(std::span<const Token> document) {
  record_.resize(2);
  record_.insert(record_.end(), document.begin(), document.end());
  record_[0] = static_cast<std::uint32_t>(document.size());
  record_[1] = RecordChecksum(std::as_bytes(std::span(record_).subspan(2)));
  return file_->Append(std::as_bytes(std::span(record_)));
}

Result<LogContents> ParseEntryLog(std::span<const std::byte> file, std::string_view fingerprint,
                                  std::string_view where) {
  LogContents contents;
  const LogHeader wanted = HeaderFor(fingerprint);
  LogHeader header;
  if (file.size() < sizeof(header)) return contents;  // Died while creating it.
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(&header, &wanted, offsetof(LogHeader, fingerprint)) != 0) {
    return Invalid("{}: is not a datastore log that this program reads", where);
  }
  if (header.fingerprint != wanted.fingerprint) {
    return Invalid("{}: holds tokens of another tokenizer (fingerprint {:.12}..., not {:.12}...)",
                   where, std::string_view(header.fingerprint.data(), 64), fingerprint);
  }
  std::size_t at = sizeof(header);
  for (;;) {
    contents.good_bytes = at;
    std::array<std::uint32_t, 2> head;  // Length and checksum.
    if (file.size() - at < sizeof(head)) break;
    std::memcpy(head.data(), file.data() + at, sizeof(head));
    at += sizeof(head);
    if (head[0] > (file.size() - at) / sizeof(Token)) break;
    const auto tokens = file.subspan(at, head[0] * sizeof(Token));
    if (RecordChecksum(tokens) != head[1]) break;
    at += tokens.size();
    std::vector<Token>& document = contents.documents.emplace_back(head[0]);
    if (!tokens.empty()) std::memcpy(document.data(), tokens.data(), tokens.size());
  }
  return contents;
}

Result<LogContents> ReadEntryLog(const std::filesystem::path& path, std::string_view fingerprint) {
  FT_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                      MappedFile::Open(path, WhenLost::kZeros));
  return ParseEntryLog(file->bytes(), fingerprint, path.string());
}

}  // namespace foretoken
