#include "core/tensor/block_search.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "core/tensor/half.h"

namespace foretoken {
namespace {

constexpr int kMostGroup = 32;
// The ranges that a group's codes are tried over differ from what its extremes would have by up to
// one step: cutting the extremes off a little may do the others more good than it does them harm.
constexpr float kFurthest = 1.0F;
constexpr float kStep = 0.125F;
// A search's best codes and their scales are then fitted to each other so often.
constexpr int kFittings = 2;

// The nearest integer, ties to even, of a number far below 2^22: without a call of the C library.
float Rounded(float value) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23
  return (value + kMagic) - kMagic;
}
// A NaN, which infinite inverses make of zeros, is `low`.
float RoundedWithin(float value, float low, float high) {
  return Rounded(std::min(std::max(low, value), high));
}

float HalfOf(double value) { return HalfToFloat(FloatToHalf(static_cast<float>(value))); }

// What integers up to `most` are multiplied by to reach `extreme`. Among the smallest halves the
// nearest one may be much too small, and cut the extreme off.
float UnitFor(double extreme, int most) {
  const auto unit = static_cast<float>(extreme / most);
  std::uint16_t half = FloatToHalf(unit);
  const bool subnormal = (half & 0x7FFF) < 0x0400;
  if (subnormal && std::abs(HalfToFloat(half)) < std::abs(unit)) ++half;
  return HalfToFloat(half);
}

// Sums of eight lanes, which compilers make vectors of; always in the same order.
float Product(const float* a, const float* b, int count) {
  float lanes[8] = {};
  for (int i = 0; i < count; i += 8) {
    for (int lane = 0; lane < 8; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}
float Sum(const float* a, int count) {
  static constexpr std::array<float, kMostGroup> kOnes = [] {
    std::array<float, kMostGroup> ones{};
    ones.fill(1);
    return ones;
  }();
  return Product(a, kOnes.data(), count);
}

// How a group is written: values `scale` * code - `less`. `gain` is by how much that lowers the
// square error of zeros.
struct Fit {
  double scale = 0;
  double less = 0;
  double gain = 0;
};

// The least squares of scale and less for codes that are given. Both are at least zero where there
// is a less; what is not possible has no gain.
Fit FitTo(const float* values, const float* codes, int count, bool has_less) {
  const double xq = Product(values, codes, count);
  const double qq = Product(codes, codes, count);
  if (qq <= 0) return {};
  Fit fit;
  if (has_less) {
    const double x = Sum(values, count);
    const double q = Sum(codes, count);
    const double determinant = count * qq - q * q;
    if (determinant > 0) {
      fit.scale = (count * xq - x * q) / determinant;
      fit.less = (fit.scale * q - x) / count;
    }
    if (fit.scale > 0 && fit.less > 0) {
      fit.gain = fit.scale * xq - fit.less * x;
      return fit;
    }
    if (xq <= 0) return {};
  }
  return {.scale = xq / qq, .less = 0, .gain = xq * xq / qq};
}

// Searches a group's scale, and its less where the format has one.
class GroupSearch {
 public:
  GroupSearch(const WeightCodes& meaning, const float* values)
      : meaning_(meaning),
        values_(values),
        low_(static_cast<float>(-meaning.offset)),
        high_(low_ + static_cast<float>((1 << meaning.bits) - 1)) {}

  Fit Find() {
    if (meaning_.has_less) {
      TryRanges();
    } else {
      TryScales();
    }
    for (int i = 0; i < kFittings && best_.scale != 0; ++i) {
      Try(static_cast<float>(1 / best_.scale), static_cast<float>(best_.less));
    }
    return best_;
  }

 private:
  // The element of largest magnitude becomes the lowest value, about.
  void TryScales() {
    const float extreme =
        *std::max_element(values_, values_ + meaning_.group,
                          [](float a, float b) { return std::abs(a) < std::abs(b); });
    if (extreme == 0) return;
    for (float by = -kFurthest; by <= kFurthest; by += kStep) Try((low_ + by) / extreme, 0);
  }

  // The smallest element, or zero, becomes code 0, and the largest the highest one, about.
  void TryRanges() {
    const auto [smallest, largest] = std::minmax_element(values_, values_ + meaning_.group);
    const float less = -std::min(*smallest, 0.0F);
    const float range = *largest + less;
    if (range <= 0) {  // All alike.
      best_ = {.scale = 0, .less = less, .gain = 0};
      return;
    }
    for (float by = -kFurthest; by <= kFurthest; by += kStep) Try((high_ + by) / range, less);
  }

  void Try(float inverse, float less) {
    float codes[kMostGroup];
    for (int i = 0; i < meaning_.group; ++i) {
      codes[i] = RoundedWithin((values_[i] + less) * inverse, low_, high_);
    }
    const Fit fit = FitTo(values_, codes, meaning_.group, meaning_.has_less);
    if (fit.gain > best_.gain) best_ = fit;
  }

  const WeightCodes& meaning_;
  const float* values_;
  const float low_;
  const float high_;
  Fit best_;
};

// What the groups' scales and lesses may be multiplied by.
struct ScaleRange {
  int low;   // For scales: negative where they have signs.
  int high;  // For scales and lesses.
};
ScaleRange RangeOf(WeightFormat format) {
  switch (format) {
    case WeightFormat::kQ2_K:
      return {0, 15};
    case WeightFormat::kQ3_K:
      return {-32, 31};
    case WeightFormat::kQ6_K:
      return {-128, 127};
    default:
      return {0, 63};
  }
}

// A block under way: the groups' scales and lesses are `scale` and `less` times integers.
class BlockSearch {
 public:
  BlockSearch(WeightFormat format, const float* values)
      : format_(format),
        meaning_(CodesOf(format)),
        groups_(kMostBlockElements / meaning_.group),
        values_(values) {}

  WeightBlock Find() {
    std::array<Fit, kMostGroups> fits;
    for (int g = 0; g < groups_; ++g) {
      fits[g] = GroupSearch(meaning_, values_ + g * meaning_.group).Find();
    }
    RoundGroups(fits);
    ChooseCodes();
    FitBlock();
    return block_;
  }

 private:
  void RoundGroups(const std::array<Fit, kMostGroups>& fits) {
    const ScaleRange range = RangeOf(format_);
    double extreme = 0;
    double most_less = 0;
    for (int g = 0; g < groups_; ++g) {
      if (std::abs(fits[g].scale) > std::abs(extreme)) extreme = fits[g].scale;
      most_less = std::max(most_less, fits[g].less);
    }
    // Where scales have signs, the one of largest magnitude takes the longer side.
    scale_ = UnitFor(extreme, range.low < 0 ? range.low : range.high);
    less_ = UnitFor(most_less, range.high);
    const auto rounded = [](double value, float unit, int low, int high) {
      if (unit == 0) return 0;
      return static_cast<int>(std::clamp(std::round(value / unit), 1.0 * low, 1.0 * high));
    };
    for (int g = 0; g < groups_; ++g) {
      block_.group_scales[g] =
          static_cast<std::int8_t>(rounded(fits[g].scale, scale_, range.low, range.high));
      block_.group_less[g] = static_cast<std::uint8_t>(rounded(fits[g].less, less_, 0, range.high));
    }
  }

  // The nearest codes for scales as they are now.
  void ChooseCodes() {
    const auto low = static_cast<float>(-meaning_.offset);
    const float high = low + static_cast<float>((1 << meaning_.bits) - 1);
    for (int g = 0; g < groups_; ++g) {
      const float scale = scale_ * static_cast<float>(block_.group_scales[g]);
      const float less = less_ * static_cast<float>(block_.group_less[g]);
      const float inverse = scale == 0 ? 0 : 1 / scale;
      for (int i = g * meaning_.group; i < (g + 1) * meaning_.group; ++i) {
        const float value = RoundedWithin((values_[i] + less) * inverse, low, high);
        block_.codes[i] = static_cast<std::uint8_t>(static_cast<int>(value) + meaning_.offset);
      }
    }
    block_.scale = FloatToHalf(scale_);
    block_.less = FloatToHalf(less_);
  }

  // The least squares of the block's own scale and less for the codes and the groups' integers:
  // kept where they are better, rounded to halves as they will be.
  void FitBlock() {
    double xs = 0, ss = 0, xm = 0, mm = 0, sm = 0;
    for (int g = 0; g < groups_; ++g) {
      const double m = block_.group_less[g];
      for (int i = g * meaning_.group; i < (g + 1) * meaning_.group; ++i) {
        const double s = block_.group_scales[g] * (block_.codes[i] - meaning_.offset);
        xs += values_[i] * s;
        ss += s * s;
        xm += values_[i] * m;
        mm += m * m;
        sm += s * m;
      }
    }
    if (ss == 0) return;
    double scale = xs / ss;
    double less = 0;
    if (mm > 0) {
      const double determinant = ss * mm - sm * sm;
      if (determinant <= 0) return;
      scale = (xs * mm - xm * sm) / determinant;
      less = (xs * sm - xm * ss) / determinant;
    }
    if (meaning_.has_less && (scale < 0 || less < 0)) return;
    const auto error = [&](double s, double l) {  // Without the squares of the values.
      return s * s * ss + l * l * mm - 2 * s * l * sm - 2 * s * xs + 2 * l * xm;
    };
    if (error(HalfOf(scale), HalfOf(less)) >= error(scale_, less_)) return;
    block_.scale = FloatToHalf(static_cast<float>(scale));
    block_.less = FloatToHalf(static_cast<float>(less));
  }

  const WeightFormat format_;
  const WeightCodes& meaning_;
  const int groups_;
  const float* values_;
  float scale_ = 0;
  float less_ = 0;
  WeightBlock block_ = {};
};

}  // namespace

WeightBlock SearchBlock(WeightFormat format, const float* values) {
  FT_CHECK(InfoOf(format).block_elements == kMostBlockElements);
  return BlockSearch(format, values).Find();
}

}  // namespace foretoken
