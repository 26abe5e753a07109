#include "core/weights/check_finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/tensor/quantize.h"

namespace foretoken {
namespace {

// The first of two in a tensor that all cores read is named, wherever pieces begin.
TEST(CheckFinite, NamesTheFirstOfALargeTensor) {
  constexpr std::int64_t kElements = (5 << 20) + 64;
  const Checkpoint checkpoint{.path = "folder"};
  for (const auto format : {WeightFormat::kF32, WeightFormat::kBF16, WeightFormat::kQ8_0}) {
    const std::int64_t block = InfoOf(format).block_elements;
    std::vector<std::byte> bytes(FormatBytes(format, kElements));
    const std::vector<float> usual(kElements, 0.5F);
    const TensorView view{format, {kElements}, bytes.data()};
    StoreElements(format, usual.data(), kElements, bytes.data());
    EXPECT_TRUE(CheckFinite(checkpoint, "w", view).ok());
    const std::vector<float> wrong(block, std::numeric_limits<float>::infinity());
    for (const std::int64_t at :
         {kElements - 64, std::int64_t{4} << 20, (std::int64_t{3} << 20) - 32, std::int64_t{0}}) {
      StoreElements(format, wrong.data(), block, bytes.data() + FormatBytes(format, at));
      const Status status = CheckFinite(checkpoint, "w", view);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().message,
                "folder: weight " + std::to_string(at) +
                    " of tensor w is infinite or NaN, but must be a finite number: the file is "
                    "damaged or was made badly");
    }
  }
}

}  // namespace
}  // namespace foretoken
