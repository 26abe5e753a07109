#include "core/backend/cpu/quant/packing.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "core/backend/cpu/quant/layout.h"

namespace foretoken::cpu {
namespace {

constexpr int kSteps = kInputBlock / 4;
constexpr std::uint32_t kOnes = 0x01010101;  // A bit of each of four codes.

// ---- Codes: the four of a step are a word, a vector's lane is one too.

using StepWords = std::array<std::uint32_t, kSteps>;

// The lanes of an output, one of each vector.
template <int kBits>
using Lanes = std::array<std::uint32_t, kBits>;

// Bits of each code in the vectors with the low bits: four or two.
template <int kBits>
constexpr int kLowBits = kBits >= 4 ? 4 : 2;

template <int kBits>
Lanes<kBits> LanesOf(const StepWords& words) {
  Lanes<kBits> lanes = {};
  if constexpr (kBits == 8) {
    lanes = words;
  } else {
    constexpr int kLow = kLowBits<kBits>;
    for (int s = 0; s < kSteps; ++s) {
      const std::uint32_t low = words[s] & kOnes * ((1 << kLow) - 1);
      const std::uint32_t top = words[s] >> kLow;  // What is left has no bits of the neighbour's.
      if constexpr (kLow == 4) {
        lanes[s % 4] |= low << (s / 4 * 4);
      } else {
        lanes[s / 4] |= low << (s % 4 * 2);
      }
      if constexpr (kBits == 6) lanes[kLow + s / 4] |= (top & kOnes * 3) << (s % 4 * 2);
      if constexpr (kBits == kLow + 1) lanes[kLow] |= (top & kOnes) << s;
    }
  }
  return lanes;
}

template <int kBits>
StepWords WordsOf(const Lanes<kBits>& lanes) {
  StepWords words = {};
  if constexpr (kBits == 8) {
    words = lanes;
  } else {
    constexpr int kLow = kLowBits<kBits>;
    for (int s = 0; s < kSteps; ++s) {
      words[s] = kLow == 4 ? lanes[s % 4] >> (s / 4 * 4) : lanes[s / 4] >> (s % 4 * 2);
      words[s] &= kOnes * ((1 << kLow) - 1);
      if constexpr (kBits == 6) words[s] |= (lanes[kLow + s / 4] >> (s % 4 * 2) & kOnes * 3) << 4;
      if constexpr (kBits == kLow + 1) words[s] |= (lanes[kLow] >> s & kOnes) << kLow;
    }
  }
  return words;
}

template <int kBits>
void PutCodes(const std::uint8_t* codes, int output, std::byte* to) {
  StepWords words;
  std::memcpy(words.data(), codes, sizeof(words));
  const Lanes<kBits> lanes = LanesOf<kBits>(words);
  for (int v = 0; v < kBits; ++v) std::memcpy(to + 64 * v + 4 * output, &lanes[v], 4);
}

template <int kBits>
void GetCodes(const std::byte* from, int output, std::uint8_t* codes) {
  Lanes<kBits> lanes;
  for (int v = 0; v < kBits; ++v) std::memcpy(&lanes[v], from + 64 * v + 4 * output, 4);
  const StepWords words = WordsOf<kBits>(lanes);
  std::memcpy(codes, words.data(), sizeof(words));
}

// ---- Scales.

// A place for numbers of an output among those of its neighbours, written or read in turn.
template <typename Byte>
class Numbers {
 public:
  Numbers(Byte* at, int output) : at_(at), output_(output) {}

  template <typename T>
  void Put(T value) {
    std::memcpy(Next(sizeof(T)), &value, sizeof(T));
  }
  template <typename T>
  T Get() {
    T value;
    std::memcpy(&value, Next(sizeof(T)), sizeof(T));
    return value;
  }

 private:
  Byte* Next(std::size_t size) {
    Byte* const at = at_ + output_ * size;
    at_ += kPanel * size;
    return at;
  }

