#include "core/weights/check_finite.h"

#include <algorithm>
#include <atomic>

#include "base/threads/cores.h"
#include "base/threads/run_threads.h"
#include "core/tensor/not_finite.h"

namespace foretoken {
namespace {

// So many elements at once, whole blocks of every format. Tensors of fewer than kLarge are read on
// one core: threads take about as long to start.
constexpr std::int64_t kCheckedPiece = 1 << 20;
constexpr std::int64_t kLarge = 4 * kCheckedPiece;

// FindNotFinite by all cores: memory gives one of them less than it has.
std::int64_t FindOnAllCores(const TensorView& tensor) {
  const std::int64_t elements = tensor.elements();
  if (elements < kLarge) return FindNotFinite(tensor);
  const std::int64_t pieces = (elements + kCheckedPiece - 1) / kCheckedPiece;
  std::atomic<std::int64_t> next = 0;
  std::atomic<std::int64_t> first = elements;
  const auto work = [&](int part) {
    // Threads inherit the one core of the thread that loads a model, which keeps it.
    if (part > 0) UnpinCurrentThread();
    for (std::int64_t piece = next++; piece < pieces; piece = next++) {
      const std::int64_t begin = piece * kCheckedPiece;
      if (begin > first.load()) return;
      const std::int64_t at =
          FindNotFinite(tensor, begin, std::min(begin + kCheckedPiece, elements));
      if (at < 0) continue;
      for (std::int64_t known = first.load(); at < known;) {
        if (first.compare_exchange_weak(known, at)) break;
      }
    }
  };
  RunThreads(static_cast<int>(std::min<std::int64_t>(std::ssize(AvailableCores()), pieces)), work);
  return first.load() < elements ? first.load() : -1;
}

}  // namespace

Status CheckFinite(const Checkpoint& checkpoint, std::string_view name, const TensorView& read) {
  const std::int64_t at = FindOnAllCores(read);
  if (at < 0) return {};
  return Invalid(
      "{}: weight {} of tensor {} is infinite or NaN, but must be a finite number: the file is "
      "damaged or was made badly",
      checkpoint.path.string(), at, checkpoint.NameInFile(name));
}

}  // namespace foretoken
