#include "door/convert/gguf_tensors.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text/parse_number.h"
#include "core/model/families/family.h"
#include "core/weights/arrange/rotated_rows.h"

namespace foretoken {
namespace {

constexpr std::string_view kBoth = "gate_up.";

bool IsBias(std::string_view name) { return name.ends_with(".bias"); }

// "layers.3.experts.5.up.weight" is number 5 of "layers.3.experts.up.weight".
struct Numbered {
  std::string stack;
  int number = -1;  // None.
};
Numbered NumberOf(const std::string& name) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return {name};
  std::size_t begin = name.find('.', kLayers.size());
  while (begin != std::string::npos) {
    const std::size_t end = name.find('.', begin + 1);
    if (end == std::string::npos) break;
    int number = -1;
    if (ParseNumber(std::string_view(name).substr(begin + 1, end - begin - 1), &number)) {
      return {name.substr(0, begin) + name.substr(end), number};
    }
    begin = end;
  }
  return {name};
}

// Which dimension of a tensor its outputs are.
std::size_t OutputsOf(const std::string& name, const std::vector<std::int64_t>& shape) {
  return shape.size() - (IsBias(name) || shape.size() == 1 ? 1 : 2);
}

class Lister {
 public:
  Lister(const Checkpoint& checkpoint, const ModelConfig& config)
      : checkpoint_(checkpoint), family_(*FamilyNamed(config.family)) {}

  // Adds the tensors `sources`, which are called `name` when they are stacked.
  Status Add(const std::string& name, const std::vector<std::string>& sources, bool stacked) {
    const TensorView& first = *checkpoint_.Find(sources.front());
    for (const std::string& source : sources) {
      const TensorView& view = *checkpoint_.Find(source);
      if (view.shape == first.shape && view.format == first.format) continue;
      return Invalid(
          "{}: tensor {} is {} and tensor {} is {}, but in a GGUF file they are one, and must be "
          "alike",
          checkpoint_.path.string(), checkpoint_.NameInFile(sources.front()),
          FormatName(first.format), checkpoint_.NameInFile(source), FormatName(view.format));
    }
    GgufTensor tensor{.shape = first.shape, .format = first.format, .sources = sources};
    if (stacked) tensor.shape.insert(tensor.shape.begin(), std::ssize(sources));
    // A gate of the one expert that all rows share is a vector there.
    if (name.ends_with(".shared_gate.weight")) tensor.shape = {first.elements()};
    tensor.name = NameInFile(family_, /*gguf=*/true, name);
    if (!tensor.name.empty()) {
      all_.push_back(std::move(tensor));
      return {};
    }
    const std::size_t both = name.find(kBoth);
    if (both == std::string::npos) return RefuseName(sources.front());
    tensor.shape[OutputsOf(name, tensor.shape)] /= 2;
    const std::string ending = name.substr(both + kBoth.size());
    for (const auto& [half, part] : {std::pair{"gate.", GgufTensor::Part::kFirstHalf},
                                     std::pair{"up.", GgufTensor::Part::kSecondHalf}}) {
      tensor.name = NameInFile(family_, /*gguf=*/true, name.substr(0, both) + half + ending);
      tensor.part = part;
      if (tensor.name.empty()) return RefuseName(sources.front());
      all_.push_back(tensor);
    }
    return {};
  }

  std::vector<GgufTensor> all() { return std::move(all_); }

 private:
  Error RefuseName(const std::string& name) const {
    return Invalid("{}: tensor {} has no name in GGUF files", checkpoint_.path.string(),
                   checkpoint_.NameInFile(name));
  }

  const Checkpoint& checkpoint_;
  const Family& family_;
  std::vector<GgufTensor> all_;
};

std::vector<std::byte> Half(const TensorView& view, std::size_t outputs_at, bool first) {
  const std::int64_t outputs = view.shape[outputs_at];
  std::int64_t matrices = 1;
  for (std::size_t i = 0; i < outputs_at; ++i) matrices *= view.shape[i];
  const std::size_t bytes = view.bytes() / static_cast<std::size_t>(matrices) / 2;
  FT_CHECK(outputs % 2 == 0, "{} gates and what they are multiplied with", outputs);
  std::vector<std::byte> half;
  for (std::int64_t i = 0; i < matrices; ++i) {
    const std::byte* from = view.data + static_cast<std::size_t>(2 * i + (first ? 0 : 1)) * bytes;
    half.insert(half.end(), from, from + bytes);
  }
  return half;
}

}  // namespace

Result<std::vector<GgufTensor>> ListGgufTensors(const Checkpoint& checkpoint,
                                                const ModelConfig& config) {
  std::map<std::string, std::map<int, std::string>> stacks;
  Lister lister(checkpoint, config);
  for (const auto& [name, view] : checkpoint.tensors) {
    if (name == "head.weight" && config.tied_embeddings) continue;  // Not used.
    const Numbered numbered = NumberOf(name);
    if (numbered.number < 0) {
      FT_RETURN_IF_ERROR(lister.Add(name, {name}, /*stacked=*/false));
    } else {
      stacks[numbered.stack].emplace(numbered.number, name);
    }
  }
  for (const auto& [name, members] : stacks) {
    std::vector<std::string> sources;
    for (const auto& [number, source] : members) sources.push_back(source);
    FT_RETURN_IF_ERROR(lister.Add(name, sources, /*stacked=*/true));
  }
  return lister.all();
}

std::vector<std::byte> BytesOfSource(const Checkpoint& checkpoint, const ModelConfig& config,
                                     const GgufTensor& tensor, const std::string& name) {
  TensorBytes read = checkpoint.Read(name);
  const auto of = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  const bool alternates = FamilyNamed(config.family)->neighbours == Neighbours::kInGguf;
  if (!checkpoint.gguf && alternates && (of(".q.") || of(".k."))) {
    const std::int64_t head_dim = config.layers.front().attention.head_dim;
    return HalvesAlternating(read.view, head_dim, head_dim);
  }
  if (tensor.part != GgufTensor::Part::kAll) {
    return Half(read.view, OutputsOf(name, read.view.shape),
                tensor.part == GgufTensor::Part::kFirstHalf);
  }
  if (read.made.empty()) read.made.assign(read.view.data, read.view.data + read.view.bytes());
  const bool whole = of(".delta.norm.");  // The one gain that folders have as it is.
  if (checkpoint.gains_less_one && name.ends_with("norm.weight") && !whole) {
    FT_CHECK(read.view.format == WeightFormat::kF32, "{} is no F32", name);
    auto* const gains = reinterpret_cast<float*>(read.made.data());
    for (std::int64_t i = 0; i < read.view.elements(); ++i) gains[i] += 1.0F;
  }
  return std::move(read.made);
}

}  // namespace foretoken
