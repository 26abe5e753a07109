#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/tensor/weight_format.h"

namespace foretoken {

/// What the weights of a whole model are stored as: one format, or a mix of formats in which the
/// tensors that matter most have more bits. Mixes and names are those of llama.cpp.
struct WeightType {
  std::string_view name;    ///< "q4_k_m"
  WeightFormat format;      ///< The format of most tensors.
  std::uint32_t file_type;  ///< Its number in GGUF files (general.file_type).
};

std::span<const WeightType> WeightTypes();
/// "q8_0, q4_0 ...": their names.
std::string WeightTypeNames();

/// The type of that name; "q3_k", "q4_k" and "q5_k" are the mixes that end in "_m". An error that
/// lists the names where there is none.
Result<WeightType> ParseWeightType(std::string_view name);

/// What mixes depend on of a model.
struct MixBasis {
  int layers = 0;
  int queries_per_kv_head = 1;
  bool tied_embeddings = false;
};

/// The properties of a tensor on which mixes depend.
struct TensorPlace {
  std::string_view name;  ///< Ours (core/model/families/family.h): "layers.3.down.weight".
  std::int64_t width = 0;
  int dimensions = 2;
};

/// The format of one of a model's tensors. Norms are F32. The lm head, or the embedding table where
/// that is it, has Q6_K where most have fewer bits. A width that is no multiple of the format's
/// block gets the nearest format of blocks of 32, or F16.
WeightFormat FormatFor(const WeightType& type, const TensorPlace& tensor, const MixBasis& model);

}  // namespace foretoken
