#include "core/backend/cpu/products/matrix_products.h"

#include <algorithm>

#include "base/check.h"
#include "base/files/read_ahead.h"
#include "base/numbers/integers.h"
#include "core/backend/cpu/products/packed_matrix.h"
#include "core/backend/cpu/share_work.h"

namespace foretoken::cpu {
namespace {

bool HasQuantized(const Matrix& weights) {
  return std::ranges::any_of(weights.bands,
                             [](const MatrixBand& band) { return IsQuantized(band.format); });
}

// The cost of a product, as kWorthSharing counts it.
std::int64_t CostOf(const Matrix& weights, int rows) {
  return weights.outputs * weights.inputs * (8 + rows) / 8;
}

}  // namespace

MatrixProducts::MatrixProducts(const Kernels& kernels, const QuantKernels* quant, ThreadPool* pool)
    : kernels_(kernels),
      quant_(quant),
      pool_(pool),
      rooms_(pool == nullptr ? 1 : Size(pool->size())) {}

// Strips of outputs, so that the maxima are taken while the products are still in cache.
void MatrixProducts::MatMulMaxima(const Matrix& weights, const float* x, int rows, float* y,
                                  float* maxima) {
  static_assert(kLogitGroup == kNoiseGroup && kLogitGroup % kPanel == 0);
  constexpr std::int64_t kStrip = 8;  // Groups.
  constexpr std::int64_t kGroupPanels = kLogitGroup / kPanel;
  if (rows == 0) return;
  FT_CHECK(weights.bands.size() == 1, "a matrix of {} formats", weights.bands.size());
  GrowRooms(weights);
  QuantizeInputs(weights, x, rows);
  const std::int64_t groups = Logits::Groups(weights.outputs);
  const std::int64_t panels = PanelsOf(weights);
  ShareWork(pool_, groups, CostOf(weights, rows),
            [&](int worker, std::int64_t begin, std::int64_t end) {
              for (std::int64_t group = begin; group < end; group += kStrip) {
                Product product{weights, 0, x, row_blocks_.as<RowBlock>(), rows, y, false};
                const std::int64_t strip_end = std::min(end, group + kStrip);
                if (strip_end < end) product.next = PanelAt(weights, 0, strip_end * kGroupPanels);
                MultiplyPanels(product, group * kGroupPanels,
                               std::min(panels, strip_end * kGroupPanels), &rooms_[worker]);
                const std::int64_t first = group * kLogitGroup;
                const int count = std::min(weights.outputs, strip_end * kLogitGroup) - first;
                for (int row = 0; row < rows; ++row) {
                  kernels_.group_maxima(y + row * weights.outputs + first, count,
                                        maxima + row * groups + group);
                }
              }
            });
}

// Workers share the panels of each matrix, so that they have alike much to do however many rows
// each group has.
void MatrixProducts::MatMulGroups(const Matrix& stack, std::span<const RowGroup> groups,
                                  const float* bias, const float* x, float* y) {
  GrowRooms(stack);
  QuantizeGroups(stack, groups, x);
  std::int64_t cost = 0;
  for (const RowGroup& group : groups) {
    cost += CostOf(stack, group.end - group.begin);
    if (stack.borrowed.empty()) continue;
    // All at once: the disk is busy while the first ones are multiplied.
    for (const TensorView& part : stack.BorrowedParts(group.matrix)) {
      ReadAhead({part.data, part.bytes()});
    }
  }
  ShareWork(pool_, PanelsOf(stack), cost, [&](int worker, std::int64_t begin, std::int64_t end) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const RowGroup& group = groups[i];
      Product product{stack,
                      group.matrix,
                      x + group.begin * stack.inputs,
                      BlocksOf(stack, group),
                      group.end - group.begin,
                      y + group.begin * stack.outputs,
                      false};
      if (bias != nullptr) product.bias = bias + group.matrix * stack.outputs;
      if (i + 1 < groups.size()) product.next = PanelAt(stack, groups[i + 1].matrix, begin);
      MultiplyPanels(product, begin, end, &rooms_[worker]);
    }
  });
}

void MatrixProducts::MatMul(const Matrix& weights, const float* x, int rows, bool add, float* y) {
  if (rows == 0) return;
  GrowRooms(weights);
  QuantizeInputs(weights, x, rows);
  const Product product{weights, 0, x, row_blocks_.as<RowBlock>(), rows, y, add};
  ShareWork(pool_, PanelsOf(weights), CostOf(weights, rows),
            [&](int worker, std::int64_t begin, std::int64_t end) {
              MultiplyPanels(product, begin, end, &rooms_[worker]);
            });
}

// For the products of quantised bands, once for all of them.
void MatrixProducts::QuantizeInputs(const Matrix& weights, const float* x, int rows) {
  if (!HasQuantized(weights)) return;
  const int inputs = weights.inputs;
  GrowRowBlocks(rows, inputs);
  const std::int64_t groups = (rows + kRowGroup - 1) / kRowGroup;
  ShareWork(pool_, groups, rows * weights.inputs, [&](int, std::int64_t begin, std::int64_t end) {
    quant_->quantize({x, rows, inputs, static_cast<int>(begin * kRowGroup),
                      static_cast<int>(std::min<std::int64_t>(rows, end * kRowGroup)),
                      row_blocks_.as<RowBlock>()});
  });
}

