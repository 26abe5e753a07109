#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/decoder/decoder_weights.h"
#include "core/model/decoder/weight_parts.h"

namespace foretoken {

/// Random BF16 weights in place of a checkpoint's (CheckpointSource), the same for the same seed:
/// gains are one, biases zero, and a product with a matrix makes numbers of standard deviation
/// `gain` of inputs of unit variance.
class SyntheticSource {
 public:
  SyntheticSource(std::uint64_t seed, Backend* backend)
      : state_(seed * 2 + 0x9E3779B97F4A7C15U), backend_(backend) {}

  static bool Has(const std::string& /*name*/) { return false; }
  static void Ignore(const std::string& /*name*/) {}
  static Result<Buffer> Vector(const std::string& name, std::int64_t width);
  static Result<NormWeights> Norm(const std::string& name, std::int64_t width, bool biased);
  static Result<NormWeights> PlainNorm(const std::string& name, std::int64_t width);
  static Result<Buffer> Taps(const std::string& name, std::int64_t width, std::int64_t taps);
  static Result<Buffer> Biases(const std::vector<Part>& parts, const RotatedHeads& heads);
  static Result<NormWeights> HeadNorm(const std::vector<Part>& parts, const RotatedHeads& heads);
  Result<Matrix> Stack(const std::vector<Part>& parts, std::int64_t inputs, double gain,
                       const RotatedHeads& heads = {});
  Result<EmbeddingTable> Rows(const std::string& name, std::int64_t rows, std::int64_t width,
                              double gain);
  Result<Matrix> Matrices(const std::vector<Part>& parts, int count, std::int64_t inputs,
                          double gain) {
    return Experts(parts, count, inputs, gain);
  }
  Result<Matrix> Experts(const std::vector<Part>& parts, int count, std::int64_t inputs,
                         double gain);
  static Result<Buffer> BiasesOfExperts(const std::vector<Part>& parts, int count);

 private:
  TensorView RandomMatrix(const std::vector<Part>& parts, std::int64_t inputs, double gain);

  std::uint64_t state_;
  Backend* backend_;
  Buffer scratch_;
};

}  // namespace foretoken
