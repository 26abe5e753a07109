// A file of saved keys and values: whatever comes is read or refused in one sentence, and what is
// read is what would be written again.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "core/kv/prefix_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace foretoken;  // NOLINT: a program of its own.
  const auto bytes = std::as_bytes(std::span(data, size));
  const Result<PrefixFile> file = ParsePrefixFile(bytes, "fuzz");
  if (!file.ok()) {
    FT_CHECK(!file.error().message.empty());
    FT_CHECK(file.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const std::string head = FormatPrefixFileHead(file->head);
  FT_CHECK(head == std::string_view(reinterpret_cast<const char*>(data), head.size()));
  FT_CHECK(head.size() + file->kept.size() + PrefixDigest::kBytes == size);
  FT_CHECK(file->kept.size() == file->head.bytes && !file->head.tokens.empty());
  static_cast<void>(CheckPrefixDigest(bytes, "fuzz"));
  return 0;
}
