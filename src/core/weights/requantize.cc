#include "core/weights/requantize.h"

#include <algorithm>
#include <atomic>

#include "base/numbers/integers.h"
#include "base/threads/cores.h"
#include "base/threads/run_threads.h"
#include "core/tensor/quantize.h"

namespace foretoken {
namespace {

// So many elements at once, whole blocks of every format: in the cache as floats.
constexpr std::int64_t kConvertedPiece = 16 * 1024;

}  // namespace

std::vector<std::byte> Converted(const TensorView& tensor, WeightFormat format) {
  const std::int64_t elements = tensor.elements();
  const std::int64_t pieces = (elements + kConvertedPiece - 1) / kConvertedPiece;
  std::vector<std::byte> made(FormatBytes(format, elements));
  std::atomic<std::int64_t> next = 0;
  const auto work = [&](int part) {
    // Threads inherit the one core of the thread that loads a model, which keeps it.
    if (part > 0) UnpinCurrentThread();
    std::vector<float> values(std::min(kConvertedPiece, elements));
    for (std::int64_t piece = next++; piece < pieces; piece = next++) {
      const std::int64_t begin = piece * kConvertedPiece;
      const std::int64_t count = std::min(kConvertedPiece, elements - begin);
      LoadElements(tensor, begin, count, values.data());
      StoreElements(format, values.data(), count, made.data() + FormatBytes(format, begin));
    }
  };
  const auto threads = std::min(std::ssize(AvailableCores()), static_cast<std::ptrdiff_t>(pieces));
  RunThreads(static_cast<int>(std::max(std::ptrdiff_t{1}, threads)), work);
  return made;
}

Checkpoint Requantize(Checkpoint checkpoint, const WeightType& type, const MixBasis& model) {
  for (auto& [name, tensor] : checkpoint.tensors) {
    const TensorPlace place{name, tensor.shape.back(), Int(tensor.shape.size())};
    const WeightFormat format = FormatFor(type, place, model);
    if (format == tensor.format) continue;
    checkpoint.requantized_from.emplace(name, tensor);
    tensor.format = format;
    tensor.data = nullptr;
  }
  return checkpoint;
}

}  // namespace foretoken
