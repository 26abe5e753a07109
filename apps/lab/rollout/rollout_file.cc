#include "apps/lab/rollout/rollout_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/files/read_file.h"
#include "base/numbers/integers.h"

namespace foretoken {
namespace {

constexpr const char* kMark = "foretoken_rollout";
constexpr const char* kWeights = "weights";
constexpr std::size_t kShortDigits = 16;  // Digits of a fingerprint, in a line.

// The keys of headers that files may differ in and still be of the same samples.
constexpr const char* kTarget = "target";

// The double that is written like the float, with few digits.
Json Short(float value) {
  const std::string digits = fmt::format("{}", value);
  const Json number = Json::Parse(digits);
  return number.is_number() ? number : Json();  // Null for minus infinity.
}

double Sum(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum;
}

// Null where it is no line of a sample.
std::optional<FinishedSample> ParseSample(std::string_view line) {
  const Json object = Json::Parse(line);
  if (!object.is_object()) return std::nullopt;
  const auto prompt = object.find("prompt");
  const auto sample = object.find("sample");
  const auto tokens = object.find("tokens");
  if (prompt == object.end() || sample == object.end() || tokens == object.end()) {
    return std::nullopt;
  }
  if (!sample->is_number_integer() || !tokens->is_array()) return std::nullopt;
  return FinishedSample{prompt->dump(), sample->get<int>(), Int(tokens->size())};
}

// Where two headers differ first; nothing where they agree.
std::optional<std::string> DifferenceOf(const Json& before, const Json& now) {
  for (const auto& [key, value] : now.items()) {
    if (key == kTarget) continue;
    const auto found = before.find(key);
    if (found == before.end()) return fmt::format("without {}", key);
    if (*found != value) {
      return fmt::format("with {} {} rather than {}", key, found->dump(), value.dump());
    }
  }
  for (const auto& [key, value] : before.items()) {
    if (!now.contains(key)) return fmt::format("with {} {}", key, value.dump());
  }
  return std::nullopt;
}

}  // namespace

std::string FormatSample(const RolloutSample& sample, const std::string& weights) {
  Json logprobs = Json::array();
  for (const float logprob : sample.logprobs) logprobs.push_back(Short(logprob));
  const Json line = {
      {"prompt", sample.prompt},     {"sample", sample.sample},
      {"seed", sample.seed},         {"finish_reason", FinishReasonName(sample.finish)},
      {"text", sample.text},         {"tokens", sample.tokens},
      {"logprobs", logprobs},        {"logprob", Sum(sample.logprobs)},
      {"rounds", sample.rounds},     {"proposed", sample.proposed},
      {"accepted", sample.accepted}, {kWeights, weights}};
  return line.dump() + "\n";
}

void RolloutFile::Close::operator()(std::FILE* file) const {
  if (file != stdout) std::fclose(file);
}

Result<RolloutFile> RolloutFile::Open(const std::string& path, const Json& header) {
  const auto weights = header.find(kWeights);
  RolloutFile file(path, weights == header.end()
                             ? std::string()
                             : weights->get<std::string>().substr(0, kShortDigits));
  std::error_code error;
  if (!path.empty() && std::filesystem::exists(path, error)) {
    FT_RETURN_IF_ERROR(file.ReadBefore(header));
  }
  FT_RETURN_IF_ERROR(file.Append(header));
  return file;
}

Status RolloutFile::ReadBefore(const Json& header) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path_, error)) return {};  // A pipe, say.
  const Result<std::string> content = ReadFile(path_);
  if (!content.ok()) {
    return Invalid("cannot read '{}': {}", path_, content.error().message);
  }
  if (content->empty()) return {};
  std::size_t begin = 0;
  for (std::size_t end = content->find('\n'); end != std::string::npos;
       begin = end + 1, end = content->find('\n', begin)) {
    const std::string_view line = std::string_view(*content).substr(begin, end - begin);
    if (begin == 0) {
      const Json before = Json::Parse(line);
      if (!before.is_object() || !before.contains(kMark)) break;
      begun_ = true;
      if (const auto difference = DifferenceOf(before, header)) {
        return Invalid("'{}' holds samples made {}: name another file, or go on as they were begun",
                       path_, *difference);
      }
      continue;
    }
    const auto sample = ParseSample(line);
    if (!sample) {
      return Invalid("'{}' has something that is no sample behind {} of them", path_,
                     finished_.size());
    }
    finished_.push_back(*sample);
  }
  if (!begun_) {
    return Invalid("'{}' is there and was not written by rollout: name another file", path_);
  }
  if (begin == content->size()) return {};
  std::filesystem::resize_file(path_, begin, error);  // The broken line goes.
  if (!error) return {};
  return Unavailable("cannot cut the broken last line off '{}': {}", path_, error.message());
}

Status RolloutFile::Append(const Json& header) {
  file_.reset(path_.empty() ? stdout : std::fopen(path_.c_str(), "abe"));
  if (file_ == nullptr) {
    return Invalid("cannot write '{}': {}", path_, std::strerror(errno));
  }
  return begun_ ? Status() : Write(header.dump() + "\n");
}

Status RolloutFile::Add(const RolloutSample& sample) {
  return Write(FormatSample(sample, weights_));
}

Status RolloutFile::Write(const std::string& line) {
  const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size();
  if (written && std::fflush(file_.get()) == 0) return {};
  return Unavailable("writing to {} failed: {}",
                     path_.empty() ? "standard output" : fmt::format("'{}'", path_),
                     std::strerror(errno));
}

}  // namespace foretoken
