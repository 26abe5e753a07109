#include "door/learning/capture_file.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/files/private_files.h"
#include "base/text/parse_number.h"
#include "core/weights/write_safetensors.h"

namespace foretoken {
namespace {

constexpr std::string_view kPrefix = "capture-";
constexpr std::string_view kSuffix = ".safetensors";

// The captures of a folder, which is made where it is not there, the oldest first.
Result<std::vector<std::filesystem::path>> CapturesIn(const std::filesystem::path& folder) {
  FT_RETURN_IF_ERROR(MakePrivateFolders(folder));
  std::error_code error;
  std::vector<std::filesystem::path> captures;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) captures.push_back(entry.path());
  }
  if (error) {
    return Invalid("{} cannot be read: {}", folder.string(), error.message());
  }
  std::ranges::sort(captures);
  return captures;
}

// The number in capture-00012.safetensors; -1: it has none.
int NumberOf(const std::filesystem::path& capture) {
  const std::string name = capture.filename().string();
  const auto digits =
      std::string_view(name).substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  int number = -1;
  return ParseNumber(digits, &number) ? number : -1;
}

}  // namespace

Result<CaptureWriter> CaptureWriter::Begin(std::filesystem::path folder, Source source,
                                           std::size_t file_bytes) {
  FT_ASSIGN_OR_RETURN(const auto captures, CapturesIn(folder));
  if (!captures.empty()) {
    return Invalid(
        "{} holds captures already, such as {}: choose another folder, or move them away",
        folder.string(), captures.front().filename().string());
  }
  return CaptureWriter(std::move(folder), std::move(source), file_bytes);
}

Result<CaptureWriter> CaptureWriter::GoOn(std::filesystem::path folder, Source source,
                                          std::size_t file_bytes, std::size_t most_bytes) {
  FT_ASSIGN_OR_RETURN(const auto captures, CapturesIn(folder));
  CaptureWriter writer(std::move(folder), std::move(source), file_bytes);
  writer.most_bytes_ = most_bytes;
  if (!captures.empty()) writer.first_ = NumberOf(captures.back()) + 1;
  return writer;
}

CaptureWriter::CaptureWriter(std::filesystem::path folder, Source source, std::size_t file_bytes)
    : folder_(std::move(folder)), source_(std::move(source)), file_bytes_(file_bytes) {}

Status CaptureWriter::Add(std::span<const Token> tokens, std::size_t prompt_tokens,
                          std::span<const BFloat16> states) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  for (std::size_t i = 0; i < tokens.size(); ++i) answer_.push_back(i >= prompt_tokens ? 1 : 0);
  const std::size_t hidden = source_.hidden;
  const std::size_t taps = source_.layers.size() * hidden;
  for (const BFloat16* row = states.data(); row != states.data() + states.size();
       row += taps + hidden) {
    taps_.insert(taps_.end(), row, row + taps);
    final_.insert(final_.end(), row + taps, row + taps + hidden);
  }
  starts_.push_back(std::ssize(tokens_));
  const std::size_t bytes = (taps_.size() + final_.size()) * sizeof(BFloat16);
  return bytes < file_bytes_ ? Status() : WriteFile();
}

Status CaptureWriter::Finish() { return tokens_.empty() ? Status() : WriteFile(); }

Status CaptureWriter::WriteFile() {
  const auto count = std::ssize(tokens_);
  const std::vector<int>& layers = source_.layers;
  const std::int64_t hidden = source_.hidden;
  const std::array entries = {
      SafetensorsEntry{"tokens", "I32", {count}, std::as_bytes(std::span(tokens_))},
      SafetensorsEntry{"answer", "U8", {count}, std::as_bytes(std::span(answer_))},
      SafetensorsEntry{"starts", "I64", {std::ssize(starts_)}, std::as_bytes(std::span(starts_))},
      SafetensorsEntry{
          "taps", "BF16", {count, std::ssize(layers) * hidden}, std::as_bytes(std::span(taps_))},
      SafetensorsEntry{"final", "BF16", {count, hidden}, std::as_bytes(std::span(final_))}};
  FT_RETURN_IF_ERROR(
      WriteSafetensors(folder_ / fmt::format("{}{:05}{}", kPrefix, first_ + files_, kSuffix),
                       {{"format", "1"},
                        {"layers", fmt::format("{}", fmt::join(layers, ","))},
                        {"tokenizer", source_.tokenizer}},
                       entries, kPrivateFile));
  ++files_;
  all_texts_ += std::ssize(starts_) - 1;
  all_tokens_ += count;
  for (const SafetensorsEntry& entry : entries) all_bytes_ += std::ssize(entry.data);
  tokens_.clear();
  answer_.clear();
  starts_.assign(1, 0);
  taps_.clear();
  final_.clear();
  if (most_bytes_ > 0) RemoveOldest();
  return {};
}

void CaptureWriter::RemoveOldest() const {
  const auto captures = CapturesIn(folder_);
  if (!captures.ok()) return;
  std::error_code ignored;
  std::uintmax_t bytes = 0;
  for (const auto& capture : *captures) bytes += std::filesystem::file_size(capture, ignored);
  // The last one stays, however large it is.
  for (std::size_t i = 0; i + 1 < captures->size() && bytes > most_bytes_; ++i) {
    bytes -= std::filesystem::file_size((*captures)[i], ignored);
    std::filesystem::remove((*captures)[i], ignored);
  }
}

}  // namespace foretoken
