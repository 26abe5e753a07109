#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/model/adapter/adapter_file.h"
#include "core/model/config/model_config.h"

namespace foretoken {

/// The matrices of a layer that adapters change.
enum class AdaptedMatrix { kQkv, kOutput, kGateUp, kDown };
inline constexpr std::size_t kAdaptedMatrices = 4;

/// What an adapter adds to a matrix: up * down, both float32 by rows.
struct LowRank {
  int rank = 0;             ///< 0: nothing.
  std::vector<float> down;  ///< [rank, inputs]
  std::vector<float> up;    ///< [outputs, rank]; the adapter's own scale is in it.
};

/// An adapter in the shapes of the model that it was read for.
struct Adapter {
  std::vector<std::array<LowRank, kAdaptedMatrices>> layers;
  std::string fingerprint;  ///< SHA-256 of all of it, in hexadecimal digits.
};

/// Reads an adapter of a model. Where several tensors make one matrix of the model (queries, keys
/// and values, say), its factors are theirs: `down` one below the other, `up` beside each other
/// with zeros elsewhere. Refuses in one sentence what the model does not have or adapters cannot
/// change (embeddings, the head, norms, experts), and factors of other shapes.
Result<Adapter> MakeAdapter(const AdapterFile& file, const ModelConfig& config);

/// Opens and reads: a folder as PEFT saves it or a GGUF file.
Result<Adapter> ReadAdapter(const std::filesystem::path& path, const ModelConfig& config);

}  // namespace foretoken
