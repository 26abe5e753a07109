#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/model/decoder/decoder_weights.h"
#include "core/model/decoder/weight_parts.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// The weights of a checkpoint, as they are asked for. Without a backend they are found and
/// checked, and nothing is packed. Every error names the file and the tensor.
class CheckpointSource {
 public:
  /// Borrows both.
  CheckpointSource(const Checkpoint& checkpoint, ExpertsPlace experts, Backend* backend)
      : checkpoint_(checkpoint), experts_(experts), backend_(backend) {}

  /// The bytes of all that was found.
  std::size_t bytes() const { return bytes_; }
  /// From now on `progress` is told how many of `all` bytes are packed.
  void ReportTo(const LoadProgress& progress, std::size_t all);

  /// By a whole name.
  bool Has(const std::string& name) const { return checkpoint_.Find(name) != nullptr; }

  /// A tensor that a layer has no use for, though its like is used in others, is none to refuse.
  void Ignore(const std::string& name) { used_.insert(name); }

  /// Numbers by a whole name, more.
  Result<Buffer> Vector(const std::string& name, std::int64_t width, float more = 0);
  Result<NormWeights> Norm(const std::string& name, std::int64_t width, bool biased);
  /// The biases of a matrix's parts, one behind the other.
  Result<Buffer> Biases(const std::vector<Part>& parts, const RotatedHeads& heads);
  /// The gains of a norm of queries or keys, likewise.
  Result<NormWeights> HeadNorm(const std::vector<Part>& parts, const RotatedHeads& heads);

  /// The gain of a norm that is never kept less one.
  Result<NormWeights> PlainNorm(const std::string& name, std::int64_t width);
  /// Taps [taps, width] of a convolution, which are kept as [width, taps].
  Result<Buffer> Taps(const std::string& name, std::int64_t width, std::int64_t taps);

  /// The matrix of tensors [outputs, inputs], one below the other. `gain` is for random weights.
  Result<Matrix> Stack(const std::vector<Part>& parts, std::int64_t inputs, double gain,
                       const RotatedHeads& heads = {});
  /// A tensor of which rows are read as they are stored.
  Result<EmbeddingTable> Rows(const std::string& name, std::int64_t rows, std::int64_t width,
                              double gain);

  /// A stack of `count` matrices; of each part there is a tensor [count, outputs, inputs], or one
  /// tensor for each of them.
  Result<Matrix> Matrices(const std::vector<Part>& parts, int count, std::int64_t inputs,
                          double gain);
  /// One of experts, which borrows the file where these stay there.
  Result<Matrix> Experts(const std::vector<Part>& parts, int count, std::int64_t inputs,
                         double gain);
  /// [count, outputs of all parts].
  Result<Buffer> BiasesOfExperts(const std::vector<Part>& parts, int count);

  /// A tensor of a layer, of a drafter's features or of its heads, that was not asked for means a
  /// model that would be computed wrongly, whatever its configuration says.
  Status RefuseUnused() const;

 private:
  using Shape = std::vector<std::int64_t>;

  void Report() const;
  const char* Description() const;
  Status Find(const std::string& name, const Shape& shape);
  Result<Buffer> Numbers(const std::vector<Part>& parts, const char* ending,
                         const RotatedHeads& heads);
  TensorBytes ReadRotated(const std::string& name, const Part& part, const RotatedHeads& heads);
  bool Numbered(const Part& part) const;
  Status FindExperts(const Part& part, int count, std::int64_t inputs);
  Result<Matrix> ExpertsInFile(const std::vector<Part>& parts, int count);
  Status CheckLiesInFile(const std::string& name) const;

  const Checkpoint& checkpoint_;
  ExpertsPlace experts_;
  Backend* backend_;
  std::set<std::string, std::less<>> used_;
  std::size_t bytes_ = 0;
  LoadProgress progress_;
  std::size_t all_ = 0;
};

}  // namespace foretoken