  Byte* at_;
  int output_;
};
using Writer = Numbers<std::byte>;
using Reader = Numbers<const std::byte>;

// 8 or 16 numbers of six bits.
void PutSix(const std::array<int, 16>& numbers, int count, Writer* to) {
  std::array<std::uint32_t, 2> lows = {};
  std::uint32_t tops = 0;
  for (int i = 0; i < count; ++i) {
    lows[i / 8] |= static_cast<std::uint32_t>(numbers[i] & 15) << (i % 8 * 4);
    tops |= static_cast<std::uint32_t>(numbers[i] >> 4) << (i * 2);
  }
  for (int i = 0; i < count / 8; ++i) to->Put(lows[i]);
  if (count == 16) to->Put(tops);
  if (count == 8) to->Put(static_cast<std::uint16_t>(tops));
}

std::array<int, 16> GetSix(int count, Reader* from) {
  std::array<std::uint32_t, 2> lows = {};
  for (int i = 0; i < count / 8; ++i) lows[i] = from->Get<std::uint32_t>();
  const std::uint32_t tops = count == 16 ? from->Get<std::uint32_t>() : from->Get<std::uint16_t>();
  std::array<int, 16> numbers = {};
  for (int i = 0; i < count; ++i) {
    numbers[i] = static_cast<int>((lows[i / 8] >> (i % 8 * 4) & 15) | (tops >> (i * 2) & 3) << 4);
  }
  return numbers;
}

// Writes the scales of one output's block of 256 elements.
void PutGroups(ScaleForm form, const WeightBlock& block, Writer* to) {
  to->Put(block.scale);
  if (form == ScaleForm::kNibbles || form == ScaleForm::kSixAndLess) to->Put(block.less);
  std::array<int, 16> numbers = {};
  switch (form) {
    case ScaleForm::kBytes:
      for (const std::int8_t scale : block.group_scales) to->Put(scale);
      break;
    case ScaleForm::kNibbles:
      for (int g = 0; g < 16; ++g) {
        const int pair = block.group_scales[g] | block.group_less[g] << 4;
        to->Put(static_cast<std::uint8_t>(pair));
      }
      break;
    case ScaleForm::kSixAndLess:
      for (int g = 0; g < 8; ++g) {
        numbers[g] = block.group_scales[g];
        numbers[8 + g] = block.group_less[g];
      }
      PutSix(numbers, 16, to);
      break;
    default:
      for (int g = 0; g < 16; ++g) numbers[g] = block.group_scales[g] + 32;
      PutSix(numbers, form == ScaleForm::kSix8 ? 8 : 16, to);
  }
}

void GetGroups(ScaleForm form, Reader* from, WeightBlock* block) {
  block->scale = from->Get<std::uint16_t>();
  if (form == ScaleForm::kNibbles || form == ScaleForm::kSixAndLess) {
    block->less = from->Get<std::uint16_t>();
  }
  std::array<int, 16> numbers;
  switch (form) {
    case ScaleForm::kBytes:
      for (std::int8_t& scale : block->group_scales) scale = from->Get<std::int8_t>();
      break;
    case ScaleForm::kNibbles:
      for (int g = 0; g < 16; ++g) {
        const auto pair = from->Get<std::uint8_t>();
        block->group_scales[g] = static_cast<std::int8_t>(pair & 15);
        block->group_less[g] = pair >> 4;
      }
      break;
    case ScaleForm::kSixAndLess:
      numbers = GetSix(16, from);
      for (int g = 0; g < 8; ++g) {
        block->group_scales[g] = static_cast<std::int8_t>(numbers[g]);
        block->group_less[g] = static_cast<std::uint8_t>(numbers[8 + g]);
      }
      break;
    default:
      numbers = GetSix(form == ScaleForm::kSix8 ? 8 : 16, from);
      for (int g = 0; g < 16; ++g) {
        block->group_scales[g] = static_cast<std::int8_t>(numbers[g] - 32);
      }
  }
}

// Writes the scale of one output's block of 32 elements.
void PutScale(ScaleForm form, const WeightBlock& block, Writer* to) {
  if (form == ScaleForm::kPower) return to->Put(static_cast<std::uint8_t>(block.scale));
  to->Put(block.scale);
  if (form == ScaleForm::kHalfAndLess) to->Put(block.less);
}

void GetScale(ScaleForm form, Reader* from, WeightBlock* block) {
  block->group_scales[0] = 1;
  block->group_less[0] = 1;
  block->scale = form == ScaleForm::kPower ? from->Get<std::uint8_t>() : from->Get<std::uint16_t>();
  if (form == ScaleForm::kHalfAndLess) block->less = from->Get<std::uint16_t>();
}

// ---- Panels: what is done for a stretch of `blocks` blocks of inputs of one output.

template <WeightFormat kFormat>
void PackStretch(const std::byte* from, int blocks, int output, std::byte* to) {
  using Form = PackedForm<kFormat>;
  constexpr int kBlocksOfIts = static_cast<int>(InfoOf(kFormat).block_elements) / kInputBlock;
  Writer scales(to, output);
  to += std::ptrdiff_t{blocks} * Form::kScaleBytes;
  WeightBlock block;
  for (int b = 0; b < blocks; b += kBlocksOfIts, from += InfoOf(kFormat).block_bytes) {
    UnpackBlock(kFormat, from, &block);
    if constexpr (kBlocksOfIts == 1) {
      PutScale(Form::kScaleForm, block, &scales);
    } else {
      PutGroups(Form::kScaleForm, block, &scales);
    }
    for (int i = 0; i < kBlocksOfIts; ++i, to += Form::kCodeBytes) {
      PutCodes<Form::kStoredBits>(block.codes.data() + std::ptrdiff_t{i} * kInputBlock, output, to);
    }
  }
}

template <WeightFormat kFormat>
void ReadStretch(const std::byte* from, int blocks, int output, float* to) {
  using Form = PackedForm<kFormat>;
  constexpr int kBlocksOfIts = static_cast<int>(InfoOf(kFormat).block_elements) / kInputBlock;
  Reader scales(from, output);
  from += std::ptrdiff_t{blocks} * Form::kScaleBytes;
  WeightBlock block;
  for (int b = 0; b < blocks; b += kBlocksOfIts) {
    if constexpr (kBlocksOfIts == 1) {
      GetScale(Form::kScaleForm, &scales, &block);
    } else {
      GetGroups(Form::kScaleForm, &scales, &block);
    }
    for (int i = 0; i < kBlocksOfIts; ++i, from += Form::kCodeBytes) {
      GetCodes<Form::kStoredBits>(from, output,
                                  block.codes.data() + std::ptrdiff_t{i} * kInputBlock);
    }
    to = WriteElements(kFormat, block, to);
  }
}

// Calls function.operator()<format>().
template <typename Function>
void WithFormat(WeightFormat format, const Function& function) {
  const auto call = [&]<std::size_t kIndex>() {
    constexpr auto kFormat = static_cast<WeightFormat>(kIndex);
    if constexpr (IsQuantized(kFormat)) function.template operator()<kFormat>();
  };
  [&]<std::size_t... kIndices>(std::index_sequence<kIndices...>) {
    ((static_cast<std::size_t>(format) == kIndices ? call.template operator()<kIndices>() : void()),
     ...);
  }
  (std::make_index_sequence<kWeightFormats>());
}

// Calls work(input, blocks) for every stretch of `inputs`.
template <typename Work>
void EachStretch(WeightFormat format, std::int64_t inputs, const Work& work) {
  FT_CHECK(IsQuantized(format), "{} is not quantised", FormatName(format));
  FT_CHECK(inputs % InfoOf(format).block_elements == 0, "{} inputs are no whole blocks of {}",
           inputs, FormatName(format));
  for (std::int64_t begin = 0; begin < inputs; begin += kStretchInputs) {
    const std::int64_t end = std::min<std::int64_t>(inputs, begin + kStretchInputs);
    work(begin, static_cast<int>((end - begin) / kInputBlock));
  }
}

// Where the stretch of input `begin` lies in a panel.
std::ptrdiff_t StretchOffset(WeightFormat format, std::int64_t begin) {
  return begin / kStretchInputs * StretchBytes(format, kStretchBlocks);
}

}  // namespace

std::size_t QuantPanelBytes(WeightFormat format, std::int64_t inputs) {
  const auto rest = static_cast<int>(inputs % kStretchInputs) / kInputBlock;
  return StretchOffset(format, inputs) + StretchBytes(format, rest);
}

void PackQuantPanel(WeightFormat format, const PanelRows& rows, std::int64_t inputs,
                    std::byte* to) {
  WithFormat(format, [&]<WeightFormat kFormat>() {
    EachStretch(kFormat, inputs, [&](std::int64_t begin, int blocks) {
      std::byte* const stretch = to + StretchOffset(kFormat, begin);
      for (int output = 0; output < kPanel; ++output) {
        const std::byte* const row = rows[output];
        if (row != nullptr) {
          PackStretch<kFormat>(row + FormatBytes(kFormat, begin), blocks, output, stretch);
        }
      }
    });
  });
}

void PackQuantPanels(std::span<const TensorView> parts, std::int64_t begin, std::int64_t end,
                     std::byte* to) {
  FT_CHECK(!parts.empty());
  const WeightFormat format = parts[0].format;
  const std::int64_t inputs = parts[0].shape.at(1);
  for (const TensorView& part : parts) {
    FT_CHECK(part.format == format && part.shape.size() == 2 && part.shape[1] == inputs,
             "stacked matrices differ in format or width");
  }
  std::size_t part = 0;
  std::int64_t row = begin * kPanel;  // The row's number in the part.
  for (std::int64_t panel = begin; panel < end; ++panel, to += QuantPanelBytes(format, inputs)) {
    PanelRows rows = {};
    for (const std::byte*& of_output : rows) {
      while (part < parts.size() && row >= parts[part].shape[0]) row -= parts[part++].shape[0];
      if (part == parts.size()) break;
      of_output = parts[part].data + FormatBytes(format, row++ * inputs);
    }
    PackQuantPanel(format, rows, inputs, to);
  }
}

void ReadQuantOutput(WeightFormat format, const std::byte* panel, std::int64_t inputs, int output,
                     float* out) {
  WithFormat(format, [&]<WeightFormat kFormat>() {
    EachStretch(kFormat, inputs, [&](std::int64_t begin, int blocks) {
      ReadStretch<kFormat>(panel + StretchOffset(kFormat, begin), blocks, output, out + begin);
    });
  });
}

}  // namespace foretoken::cpu
