#include "core/model/decoder/synthetic_source.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/numbers/integers.h"
#include "core/tensor/half.h"

namespace foretoken {
namespace {

// A logistic curve near enough to the normal quantile function, of unit variance.
double Quantile(double p) { return std::log(p / (1 - p)) * 0.5513; }

std::int64_t OutputsOfParts(const std::vector<Part>& parts) {
  std::int64_t outputs = 0;
  for (const Part& part : parts) outputs += part.outputs;
  return outputs;
}

}  // namespace

Result<Buffer> SyntheticSource::Vector(const std::string& /*name*/, std::int64_t width) {
  Buffer zeros(width * sizeof(float));
  std::fill_n(zeros.as<float>(), width, 0.0F);
  return zeros;
}

Result<NormWeights> SyntheticSource::Norm(const std::string& name, std::int64_t width,
                                          bool biased) {
  NormWeights norm;
  norm.gain = Buffer(width * sizeof(float));
  std::fill_n(norm.gain.as<float>(), width, 1.0F);
  if (biased) {
    FT_ASSIGN_OR_RETURN(norm.bias, Vector(name, width));
  }
  return norm;
}

Result<NormWeights> SyntheticSource::PlainNorm(const std::string& name, std::int64_t width) {
  return Norm(name, width, false);
}

// The mean of what they reach.
Result<Buffer> SyntheticSource::Taps(const std::string& /*name*/, std::int64_t width,
                                     std::int64_t taps) {
  Buffer all(Size(width * taps) * sizeof(float));
  std::fill_n(all.as<float>(), width * taps, 1.0F / static_cast<float>(taps));
  return all;
}

Result<Buffer> SyntheticSource::Biases(const std::vector<Part>& parts,
                                       const RotatedHeads& /*heads*/) {
  return Vector("", OutputsOfParts(parts));
}

Result<NormWeights> SyntheticSource::HeadNorm(const std::vector<Part>& parts,
                                              const RotatedHeads& /*heads*/) {
  return Norm("", OutputsOfParts(parts), false);
}

Result<Matrix> SyntheticSource::Stack(const std::vector<Part>& parts, std::int64_t inputs,
                                      double gain, const RotatedHeads& /*heads*/) {
  return backend_->Pack(std::array{RandomMatrix(parts, inputs, gain)});
}

Result<EmbeddingTable> SyntheticSource::Rows(const std::string& name, std::int64_t rows,
                                             std::int64_t width, double gain) {
  EmbeddingTable table;
  FT_ASSIGN_OR_RETURN(table.packed, Stack({{name, rows}}, width, gain));
  return table;
}

Result<Matrix> SyntheticSource::Experts(const std::vector<Part>& parts, int count,
                                        std::int64_t inputs, double gain) {
  Matrix stack;
  for (int expert = 0; expert < count; ++expert) {
    const std::array view{RandomMatrix(parts, inputs, gain)};
    if (expert == 0) stack = backend_->MakeStack(view, count);
    backend_->PackInto(view, expert, &stack);
  }
  return stack;
}

Result<Buffer> SyntheticSource::BiasesOfExperts(const std::vector<Part>& parts, int count) {
  return Vector("", count * OutputsOfParts(parts));
}

// Valid until the next one. Each value is one of 256 quantiles of a normal distribution, picked by
// one byte of an xorshift generator: eight values for a few instructions.
TensorView SyntheticSource::RandomMatrix(const std::vector<Part>& parts, std::int64_t inputs,
                                         double gain) {
  const double deviation = gain / std::sqrt(static_cast<double>(inputs));
  std::array<BFloat16, 256> quantiles;
  for (int i = 0; i < 256; ++i) {
    quantiles[i] = FloatToBFloat16(static_cast<float>(deviation * Quantile((i + 0.5) / 256)));
  }
  const std::int64_t outputs = OutputsOfParts(parts);
  const std::size_t count = Size(outputs * inputs);
  if (scratch_.bytes() < count * sizeof(BFloat16) + 16) {
    scratch_ = Buffer(count * sizeof(BFloat16) + 16);
  }
  BFloat16* out = scratch_.as<BFloat16>();
  for (std::size_t i = 0; i < count; i += 8) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    for (int byte = 0; byte < 8; ++byte) out[i + byte] = quantiles[state_ >> (8 * byte) & 0xFF];
  }
  return {WeightFormat::kBF16, {outputs, inputs}, scratch_.data()};
}

}  // namespace foretoken
