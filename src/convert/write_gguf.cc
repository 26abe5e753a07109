#include "convert/write_gguf.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/replace_file.h"
#include "convert/gguf_keys.h"
#include "model/families/family.h"
#include "model/families/read_config.h"
#include "model/model_weights.h"
#include "model/open_checkpoint.h"
#include "weights/gguf/gguf_header.h"
#include "weights/requantize.h"
#include "weights/rotated_rows.h"

namespace foretoken {
namespace {

constexpr std::uint32_t kQuantizationVersion = 2;
constexpr std::string_view kRopeFactors = "rope_freqs.weight";

std::string_view Text(const TensorView& view) {
  return {reinterpret_cast<const char*>(view.data), view.bytes()};
}

// Writes a model whose tensors have their formats.
class ModelWriter {
 public:
  ModelWriter(const Checkpoint& checkpoint, const ModelConfig& config, const WeightType& type)
      : checkpoint_(checkpoint), config_(config), type_(type), factors_(RopeFactors(config)) {}

  Result<WrittenGguf> Write(const std::filesystem::path& out, const LoadProgress& progress) {
    FT_RETURN_IF_ERROR(SetModelKeys(checkpoint_, config_, &header_));
    header_.Set("general.file_type", type_.file_type);
    header_.Set("general.quantization_version", kQuantizationVersion);
    ListTensors();
    FT_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(out));
    const std::string head = header_.Bytes();
    FT_RETURN_IF_ERROR(file.Write(head));
    written_.bytes = head.size();
    std::size_t done = 0;
    if (progress) progress(done, all_);
    for (const std::string& name : names_) {
      FT_RETURN_IF_ERROR(WriteTensor(name, &file));
      done += checkpoint_.Find(name)->bytes();
      if (progress) progress(done, all_);
    }
    if (!factors_.empty()) {
      const TensorView view{WeightFormat::kF32,
                            {std::ssize(factors_)},
                            reinterpret_cast<const std::byte*>(factors_.data())};
      FT_RETURN_IF_ERROR(Put(view, &file));
    }
    FT_RETURN_IF_ERROR(file.Finish());
    return std::move(written_);
  }

 private:
  void ListTensors() {
    for (const auto& [name, view] : checkpoint_.tensors) {
      // What the family does not have, and a head that this model does not use.
      const std::string theirs = NameInFile(*FamilyNamed(config_.family), /*gguf=*/true, name);
      if (theirs.empty() || (name == "head.weight" && config_.tied_embeddings)) continue;
      names_.push_back(name);
      all_ += view.bytes();
      header_.AddTensor(theirs, view.shape, view.format);
      ++written_.tensors[view.format];
      const bool small = IsQuantized(view.format) && InfoOf(type_.format).block_elements == 256 &&
                         InfoOf(view.format).block_elements != 256;
      if (small || (IsQuantized(type_.format) && view.format == WeightFormat::kF16)) {
        ++written_.smaller_blocks;
      }
    }
    if (factors_.empty()) return;
    header_.AddTensor(kRopeFactors, std::vector<std::int64_t>{std::ssize(factors_)},
                      WeightFormat::kF32);
    ++written_.tensors[WeightFormat::kF32];
  }

  Status WriteTensor(const std::string& name, FileReplacement* file) {
    FT_RETURN_IF_ERROR(CheckFinite(name));
    TensorBytes tensor = checkpoint_.Read(name);
    const bool rotated =
        name.find(".q.") != std::string::npos || name.find(".k.") != std::string::npos;
    if (rotated && !checkpoint_.gguf) {
      const std::int64_t head_dim = config_.layers.front().attention.head_dim;
      tensor.made = HalvesAlternating(tensor.view, head_dim, head_dim);
      tensor.view.data = tensor.made.data();
    }
    FT_RETURN_IF_ERROR(Put(tensor.view, file));
    checkpoint_.Release(name);
    return {};
  }

  Status CheckFinite(const std::string& name) const {
    constexpr std::int64_t kPiece = 16 * 1024;
    const TensorView& view = *checkpoint_.InFile(name);
    std::vector<float> values(static_cast<std::size_t>(std::min(kPiece, view.elements())));
    for (std::int64_t begin = 0; begin < view.elements(); begin += kPiece) {
      const std::int64_t count = std::min(kPiece, view.elements() - begin);
      LoadElements(view, begin, count, values.data());
      for (std::int64_t i = 0; i < count; ++i) {
        if (std::isfinite(values[static_cast<std::size_t>(i)])) continue;
        return InvalidInput(fmt::format(
            "{}: weight {} of tensor {} is {}, but must be a finite number",
            checkpoint_.path.string(), begin + i, checkpoint_.NameInFile(name), values[i]));
      }
    }
    return {};
  }

  Status Put(const TensorView& view, FileReplacement* file) {
    const std::string padding = header_.Padding(view.bytes());
    FT_RETURN_IF_ERROR(file->Write(Text(view)));
    FT_RETURN_IF_ERROR(file->Write(padding));
    written_.bytes += view.bytes() + padding.size();
    return {};
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const WeightType& type_;
  const std::vector<float> factors_;
  GgufHeader header_;
  std::vector<std::string> names_;
  std::size_t all_ = 0;
  WrittenGguf written_;
};

}  // namespace

Result<WrittenGguf> WriteGguf(Checkpoint checkpoint, const WeightType& type,
                              const std::filesystem::path& out, const LoadProgress& progress) {
  FT_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(checkpoint));
  FT_RETURN_IF_ERROR(CheckWeights(checkpoint, config));
  const Checkpoint requantized = Requantize(std::move(checkpoint), type, MixBasisOf(config));
  return ModelWriter(requantized, config, type).Write(out, progress);
}

}  // namespace foretoken
