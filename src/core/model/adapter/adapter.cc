#include "core/model/adapter/adapter.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "base/numbers/sha256.h"
#include "base/text/parse_number.h"
#include "base/text/printable.h"
#include "core/model/families/family.h"
#include "core/weights/arrange/rotated_rows.h"

namespace foretoken {
namespace {

// A tensor of a layer, and which outputs of one of the model's matrices it is.
struct AdaptedPart {
  std::string_view name;
  AdaptedMatrix matrix;
  std::int64_t begin;  // First of the outputs.
  std::int64_t outputs;
  std::int64_t rotated = 0;  // Its leading outputs that are heads which are rotated.
};

// Attention whose keys are another layer's, or serve as its values, has no part for keys; one whose
// tensor of queries has gates too has none for queries. Latent attention has the output projection
// alone, and a recurrent layer only what follows it.
std::vector<AdaptedPart> PartsOf(const LayerSpec& layer, std::int64_t hidden) {
  const AttentionSpec& attention = layer.attention;
  const std::int64_t q = attention.query_width();
  const std::int64_t kv = attention.kv_width();
  const bool plain = !layer.is_recurrent() && !attention.is_latent();
  const bool keys = plain && attention.kv_from < 0 && !attention.keys_as_values;
  std::vector<AdaptedPart> parts;
  if (!layer.is_recurrent()) parts.push_back({"o", AdaptedMatrix::kOutput, 0, hidden});
  if (plain && !attention.output_gate) parts.push_back({"q", AdaptedMatrix::kQkv, 0, q, q});
  if (keys) {
    parts.insert(parts.end(),
                 {{"k", AdaptedMatrix::kQkv, q, kv, kv}, {"v", AdaptedMatrix::kQkv, q + kv, kv}});
  }
  if (keys && !attention.output_gate) {
    parts.push_back({"qkv", AdaptedMatrix::kQkv, 0, q + 2 * kv, q + kv});
  }
  if (layer.mlp.has_experts()) return parts;
  const std::int64_t width = layer.mlp.intermediate;
  parts.insert(parts.end(), {{"gate", AdaptedMatrix::kGateUp, 0, width},
                             {"up", AdaptedMatrix::kGateUp, width, width},
                             {"gate_up", AdaptedMatrix::kGateUp, 0, 2 * width},
                             {"down", AdaptedMatrix::kDown, 0, hidden}});
  return parts;
}

struct MatrixSize {
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
};

MatrixSize SizeOf(AdaptedMatrix matrix, const LayerSpec& layer, std::int64_t hidden) {
  switch (matrix) {
    case AdaptedMatrix::kQkv:
      return {layer.attention.shape().row_width(), hidden};
    case AdaptedMatrix::kOutput:
      return {hidden, layer.attention.output_width()};
    case AdaptedMatrix::kGateUp:
      return {2 * std::int64_t{layer.mlp.intermediate}, hidden};
    case AdaptedMatrix::kDown:
      return {hidden, layer.mlp.intermediate};
  }
  return {};
}

// "layers.3.q" as 3 and "q".
struct LayerName {
  int layer = 0;
  std::string_view part;
};
std::optional<LayerName> SplitName(std::string_view name) {
  constexpr std::string_view kPrefix = "layers.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const std::size_t dot = name.find('.');
  LayerName split;
  if (dot == std::string_view::npos || !ParseNumber(name.substr(0, dot), &split.layer)) {
    return std::nullopt;
  }
  split.part = name.substr(dot + 1);
  return split;
}

std::vector<float> Floats(const TensorView& view) {
  std::vector<float> values(view.elements());
  LoadElements(view, 0, view.elements(), values.data());
  return values;
}

// Puts an adapter together, tensor by tensor.
class Builder {
 public:
  Builder(const AdapterFile& file, const ModelConfig& config) : file_(file), config_(config) {
    adapter_.layers.resize(config.layers.size());
  }

