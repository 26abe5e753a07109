#include "door/convert/write_gguf.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/files/replace_file.h"
#include "base/numbers/integers.h"
#include "base/text/parse_number.h"
#include "core/model/config/model_config.h"
#include "core/model/families/family.h"
#include "core/model/families/read_config.h"
#include "core/model/model_weights.h"
#include "core/model/open_checkpoint.h"
#include "core/weights/arrange/rotated_rows.h"
#include "core/weights/check_finite.h"
#include "core/weights/gguf/gguf_header.h"
#include "core/weights/requantize.h"
#include "door/convert/gguf_keys.h"

namespace foretoken {
namespace {

// A tensor of a GGUF file, made of tensors of a checkpoint.
struct GgufTensor {
  // Files have gates and what they are multiplied with apart, which some folders keep as one:
  // which half of the outputs of each matrix it is.
  enum class Part { kAll, kFirstHalf, kSecondHalf };
  std::string name;
  std::vector<std::int64_t> shape;
  WeightFormat format = WeightFormat::kF32;
  std::vector<std::string> sources;  //< One behind the other, as experts are stacked.
  Part part = Part::kAll;
};

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
  const std::size_t bytes = view.bytes() / Size(matrices) / 2;
  FT_CHECK(outputs % 2 == 0, "{} gates and what they are multiplied with", outputs);
  std::vector<std::byte> half;
  for (std::int64_t i = 0; i < matrices; ++i) {
    const std::byte* from = view.data + Size(2 * i + (first ? 0 : 1)) * bytes;
    half.insert(half.end(), from, from + bytes);
  }
  return half;
}

// All tensors of a model under the names that GGUF files have for them. One that has no name there
// is refused.
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

// What `tensor` has of its source `name`, in the order of GGUF files.
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

constexpr std::uint32_t kQuantizationVersion = 2;

std::string_view Text(const TensorView& view) {
  return {reinterpret_cast<const char*>(view.data), view.bytes()};
}

// Writes a model whose tensors have their formats.
class ModelWriter {
 public:
  ModelWriter(const Checkpoint& checkpoint, const ModelConfig& config, const WeightType& type)
      : checkpoint_(checkpoint), config_(config), type_(type) {}

  Result<WrittenGguf> Write(const std::filesystem::path& out, const LoadProgress& progress) {
    FT_ASSIGN_OR_RETURN(tensors_, ListGgufTensors(checkpoint_, config_));
    FT_ASSIGN_OR_RETURN(factors_, ReadRopeFactors(checkpoint_, config_));
    FT_RETURN_IF_ERROR(SetModelKeys(checkpoint_, config_, &header_));
    FT_RETURN_IF_ERROR(CheckDescription(checkpoint_, config_, header_, Shapes()));
    header_.Set("general.file_type", type_.file_type);
    header_.Set("general.quantization_version", kQuantizationVersion);
    const std::size_t all = AddTensors();
    FT_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(out));
    const std::string head = header_.Bytes();
    FT_RETURN_IF_ERROR(file.Write(head));
    written_.bytes = head.size();
    std::size_t done = 0;
    if (progress) progress(done, all);
    for (const GgufTensor& tensor : tensors_) {
      FT_RETURN_IF_ERROR(WriteTensor(tensor, &file));
      done += ViewOf(tensor).bytes();
      if (progress) progress(done, all);
    }
    for (const RopeFactors& factors : factors_) {
      FT_RETURN_IF_ERROR(Put(Text(ViewOf(factors)), &file));
      FT_RETURN_IF_ERROR(Pad(ViewOf(factors).bytes(), &file));
    }
    FT_RETURN_IF_ERROR(file.Finish());
    return std::move(written_);
  }

 private:
  static TensorView ViewOf(const GgufTensor& tensor) {
    return {tensor.format, tensor.shape, nullptr};
  }
  static TensorView ViewOf(const RopeFactors& factors) {
    return {WeightFormat::kF32,
            {std::ssize(factors.values)},
            reinterpret_cast<const std::byte*>(factors.values.data())};
  }

  TensorMap Shapes() const {
    TensorMap shapes;
    for (const GgufTensor& tensor : tensors_) shapes.emplace(tensor.name, ViewOf(tensor));
    for (const RopeFactors& factors : factors_) shapes.emplace(factors.name, ViewOf(factors));
    return shapes;
  }

  // Returns the bytes of those that come from the checkpoint.
  std::size_t AddTensors() {
    std::size_t all = 0;
    for (const GgufTensor& tensor : tensors_) {
      all += ViewOf(tensor).bytes();
      header_.AddTensor(tensor.name, tensor.shape, tensor.format);
      ++written_.tensors[tensor.format];
      const bool small = IsQuantized(tensor.format) && InfoOf(type_.format).block_elements == 256 &&
                         InfoOf(tensor.format).block_elements != 256;
      if (small || (IsQuantized(type_.format) && tensor.format == WeightFormat::kF16)) {
        ++written_.smaller_blocks;
      }
    }
    for (const RopeFactors& factors : factors_) {
      header_.AddTensor(factors.name, ViewOf(factors).shape, WeightFormat::kF32);
      ++written_.tensors[WeightFormat::kF32];
    }
    return all;
  }

  Status WriteTensor(const GgufTensor& tensor, FileReplacement* file) {
    for (const std::string& source : tensor.sources) {
      FT_RETURN_IF_ERROR(CheckSource(source));
      const std::vector<std::byte> bytes = BytesOfSource(checkpoint_, config_, tensor, source);
      FT_RETURN_IF_ERROR(Put({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file));
      checkpoint_.Release(source);
    }
    return Pad(ViewOf(tensor).bytes(), file);
  }

  // As it lies in the files, before it is quantised.
  Status CheckSource(const std::string& name) const {
    TensorView view = *checkpoint_.InFile(name);
    std::vector<std::byte> made;
    if (const auto found = checkpoint_.arranged.find(name); found != checkpoint_.arranged.end()) {
      made = found->second.make();
      view.data = made.data();
    }
    return CheckFinite(checkpoint_, name, view);
  }

  Status Put(std::string_view bytes, FileReplacement* file) {
    written_.bytes += bytes.size();
    return file->Write(bytes);
  }
  Status Pad(std::size_t bytes, FileReplacement* file) { return Put(header_.Padding(bytes), file); }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const WeightType& type_;
  GgufHeader header_;
  std::vector<GgufTensor> tensors_;
  std::vector<RopeFactors> factors_;
  WrittenGguf written_;
};

}  // namespace

Result<WrittenGguf> WriteGguf(Checkpoint checkpoint, const WeightType& type,
                              const std::filesystem::path& out, const LoadProgress& progress) {
  FT_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(checkpoint));
  FT_RETURN_IF_ERROR(CheckWeights(checkpoint, config));
  const auto arrange = FamilyNamed(config.family)->arrange_for_gguf;
  if (!checkpoint.gguf && arrange != nullptr) arrange(&checkpoint, config);
  const Checkpoint requantized = Requantize(std::move(checkpoint), type, MixBasisOf(config));
  return ModelWriter(requantized, config, type).Write(out, progress);
}

}  // namespace foretoken
