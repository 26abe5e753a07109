#include "weights/check_finite.h"

#include <fmt/core.h>

#include "tensor/not_finite.h"

namespace foretoken {

Status CheckFinite(const Checkpoint& checkpoint, std::string_view name, const TensorView& read) {
  const std::int64_t at = FindNotFinite(read);
  if (at < 0) return {};
  return InvalidInput(
      fmt::format("{}: weight {} of tensor {} is infinite or NaN, but must be a finite number: the "
                  "file is damaged or was made badly",
                  checkpoint.path.string(), at, checkpoint.NameInFile(name)));
}

}  // namespace foretoken
