#include "core/kv/prefix_file.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/files/byte_reader.h"

namespace foretoken {
namespace {

constexpr std::string_view kMagic = "FTPREFIX";
constexpr std::uint32_t kVersion = 1;

template <typename T>
void Append(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void AppendText(std::string_view text, std::string* out) {
  Append(static_cast<std::uint32_t>(text.size()), out);
  *out += text;
}

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool ReadText(ByteReader* reader, std::string* text) {
  const auto read = reader->ReadText<std::uint32_t>();
  if (read) text->assign(*read);
  return read.has_value();
}

bool ReadTokens(ByteReader* reader, std::vector<Token>* tokens) {
  const auto count = reader->Read<std::uint32_t>();
  const auto bytes = count ? reader->Skip(std::uint64_t{*count} * sizeof(Token)) : std::nullopt;
  if (!bytes || *count == 0) return false;
  tokens->resize(*count);
  std::memcpy(tokens->data(), bytes->data(), bytes->size());
  return std::ranges::min(*tokens) >= 0;
}

bool ReadHead(ByteReader* reader, PrefixFileHead* head) {
  if (!ReadText(reader, &head->model) || !ReadText(reader, &head->adapter)) return false;
  const auto scale = reader->Read<float>();
  if (!scale || !ReadText(reader, &head->numbers) || !ReadText(reader, &head->owner)) return false;
  head->adapter_scale = *scale;
  if (!ReadTokens(reader, &head->tokens)) return false;
  const auto blocks = reader->Read<std::uint32_t>();
  const auto bytes = reader->Read<std::uint64_t>();
  head->blocks = blocks.value_or(0);
  head->bytes = bytes.value_or(0);
  return bytes.has_value();
}

}  // namespace

std::string FormatPrefixFileHead(const PrefixFileHead& head) {
  std::string out(kMagic);
  Append(kVersion, &out);
  AppendText(head.model, &out);
  AppendText(head.adapter, &out);
  Append(head.adapter_scale, &out);
  AppendText(head.numbers, &out);
  AppendText(head.owner, &out);
  Append(static_cast<std::uint32_t>(head.tokens.size()), &out);
  out.append(reinterpret_cast<const char*>(head.tokens.data()), head.tokens.size() * sizeof(Token));
  Append(head.blocks, &out);
  Append(head.bytes, &out);
  return out;
}

Result<PrefixFile> ParsePrefixFile(std::span<const std::byte> bytes, std::string_view name) {
  ByteReader reader(bytes);
  const auto magic = reader.SkipText(kMagic.size());
  const auto version = reader.Read<std::uint32_t>();
  if (magic != kMagic || !version) {
    return Invalid("'{}' is no file of saved keys and values", name);
  }
  if (*version != kVersion) {
    return Invalid(
        "'{}' is of version {} of its form, and this program reads version {}: save the text again",
        name, *version, kVersion);
  }
  PrefixFile file;
  if (!ReadHead(&reader, &file.head)) {
    return Invalid("'{}' is damaged: it ends early or its beginning is wrong", name);
  }
  const auto kept = reader.Skip(file.head.bytes);
  if (!kept || reader.left() != PrefixDigest::kBytes) {
    return Invalid("'{}' is damaged: it has {} bytes, which are not as many as it says", name,
                   bytes.size());
  }
  file.kept = *kept;
  return file;
}

Status CheckPrefixDigest(std::span<const std::byte> bytes, std::string_view name) {
  const auto written = bytes.last(PrefixDigest::kBytes);
  PrefixDigest digest;
  digest.Update(TextOf(bytes.first(bytes.size() - written.size())));
  if (digest.Finish() == TextOf(written)) return {};
  return Invalid("'{}' is damaged: its content is not what was written", name);
}

}  // namespace foretoken
