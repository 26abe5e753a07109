#include "core/model/drafters/drafter_names.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text/printable.h"
#include "core/model/families/gguf/gguf_config.h"

namespace foretoken {
namespace {

// `name` with `to` where it begins with `from`.
std::string Begun(std::string_view name, std::string_view from, std::string_view to) {
  if (!name.starts_with(from)) return std::string(name);
  return fmt::format("{}{}", to, name.substr(from.size()));
}

// "feature.norm.weight" of "layers.0.hidden_norm.weight", or the other way round; empty where it is
// none of `tensors`.
std::string Beside(std::span<const DrafterTensor> tensors, std::string_view name,
                   std::string_view DrafterTensor::*from, std::string_view DrafterTensor::*to) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view stem = name.substr(0, dot);
  for (const DrafterTensor& tensor : tensors) {
    std::string_view begin = tensor.*from;
    std::string_view other = tensor.*to;
    if (stem == begin) return fmt::format("{}{}", other, name.substr(dot));
    if (!begin.ends_with('*')) continue;  // As empty ones do not.
    begin.remove_suffix(1);
    other.remove_suffix(1);
    if (stem.starts_with(begin)) return Begun(name, begin, other);
  }
  return {};
}

// What a model's files have before the names of its first layer's tensors.
std::string_view FirstLayer(bool gguf) { return gguf ? "blk.0." : "model.layers.0."; }

}  // namespace

std::string DrafterNames::Ours(std::string_view in_file) const {
  if (!in_file.starts_with(prefix)) return {};
  const std::string_view behind = in_file.substr(prefix.size());
  if (gguf || one_layer) {
    const auto in_files = gguf ? &DrafterTensor::gguf : &DrafterTensor::folder;
    std::string ours = Beside(tensors, behind, in_files, &DrafterTensor::ours);
    if (!ours.empty()) return ours;
    const std::string_view layer = one_layer ? FirstLayer(gguf) : "";
    return OurName(*family, gguf, fmt::format("{}{}", layer, behind));
  }
  const std::string plain = Begun(Begun(behind, "model.", ""), "midlayer.", "layers.0.");
  std::string ours = Beside(tensors, plain, &DrafterTensor::folder, &DrafterTensor::ours);
  if (!ours.empty() || !plain.starts_with("layers.")) return ours;
  return OurName(*family, /*gguf=*/false, "model." + plain);
}

std::string DrafterNames::InFile(std::string_view ours) const {
  if (gguf || one_layer) {
    const auto in_files = gguf ? &DrafterTensor::gguf : &DrafterTensor::folder;
    const std::string beside = Beside(tensors, ours, &DrafterTensor::ours, in_files);
    if (!beside.empty()) return prefix + beside;
    const std::string whole = NameInFile(*family, gguf, ours);
    return prefix + (one_layer ? Begun(whole, FirstLayer(gguf), "") : whole);
  }
  std::string name = Beside(tensors, ours, &DrafterTensor::ours, &DrafterTensor::folder);
  if (name.empty()) name = Begun(NameInFile(*family, /*gguf=*/false, ours), "model.", "");
  return prefix + (midlayer ? Begun(name, "layers.0.", "midlayer.") : name);
}

Status NameTensors(const DrafterNames& names, Checkpoint* folder) {
  const auto unknown = [&](std::string_view name) {
    return Invalid("{}: has tensor '{}', which is none of {}", folder->path.string(),
                   Printable(name), names.kind);
  };
  std::ptrdiff_t named = 0;
  for (const auto& [name, tensor] : folder->tensors) {
    if (!names.Ours(name).empty()) {
      ++named;
    } else if (!name.ends_with(".inv_freq") && !IsOfGgufConfig(name)) {  // Frequencies.
      return unknown(name);
    }
  }
  for (const auto& [name, other] : folder->others) {
    if (name != "d2t" && name != "t2d") return unknown(name);
  }
  folder->Rename([&](std::string_view name) { return names.Ours(name); },
                 [names](std::string_view name) { return names.InFile(name); });
  if (std::ssize(folder->tensors) == named) return {};
  return Invalid("{}: has a tensor twice, under two names for it", folder->path.string());
}

}  // namespace foretoken
