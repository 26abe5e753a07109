#include "core/model/families/model_part.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/text/parse_number.h"
#include "base/text/printable.h"
#include "core/model/families/gguf/gguf_config.h"

namespace foretoken {
namespace {

struct TextPrefix {
  std::string_view theirs;
  std::string_view usual;
};
constexpr TextPrefix kTextPrefixes[] = {
    {"language_model.model.", "model."},
    {"language_model.lm_head.", "lm_head."},
    {"model.language_model.", "model."},
};

// What names of tensors have within them that are of no layer of the text model.
constexpr std::string_view kOfAudio[] = {"audio", "speech"};
constexpr std::string_view kOfVision[] = {"visual", "vision", "image", "multi_modal", "mm_"};

// The layer that a tensor is of; none: of the whole model.
std::optional<int> LayerOf(bool gguf, std::string_view name) {
  const std::string_view prefix = gguf ? "blk." : "model.layers.";
  int layer = 0;
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  if (!ParseNumber(name.substr(0, name.find('.')), &layer)) return std::nullopt;
  return layer;
}

// Names of towers and of what brings their outputs to the model's width, in GGUF files.
constexpr std::string_view kGgufAudioPrefixes[] = {"a.", "mm.a."};
constexpr std::string_view kGgufVisionPrefixes[] = {"v.", "mm.", "s.", "resampler.", "adapter."};

bool BeginsWithAny(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes,
                             [name](std::string_view prefix) { return name.starts_with(prefix); });
}

// Whether the name is of a layer or head that guesses further tokens and is not numbered behind the
// model's own layers.
bool HasPredictionPrefix(std::string_view name) {
  constexpr std::string_view kPrefixes[] = {"mtp.", "model.mtp", "medusa_head.", "medusa_lm_head.",
                                            "model.extra_heads."};
  return BeginsWithAny(name, kPrefixes);
}

bool HasAny(std::string_view name, std::span<const std::string_view> words) {
  return std::ranges::any_of(
      words, [name](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

}  // namespace

std::string WithoutTextPrefix(std::string_view name_in_folder) {
  for (const TextPrefix& prefix : kTextPrefixes) {
    if (!name_in_folder.starts_with(prefix.theirs)) continue;
    return fmt::format("{}{}", prefix.usual, name_in_folder.substr(prefix.theirs.size()));
  }
  return std::string(name_in_folder);
}

ModelPart PartOf(const Family& family, bool gguf, int layers, std::string_view name_in_file) {
  const std::string name = gguf ? std::string(name_in_file) : WithoutTextPrefix(name_in_file);
  const std::optional<int> layer = LayerOf(gguf, name);
  if (layer.has_value() && *layer >= layers) return ModelPart::kPrediction;
  if (HasPredictionPrefix(name)) return ModelPart::kPrediction;
  const bool of_config = gguf ? IsOfGgufConfig(name) : name.ends_with(".inv_freq");
  if (of_config || !OurName(family, gguf, name).empty()) return ModelPart::kText;
  if (gguf && !layer.has_value()) {
    if (BeginsWithAny(name, kGgufAudioPrefixes)) return ModelPart::kAudio;
    if (BeginsWithAny(name, kGgufVisionPrefixes)) return ModelPart::kVision;
  }
  // What llama.cpp's converter makes of the rows of the lm head by which a reranker says yes and
  // no.
  if (gguf && name.starts_with("cls.")) return ModelPart::kBeside;
  if (gguf || name.starts_with("model.layers.")) return ModelPart::kUnknown;
  if (HasAny(name, kOfAudio)) return ModelPart::kAudio;
  return HasAny(name, kOfVision) ? ModelPart::kVision : ModelPart::kBeside;
}

std::string UnusedPart::OfOrdinaryLayer(bool gguf) const {
  constexpr std::string_view kJoins[] = {"eh_proj", "enorm", "nextn."};
  const auto layer_of = [gguf](const std::string& name) {
    return LayerOf(gguf, gguf ? name : WithoutTextPrefix(name));
  };
  std::set<int> guessing;
  for (const std::string& name : tensors) {
    const auto layer = layer_of(name);
    if (layer.has_value() && HasAny(name, kJoins)) guessing.insert(*layer);
  }
  for (const std::string& name : tensors) {
    const auto layer = layer_of(name);
    if (layer.has_value() && !guessing.contains(*layer)) return name;
  }
  return "";
}

std::string UnusedPart::Sentence() const {
  const std::string size =
      fmt::format("{} tensor{}, {:.1f} MB", tensors.size(), tensors.size() == 1 ? "" : "s",
                  static_cast<double>(bytes) / 1e6);
  switch (part) {
    case ModelPart::kVision:
      return fmt::format("the vision tower ({}) is not used: images are refused", size);
    case ModelPart::kAudio:
      return fmt::format("the audio tower ({}) is not used: sound is refused", size);
    case ModelPart::kPrediction:
      return fmt::format(
          "what guesses further tokens ({}) is no part of the model, but may draft for it", size);
    default:
      return fmt::format("what is none of the text model ({}, '{}' first) is not used", size,
                         Printable(tensors.front()));
  }
}

std::vector<UnusedPart> UnusedParts(const Family& family, bool gguf, int layers,
                                    const TensorMap& tensors, const OtherTensorMap& others) {
  std::map<ModelPart, UnusedPart> parts;
  const auto add = [&](const std::string& name, std::size_t bytes) {
    const ModelPart part = PartOf(family, gguf, layers, name);
    if (part == ModelPart::kText) return;
    UnusedPart& unused = parts.try_emplace(part, UnusedPart{part}).first->second;
    unused.tensors.push_back(name);
    unused.bytes += bytes;
  };
  for (const auto& [name, tensor] : tensors) add(name, tensor.bytes());
  for (const auto& [name, other] : others) add(name, other.data.size());
  std::vector<UnusedPart> all;
  for (auto& [part, unused] : parts) all.push_back(std::move(unused));
  return all;
}

}  // namespace foretoken
