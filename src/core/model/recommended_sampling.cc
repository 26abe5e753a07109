#include "foretoken/recommended_sampling.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <variant>

#include "base/files/read_file.h"
#include "core/weights/gguf/gguf_file.h"
#include "json/json.h"
#include "json/json_object.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// How files call what they recommend.
struct Names {
  const char* temperature;
  const char* top_k;
  const char* top_p;
  const char* min_p;
  const char* repetition_penalty;
};
constexpr Names kFolderNames = {"temperature", "top_k", "top_p", "min_p", "repetition_penalty"};
constexpr Names kGgufNames = {"general.sampling.temp", "general.sampling.top_k",
                              "general.sampling.top_p", "general.sampling.min_p",
                              "general.sampling.penalty_repeat"};

RecommendedSampling ReadSampling(const Names& names, JsonObject* fields) {
  RecommendedSampling recommended;
  const auto number = [fields](const char* name, double high, std::optional<float>* value) {
    double read = 0;
    if (fields->Number(name, 0, high, &read)) *value = static_cast<float>(read);
  };
  number(names.temperature, 100, &recommended.temperature);
  number(names.top_p, 1, &recommended.top_p);
  number(names.min_p, 1, &recommended.min_p);
  number(names.repetition_penalty, 100, &recommended.repetition_penalty);
  int top_k = 0;
  if (fields->Int(names.top_k, -1, 1 << 24, &top_k)) recommended.top_k = std::max(top_k, 0);
  return recommended;
}

Result<RecommendedSampling> OfFolder(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return RecommendedSampling();
  FT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path.string()));
  const Json json = Json::Parse(text);
  if (!json.is_object()) {
    return Invalid("'{}' is no JSON object", path.string());
  }
  Status status;
  JsonObject config(&json, path.string(), &status);
  bool samples = true;
  config.Bool("do_sample", &samples);
  const RecommendedSampling recommended =
      samples ? ReadSampling(kFolderNames, &config) : RecommendedSampling();
  if (!status.ok()) return status.error();
  return recommended;
}

// Files of one writer have a whole number where another's have one with a fraction.
Json JsonOf(const GgufValue& value) {
  return std::visit(
      [](const auto& read) -> Json {
        using Value = std::decay_t<decltype(read)>;
        if constexpr (std::is_same_v<Value, double>) {
          const bool whole = std::abs(read) < 1 << 24 && read == std::floor(read);
          return whole ? Json(static_cast<std::int64_t>(read)) : Json(read);
        } else if constexpr (std::is_same_v<Value, GgufArray>) {
          return Json::array();
        } else {
          return read;
        }
      },
      value);
}

Result<RecommendedSampling> OfGguf(const fs::path& path) {
  FT_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  Json json = Json::object();
  for (const char* name : {kGgufNames.temperature, kGgufNames.top_k, kGgufNames.top_p,
                           kGgufNames.min_p, kGgufNames.repetition_penalty}) {
    if (const GgufValue* value = file.metadata().Find(name)) json[name] = JsonOf(*value);
  }
  Status status;
  JsonObject keys(&json, path.string(), &status);
  const RecommendedSampling recommended = ReadSampling(kGgufNames, &keys);
  if (!status.ok()) return status.error();
  return recommended;
}

}  // namespace

Result<RecommendedSampling> ReadRecommendedSampling(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) ? OfGguf(path)
                                            : OfFolder(path / "generation_config.json");
}

}  // namespace foretoken
