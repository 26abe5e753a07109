#include "core/model/decoder/checkpoint_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/numbers/integers.h"
#include "core/weights/arrange/rotated_rows.h"
#include "core/weights/check_finite.h"

namespace foretoken {
namespace {

std::string FormatShape(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// "layers.3.experts.gate" of expert 5 is "layers.3.experts.5.gate.weight".
std::string NameOfExpert(const Part& part, int expert) {
  const std::size_t stem = part.name.rfind('.') + 1;
  return fmt::format("{}{}.{}.weight", part.name.substr(0, stem), expert, part.name.substr(stem));
}

TensorView PartOfStack(const TensorView& stacked, int index) {
  TensorView part{stacked.format, {stacked.shape[1], stacked.shape[2]}, nullptr};
  part.data = stacked.data + Size(index) * part.bytes();
  return part;
}

}  // namespace

void CheckpointSource::ReportTo(const LoadProgress& progress, std::size_t all) {
  progress_ = progress;
  all_ = all;
  Report();
}

Result<Buffer> CheckpointSource::Vector(const std::string& name, std::int64_t width, float more) {
  FT_RETURN_IF_ERROR(Find(name, {width}));
  if (backend_ == nullptr) return Buffer();
  Buffer numbers(width * sizeof(float));
  const TensorBytes tensor = checkpoint_.Read(name);
  FT_RETURN_IF_ERROR(CheckFinite(checkpoint_, name, tensor.view));
  LoadElements(tensor.view, 0, width, numbers.as<float>());
  for (std::int64_t i = 0; more != 0 && i < width; ++i) numbers.as<float>()[i] += more;
  checkpoint_.Release(name);
  Report();
  return numbers;
}

Result<NormWeights> CheckpointSource::Norm(const std::string& name, std::int64_t width,
                                           bool biased) {
  NormWeights norm;
  FT_ASSIGN_OR_RETURN(norm.gain,
                      Vector(name + ".weight", width, checkpoint_.gains_less_one ? 1.0F : 0.0F));
  if (biased) {
    FT_ASSIGN_OR_RETURN(norm.bias, Vector(name + ".bias", width));
  }
  return norm;
}

Result<NormWeights> CheckpointSource::PlainNorm(const std::string& name, std::int64_t width) {
  NormWeights norm;
  FT_ASSIGN_OR_RETURN(norm.gain, Vector(name + ".weight", width));
  return norm;
}

Result<Buffer> CheckpointSource::Taps(const std::string& name, std::int64_t width,
                                      std::int64_t taps) {
  FT_RETURN_IF_ERROR(Find(name, {width, taps}));
  if (backend_ == nullptr) return Buffer();
  std::vector<float> stored(Size(width * taps));
  const TensorBytes tensor = checkpoint_.Read(name);
  FT_RETURN_IF_ERROR(CheckFinite(checkpoint_, name, tensor.view));
  LoadElements(tensor.view, 0, width * taps, stored.data());
  Buffer turned(stored.size() * sizeof(float));
  for (std::int64_t i = 0; i < width * taps; ++i) {
    turned.as<float>()[i % taps * width + i / taps] = stored[i];
  }
  checkpoint_.Release(name);
  Report();
  return turned;
}

Result<Buffer> CheckpointSource::Biases(const std::vector<Part>& parts, const RotatedHeads& heads) {
  return Numbers(parts, ".bias", heads);
}

Result<NormWeights> CheckpointSource::HeadNorm(const std::vector<Part>& parts,
                                               const RotatedHeads& heads) {
  NormWeights norm;
  FT_ASSIGN_OR_RETURN(norm.gain, Numbers(parts, ".weight", heads));
  const std::size_t count = checkpoint_.gains_less_one ? norm.gain.bytes() / sizeof(float) : 0;
  for (std::size_t i = 0; i < count; ++i) norm.gain.as<float>()[i] += 1.0F;
  return norm;
}

Result<Matrix> CheckpointSource::Stack(const std::vector<Part>& parts, std::int64_t inputs,
                                       double /*gain*/, const RotatedHeads& heads) {
  for (const Part& part : parts) {
    const std::string name = part.name + ".weight";
    // A single output may be stored as a vector.
    const bool vector = part.outputs == 1 && Has(name) && checkpoint_.Find(name)->shape.size() == 1;
    const std::int64_t outputs = part.all == 0 ? part.outputs : part.all;
    FT_RETURN_IF_ERROR(Find(name, vector ? Shape{inputs} : Shape{outputs, inputs}));
  }
  if (backend_ == nullptr) return Matrix();
  std::vector<TensorBytes> tensors;
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    if (i == 0 || part.name != parts[i - 1].name) {
      tensors.push_back(ReadRotated(part.name + ".weight", part, heads));
      FT_RETURN_IF_ERROR(CheckFinite(checkpoint_, part.name + ".weight", tensors.back().view));
    }
    TensorView& view = views.emplace_back(tensors.back().view);
    view.data += FormatBytes(view.format, part.first * inputs);
    view.shape = {part.outputs, inputs};
  }
  Matrix matrix = backend_->Pack(views);
  for (const Part& part : parts) checkpoint_.Release(part.name + ".weight");
  Report();
  return matrix;
}

Result<EmbeddingTable> CheckpointSource::Rows(const std::string& name, std::int64_t rows,
                                              std::int64_t width, double /*gain*/) {
  FT_RETURN_IF_ERROR(Find(name + ".weight", {rows, width}));
  if (backend_ == nullptr) return EmbeddingTable();
  EmbeddingTable table{.stored = checkpoint_.Read(name + ".weight"), .files = checkpoint_.files};
  FT_RETURN_IF_ERROR(CheckFinite(checkpoint_, name + ".weight", table.stored.view));
  checkpoint_.Release(name + ".weight");
  Report();
  return table;
}

Result<Matrix> CheckpointSource::Experts(const std::vector<Part>& parts, int count,
                                         std::int64_t inputs, double gain) {
  if (experts_ != ExpertsPlace::kFile) return Matrices(parts, count, inputs, gain);
  for (const Part& part : parts) FT_RETURN_IF_ERROR(FindExperts(part, count, inputs));
  return ExpertsInFile(parts, count);
}

Result<Matrix> CheckpointSource::Matrices(const std::vector<Part>& parts, int count,
                                          std::int64_t inputs, double /*gain*/) {
  for (const Part& part : parts) FT_RETURN_IF_ERROR(FindExperts(part, count, inputs));
  if (backend_ == nullptr) return Matrix();
  std::vector<TensorBytes> stacked(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!Numbered(parts[i])) stacked[i] = checkpoint_.Read(parts[i].name + ".weight");
  }
  Matrix stack;
  for (int expert = 0; expert < count; ++expert) {
    std::vector<TensorBytes> own;
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (Numbered(parts[i])) {
        own.push_back(checkpoint_.Read(NameOfExpert(parts[i], expert)));
        views.push_back(own.back().view);
        FT_RETURN_IF_ERROR(CheckFinite(checkpoint_, NameOfExpert(parts[i], expert), views.back()));
      } else {
        views.push_back(PartOfStack(stacked[i].view, expert));
        FT_RETURN_IF_ERROR(CheckFinite(checkpoint_, parts[i].name + ".weight", views.back()));
      }
    }
    if (expert == 0) stack = backend_->MakeStack(views, count);
    backend_->PackInto(views, expert, &stack);
    for (const Part& part : parts) {
      if (Numbered(part)) checkpoint_.Release(NameOfExpert(part, expert));
    }
  }
  for (const Part& part : parts) {
    if (!Numbered(part)) checkpoint_.Release(part.name + ".weight");
  }
  Report();
  return stack;
}