  Status Add(std::string_view name, const AdapterFactors& factors) {
    const auto split = SplitName(name);
    if (!split) return Refuse(factors, "which adapters cannot change here");
    if (split->layer >= config_.layer_count()) {
      return Refuse(factors, fmt::format("but the model has {} layers", config_.layer_count()));
    }
    const LayerSpec& layer = config_.layers[split->layer];
    const std::vector<AdaptedPart> parts = PartsOf(layer, config_.hidden);
    const auto part = std::ranges::find(parts, split->part, &AdaptedPart::name);
    if (part == parts.end()) {
      return Refuse(factors,
                    fmt::format("but of that layer adapters change only {} here", NamesOf(parts)));
    }
    const MatrixSize size = SizeOf(part->matrix, layer, config_.hidden);
    const std::int64_t inputs = factors.down.shape[1];
    const std::int64_t outputs = factors.up.shape[0];
    if (inputs != size.inputs || outputs != part->outputs) {
      return Refuse(factors, fmt::format("as of {} inputs and {} outputs, but there it has {} and "
                                         "{}: the adapter is of another model",
                                         inputs, outputs, size.inputs, part->outputs));
    }
    LowRank& sum = adapter_.layers[split->layer][static_cast<std::size_t>(part->matrix)];
    Join(*part, Floats(factors.down), UpOf(factors, *part, layer.attention), size.outputs, &sum);
    return {};
  }

  Adapter Finish() {
    Sha256 sha;
    const auto add = [&sha](const std::vector<float>& values) {
      sha.Update({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
    };
    for (const auto& layer : adapter_.layers) {
      for (const LowRank& sum : layer) {
        sha.Update(fmt::format("{}\n", sum.rank));
        add(sum.down);
        add(sum.up);
      }
    }
    adapter_.fingerprint = sha.Hex();
    return std::move(adapter_);
  }

 private:
  Error Refuse(const AdapterFactors& factors, const std::string& why) const {
    return Invalid("{}: changes {}, {}", file_.path.string(), Printable(factors.name_in_file), why);
  }

  static std::string NamesOf(const std::vector<AdaptedPart>& parts) {
    std::string names;
    for (const AdaptedPart& part : parts)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", part.name);
    return names.empty() ? "nothing" : names;
  }

  // Scaled, its rows in the order in which heads are rotated.
  std::vector<float> UpOf(const AdapterFactors& factors, const AdaptedPart& part,
                          const AttentionSpec& attention) const {
    std::vector<float> up = Floats(factors.up);
    for (float& value : up) value = static_cast<float>(value * factors.scale);
    if (!file_.alternating_heads || part.rotated == 0) return up;
    const TensorView rotated{WeightFormat::kF32,
                             {part.rotated, factors.up.shape[1]},
                             reinterpret_cast<const std::byte*>(up.data())};
    const std::vector<std::byte> ordered =
        HalvesApart(rotated, attention.head_dim, RotatedDims(config_, attention));
    std::memcpy(up.data(), ordered.data(), ordered.size());
    return up;
  }

  // Puts the factors of one part beside those that `sum` has.
  static void Join(const AdaptedPart& part, const std::vector<float>& down,
                   const std::vector<float>& up, std::int64_t outputs, LowRank* sum) {
    const auto own = std::ssize(up) / part.outputs;
    const std::int64_t before = sum->rank;
    const std::int64_t rank = before + own;
    std::vector<float> joined(Size(outputs * rank));
    for (std::int64_t row = 0; row < outputs; ++row) {
      if (before > 0) std::copy_n(&sum->up[Size(row * before)], before, &joined[Size(row * rank)]);
      const std::int64_t mine = row - part.begin;
      if (mine < 0 || mine >= part.outputs) continue;
      std::copy_n(&up[Size(mine * own)], own, &joined[row * rank + before]);
    }
    sum->rank = static_cast<int>(rank);
    sum->up = std::move(joined);
    sum->down.insert(sum->down.end(), down.begin(), down.end());
  }

  const AdapterFile& file_;
  const ModelConfig& config_;
  Adapter adapter_;
};

}  // namespace

Result<Adapter> MakeAdapter(const AdapterFile& file, const ModelConfig& config) {
  Builder builder(file, config);
  for (const auto& [name, factors] : file.factors) {
    FT_RETURN_IF_ERROR(builder.Add(name, factors));
  }
  return builder.Finish();
}

Result<Adapter> ReadAdapter(const std::filesystem::path& path, const ModelConfig& config) {
  const Family* family = FamilyNamed(config.family);
  if (family == nullptr) {
    return Invalid("{}: a model of random weights has no adapters", path.string());
  }
  FT_ASSIGN_OR_RETURN(const AdapterFile file, OpenAdapterFile(path, *family));
  return MakeAdapter(file, config);
}

}  // namespace foretoken
