#include "core/model/self/skip_set.h"

#include <limits>
#include <vector>

#include "base/files/read_file.h"
#include "base/files/replace_file.h"
#include "json/json.h"
#include "json/json_object.h"

namespace foretoken {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr int kMaxSkippedLayers = 4096;

Json NumbersOf(const std::vector<bool>& skipped) {
  Json numbers = Json::array();
  for (std::size_t i = 0; i < skipped.size(); ++i) {
    if (skipped[i]) numbers.push_back(i);
  }
  return numbers;
}

void ReadNumbers(JsonObject* object, const char* name, std::vector<bool>* skipped) {
  const int last = std::ssize(*skipped) - 1;
  for (const int layer : object->Integers(name, skipped->size(), 0, last)) {
    (*skipped)[layer] = true;
  }
}

}  // namespace

Status WriteSkipSet(const std::filesystem::path& path, const SkipSet& set) {
  const Json file = {{"model", set.model},
                     {"layers", set.skipped.layers()},
                     {"attention", NumbersOf(set.skipped.mixers)},
                     {"mlp", NumbersOf(set.skipped.mlps)},
                     {"agreement", set.agreement},
                     {"cost", set.cost},
                     {"speedup", set.speedup},
                     {"tokens", set.tokens},
                     {"sets", set.sets}};
  return ReplaceFile(path, file.dump(2) + "\n");
}

Result<SkipSet> ReadSkipSet(const std::filesystem::path& path) {
  const Result<std::string> text = ReadFile(path, kMaxBytes);
  if (!text.ok()) {
    return Invalid("{}: {}", path.string(), text.error().message);
  }
  const Json file = Json::Parse(*text);
  if (file.is_discarded()) {
    return Invalid("{} is no JSON: a set of sub-layers is written by `foretoken skip-search`",
                   path.string());
  }
  Status status;
  JsonObject object(&file, path.string(), &status);
  constexpr int kMost = std::numeric_limits<int>::max();
  SkipSet set;
  set.model = object.Fingerprint("model");
  set.skipped = SkippedSublayers(object.Integer("layers", 1, kMaxSkippedLayers));
  ReadNumbers(&object, "attention", &set.skipped.mixers);
  ReadNumbers(&object, "mlp", &set.skipped.mlps);
  set.agreement = object.Number("agreement", 0, 1);
  set.cost = object.Number("cost", 0, 1);
  set.speedup = object.Number("speedup", 0, 1e6);
  set.tokens = object.Integer("tokens", 0, kMost);
  set.sets = object.Integer("sets", 0, kMost);
  object.Close();
  FT_RETURN_IF_ERROR(status);
  return set;
}

}  // namespace foretoken