Result<Matrix> CheckpointSource::ExpertsInFile(const std::vector<Part>& parts, int count) {
  std::vector<TensorView> views;
  for (int expert = 0; expert < count; ++expert) {
    for (const Part& part : parts) {
      const bool numbered = Numbered(part);
      const std::string name = numbered ? NameOfExpert(part, expert) : part.name + ".weight";
      FT_RETURN_IF_ERROR(CheckLiesInFile(name));
      const TensorView& tensor = *checkpoint_.Find(name);
      views.push_back(numbered ? tensor : PartOfStack(tensor, expert));
    }
  }
  if (backend_ == nullptr) return Matrix();
  Report();
  return backend_->Borrow(std::move(views), count);
}

Status CheckpointSource::CheckLiesInFile(const std::string& name) const {
  const bool converted = checkpoint_.requantized_from.contains(name);
  if (!converted && !checkpoint_.arranged.contains(name)) return {};
  return Invalid(
      "{}: tensor {} {}, so experts cannot stay in the file: keep them in memory{}",
      checkpoint_.path.string(), checkpoint_.NameInFile(name),
      converted ? "is to be converted as it is loaded" : "does not lie there as it is multiplied",
      converted ? ", or leave the weights as they are stored" : "");
}

Result<Buffer> CheckpointSource::BiasesOfExperts(const std::vector<Part>& parts, int count) {
  std::int64_t outputs = 0;
  for (const Part& part : parts) {
    FT_RETURN_IF_ERROR(Find(part.name + ".bias", {count, part.outputs}));
    outputs += part.outputs;
  }
  if (backend_ == nullptr) return Buffer();
  Buffer all(Size(count * outputs) * sizeof(float));
  float* at = all.as<float>();
  for (const Part& part : parts) {
    const TensorBytes tensor = checkpoint_.Read(part.name + ".bias");
    FT_RETURN_IF_ERROR(CheckFinite(checkpoint_, part.name + ".bias", tensor.view));
    for (int expert = 0; expert < count; ++expert) {
      LoadElements(tensor.view, expert * part.outputs, part.outputs, at + expert * outputs);
    }
    at += part.outputs;
    checkpoint_.Release(part.name + ".bias");
  }
  Report();
  return all;
}

