#include "door/convert/write_gguf.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/files/replace_file.h"
#include "core/model/families/family.h"
#include "core/model/families/read_config.h"
#include "core/model/model_weights.h"
#include "core/model/open_checkpoint.h"
#include "core/weights/check_finite.h"
#include "core/weights/gguf/gguf_header.h"
#include "core/weights/requantize.h"
#include "door/convert/gguf_keys.h"
#include "door/convert/gguf_tensors.h"

namespace foretoken {
namespace {

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
