#include "cli/capture/capture_file.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "weights/write_safetensors.h"

namespace foretoken {

Result<CaptureWriter> CaptureWriter::Begin(std::filesystem::path folder, Source source,
                                           std::size_t file_bytes) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return InvalidInput(fmt::format("{} cannot be made: {}", folder.string(), error.message()));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("capture-") || !name.ends_with(".safetensors")) continue;
    return InvalidInput(fmt::format(
        "{} holds captures already, such as {}: choose another folder, or move them away",
        folder.string(), name));
  }
  if (error) {
    return InvalidInput(fmt::format("{} cannot be read: {}", folder.string(), error.message()));
  }
  return CaptureWriter(std::move(folder), std::move(source), file_bytes);
}

CaptureWriter::CaptureWriter(std::filesystem::path folder, Source source, std::size_t file_bytes)
    : folder_(std::move(folder)), source_(std::move(source)), file_bytes_(file_bytes) {}

Status CaptureWriter::Add(std::span<const Token> tokens, std::size_t prompt_tokens,
                          std::span<const BFloat16> states) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  for (std::size_t i = 0; i < tokens.size(); ++i) answer_.push_back(i >= prompt_tokens ? 1 : 0);
  const auto hidden = static_cast<std::size_t>(source_.hidden);
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
  FT_RETURN_IF_ERROR(WriteSafetensors(folder_ / fmt::format("capture-{:05}.safetensors", files_),
                                      {{"format", "1"},
                                       {"layers", fmt::format("{}", fmt::join(layers, ","))},
                                       {"tokenizer", source_.tokenizer}},
                                      entries));
  ++files_;
  all_tokens_ += count;
  for (const SafetensorsEntry& entry : entries) all_bytes_ += std::ssize(entry.data);
  tokens_.clear();
  answer_.clear();
  starts_.assign(1, 0);
  taps_.clear();
  final_.clear();
  return {};
}

}  // namespace foretoken