Status CheckpointSource::RefuseUnused() const {
  for (const auto& [name, view] : checkpoint_.tensors) {
    const bool counts = name.starts_with("layers.") || name.starts_with("feature.") ||
                        name.starts_with("heads.") || name.starts_with("markov.");
    if (!counts || used_.contains(name)) continue;
    return Invalid("{}: tensor {} {}is none that {} asks for", checkpoint_.path.string(),
                   checkpoint_.NameInFile(name), name.ends_with(".bias") ? "is a bias, and " : "",
                   Description());
  }
  return {};
}

void CheckpointSource::Report() const {
  if (progress_) progress_(bytes_, all_);
}

Result<Buffer> CheckpointSource::Numbers(const std::vector<Part>& parts, const char* ending,
                                         const RotatedHeads& heads) {
  std::int64_t outputs = 0;
  for (const Part& part : parts) outputs += part.outputs;
  Buffer all(outputs * sizeof(float));
  float* to = all.as<float>();
  for (const Part& part : parts) {
    const std::string name = part.name + ending;
    const bool of_heads = part.heads > 0;
    FT_RETURN_IF_ERROR(
        Find(name, of_heads ? Shape{part.heads, part.outputs / part.heads} : Shape{part.outputs}));
    if (backend_ == nullptr) continue;
    const TensorBytes tensor = ReadRotated(name, part, heads);
    FT_RETURN_IF_ERROR(CheckFinite(checkpoint_, name, tensor.view));
    LoadElements(tensor.view, 0, part.outputs, to);
    to += part.outputs;
    checkpoint_.Release(name);
    Report();
  }
  return backend_ == nullptr ? Buffer() : std::move(all);
}

const char* CheckpointSource::Description() const {
  return checkpoint_.gguf ? "the metadata" : "config.json";
}

// With the leading outputs in the order that rotation takes.
TensorBytes CheckpointSource::ReadRotated(const std::string& name, const Part& part,
                                          const RotatedHeads& heads) {
  TensorBytes tensor = checkpoint_.Read(name);
  if (part.heads > 0) tensor.view.shape = {part.outputs};
  if (part.rotated == 0 || heads.dims == 0 || !checkpoint_.alternating_heads) return tensor;
  TensorView leading = tensor.view;
  leading.shape[0] = part.rotated;
  std::vector<std::byte> made = HalvesApart(leading, heads.head_dim, heads.dims);
  made.insert(made.end(), tensor.view.data + made.size(), tensor.view.data + tensor.view.bytes());
  tensor.made = std::move(made);
  tensor.view.data = tensor.made.data();
  return tensor;
}

bool CheckpointSource::Numbered(const Part& part) const {
  return !Has(part.name + ".weight") && (!checkpoint_.gguf || Has(NameOfExpert(part, 0)));
}

Status CheckpointSource::FindExperts(const Part& part, int count, std::int64_t inputs) {
  if (!Numbered(part)) return Find(part.name + ".weight", {count, part.outputs, inputs});
  for (int expert = 0; expert < count; ++expert) {
    const std::string name = NameOfExpert(part, expert);
    FT_RETURN_IF_ERROR(Find(name, {part.outputs, inputs}));
    const WeightFormat format = checkpoint_.Find(name)->format;
    const WeightFormat first = checkpoint_.Find(NameOfExpert(part, 0))->format;
    if (format == first) continue;
    return Invalid(
        "{}: tensor {} is {}, but that of expert 0 is {}, and those of all experts of a layer must "
        "be alike",
        checkpoint_.path.string(), checkpoint_.NameInFile(name), FormatName(format),
        FormatName(first));
  }
  return {};
}

// Refuses a tensor that is missing or has another shape.
Status CheckpointSource::Find(const std::string& name, const Shape& shape) {
  const std::string where = checkpoint_.path.string();
  const TensorView* view = checkpoint_.Find(name);
  const bool first = used_.insert(name).second;
  if (view == nullptr) {
    return Invalid("{}: lacks tensor {} of shape {}", where, checkpoint_.NameInFile(name),
                   FormatShape(shape));
  }
  if (view->shape != shape) {
    return Invalid("{}: tensor {} must have shape {} by {} but has {}", where,
                   checkpoint_.NameInFile(name), FormatShape(shape), Description(),
                   FormatShape(view->shape));
  }
  if (first) bytes_ += view->bytes();
  return {};
}

}  // namespace foretoken