// Quantises the inputs of each group by itself, as if there were no other.
void MatrixProducts::QuantizeGroups(const Matrix& stack, std::span<const RowGroup> groups,
                                    const float* x) {
  if (groups.empty() || !HasQuantized(stack)) return;
  const int inputs = stack.inputs;
  GrowRowBlocks(groups.back().end, inputs);
  ShareWork(pool_, std::ssize(groups), groups.back().end * stack.inputs,
            [&](int, std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                const RowGroup& group = groups[i];
                const int rows = group.end - group.begin;
                quant_->quantize({x + group.begin * stack.inputs, rows, inputs, 0, rows,
                                  BlocksOf(stack, group)});
              }
            });
}

void MatrixProducts::GrowRowBlocks(int rows, int inputs) {
  row_blocks_.Grow(RowBlocks(rows, inputs) * sizeof(RowBlock));
}

void MatrixProducts::GrowRooms(const Matrix& weights) {
  const std::size_t inputs = weights.inputs;
  const std::size_t rows = sizeof(float) * kPackRows * PadToChunk(Int(inputs));
  std::size_t panel = 0;
  if (!weights.borrowed.empty()) {
    for (const MatrixBand& band : weights.bands) {
      panel = std::max(panel, PanelBytes(band.format, weights.inputs) + inputs * sizeof(float));
    }
  }
  for (Room& room : rooms_) {
    room.rows.Grow(rows);
    room.panel.Grow(panel);
  }
}

RowBlock* MatrixProducts::BlocksOf(const Matrix& stack, const RowGroup& group) {
  if (row_blocks_.bytes() == 0) return nullptr;
  return row_blocks_.as<RowBlock>() + RowBlocks(group.begin, static_cast<int>(stack.inputs));
}

// The product for panels [begin, end) of all bands, by one worker.
void MatrixProducts::MultiplyPanels(const Product& product, std::int64_t begin, std::int64_t end,
                                    Room* room) {
  VisitBands(product.weights, begin, end,
             [&](const MatrixBand& band, std::int64_t from, std::int64_t to) {
               const Panels panels{band, static_cast<int>(from), static_cast<int>(to)};
               begin += to - from;
               if (product.bias != nullptr) FillWithBias(product, panels);
               if (product.weights.borrowed.empty()) {
                 const std::byte* const next =
                     begin < end ? PanelAt(product.weights, product.matrix, begin) : product.next;
                 MultiplyPacked(product, panels, next, room->rows.data());
               } else {
                 MultiplyBorrowed(product, panels, room);
               }
             });
}

void MatrixProducts::FillWithBias(const Product& product, const Panels& panels) {
  const std::ptrdiff_t begin = std::ptrdiff_t{panels.begin} * kPanel;
  const std::ptrdiff_t end =
      std::min<std::ptrdiff_t>(panels.outputs(), std::ptrdiff_t{panels.end} * kPanel);
  const float* const bias = product.bias + panels.band.begin;
  float* y = product.y + panels.band.begin;
  for (int row = 0; row < product.rows; ++row, y += product.weights.outputs) {
    std::copy(bias + begin, bias + end, y + begin);
  }
}

void MatrixProducts::MultiplyPacked(const Product& product, const Panels& panels,
                                    const std::byte* next, void* scratch) {
  const Matrix& weights = product.weights;
  const std::byte* const data =
      weights.data.data() + Size(product.matrix) * weights.stride() + panels.band.offset;
  Multiply(product, panels.band.format, {data, panels.begin, panels.end, next}, panels.outputs(),
           product.y + panels.band.begin, scratch);
}

// Lays out one panel after the other, and multiplies with it while it is in cache.
void MatrixProducts::MultiplyBorrowed(const Product& product, const Panels& panels, Room* room) {
  const MatrixBand& band = panels.band;
  const std::size_t inputs = product.weights.inputs;
  const std::size_t bytes = PanelBytes(band.format, product.weights.inputs);
  std::byte* const packed = room->panel.data();
  const std::span row(reinterpret_cast<float*>(packed + bytes), inputs);
  // Kernels read whole chunks of inputs.
  if (inputs % kChunk != 0) std::fill_n(packed, bytes, std::byte{0});
  const std::span<const TensorView> parts = product.weights.BorrowedParts(product.matrix);
  for (int panel = panels.begin; panel < panels.end; ++panel) {
    PackBand(parts, band, panel, panel + 1, row, packed);
    const int first = panel * kPanel;
    Multiply(product, band.format, {packed, 0, 1}, panels.outputs() - first,
             product.y + band.begin + first, room->rows.data());
  }
}

// The product for packed panels of a band, the first of which begins at `y` and has, with all that
// follow in the band, `outputs` outputs.
void MatrixProducts::Multiply(const Product& product, WeightFormat format,
                              const PackedPanels& panels, int outputs, float* y, void* scratch) {
  const int inputs = product.weights.inputs;
  const auto stride = static_cast<std::ptrdiff_t>(product.weights.outputs);
  const bool add = product.add || product.bias != nullptr;
  if (IsQuantized(format)) {
    quant_->product[static_cast<std::size_t>(format)](
        {panels.data, PanelBytes(format, inputs), product.blocks, y, stride, product.rows, inputs,
         outputs, panels.begin, panels.end, add, panels.next});
    return;
  }
  const auto multiply = format == WeightFormat::kBF16 ? kernels_.matmul_bf16 : kernels_.matmul_f32;
  multiply({panels.data, product.x, y, stride, product.rows, inputs, outputs, panels.begin,
            panels.end, add, scratch});
}

}  // namespace foretoken::cpu
