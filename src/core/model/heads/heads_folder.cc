#include "core/model/heads/heads_folder.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/text/printable.h"
#include "core/model/families/family.h"

namespace foretoken {
namespace {

// Before the names of a layer in files of models.
std::string LayerPrefix(int number) { return fmt::format("model.layers.{}.", number); }

}  // namespace

void HeadNames::Add(const std::string& in_file, const std::string& ours) {
  ours_.emplace(in_file, ours);
  in_file_.emplace(ours, in_file);
}

void HeadNames::AddLinear(const std::string& in_file, const std::string& ours) {
  for (const char* const part : {".weight", ".bias"}) Add(in_file + part, ours + part);
}

void HeadNames::AddLayer(const Checkpoint& folder, const std::string& prefix, int number) {
  prefixes_.emplace(number, prefix);
  for (const auto& [name, tensor] : folder.tensors) {
    if (!name.starts_with(prefix)) continue;
    const std::string usual = fmt::format("{}{}", LayerPrefix(number), name.substr(prefix.size()));
    const std::string ours = OurName(kLlama, /*gguf=*/false, usual);
    if (!ours.empty()) Add(name, ours);
  }
}

Status HeadNames::Rename(const std::string& what, Checkpoint* folder) const {
  const auto unknown = [&](std::string_view name) {
    return Invalid("{}: has tensor '{}', which is none of {}", folder->path.string(),
                   Printable(name), what);
  };
  for (const auto& [name, tensor] : folder->tensors) {
    if (!ours_.contains(name)) return unknown(name);
  }
  if (!folder->others.empty()) return unknown(folder->others.begin()->first);
  folder->Rename([this](std::string_view name) { return ours_.find(name)->second; },
                 [in_file = in_file_, prefixes = prefixes_](std::string_view name) {
                   const auto found = in_file.find(name);
                   if (found != in_file.end()) return found->second;
                   std::string usual = NameInFile(kLlama, /*gguf=*/false, name);
                   for (const auto& [number, prefix] : prefixes) {
                     const std::string layer = LayerPrefix(number);
                     if (usual.starts_with(layer)) return prefix + usual.substr(layer.size());
                   }
                   return usual;
                 });
  return {};
}

void CheckSizesOfTarget(const ModelConfig& target, ConfigFields* fields) {
  const auto same = [&](const char* name, int most, int of_target) {
    const int said = fields->IntOr(name, 1, most, of_target);
    if (said == of_target) return;
    fields->Refuse("is for a target whose {} is {}, but this one's is {}", name, said, of_target);
  };
  same("hidden_size", kMaxHidden, target.hidden);
  same("vocab_size", kMaxVocabulary, target.vocabulary);
}

Status CheckLogits(const Checkpoint& folder, const std::string& name, const ModelConfig& target) {
  const std::vector<std::int64_t>& shape = folder.Find(name)->shape;
  if (shape == std::vector<std::int64_t>{target.vocabulary, target.hidden}) return {};
  return Invalid("{}: tensor {} is [{}], but of heads for this target [{}, {}]",
                 folder.path.string(), name, fmt::join(shape, ", "), target.vocabulary,
                 target.hidden);
}

void NoteCount(const std::string& where, const char* name, int counted, ConfigFields* fields,
               std::vector<std::string>* notes) {
  const int said = fields->IntOr(name, 0, kMaxLayers, counted);
  if (said == counted) return;
  notes->push_back(fmt::format("{} says {} is {}, but the tensors have {}, which counts", where,
                               name, said, counted));
}

ModelConfig HeadsConfig(const ModelConfig& target, std::string_view architecture) {
  ModelConfig config;
  config.architecture = architecture;
  config.family = target.family;
  config.hidden = target.hidden;
  config.vocabulary = target.vocabulary;
  config.max_positions = target.max_positions;
  config.bos = target.bos;
  config.eos = target.eos;
  return config;
}

}  // namespace foretoken
