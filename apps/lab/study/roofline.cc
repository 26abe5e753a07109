#include "apps/lab/study/roofline.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr double kElementBytes = 2;  // The bytes of an activation.

// X [rows, in] times `matrices` weights [in, out]; their products are merged to one [rows, out].
// Every row meets the weights of `chosen` experts, where there are any, or of the only one.
struct Linear {
  double in = 0;
  double out = 0;
  double matrices = 1;
  int experts = 0;
  int chosen = 1;

  // The weights of one expert.
  double weights() const { return matrices * in * out; }
  // Times that all weights of one expert are read for so many rows.
  double read(double rows) const { return experts == 0 ? 1 : ExpertsRead(experts, chosen, rows); }
};

Linear LinearOf(RooflineOp op, const ModelShape& shape, int ranks) {
  const double p = ranks;
  const double h = shape.hidden;
  const double query_width = 1.0 * shape.query_heads * shape.head_dim / p;
  const double kv_width = 1.0 * shape.kv_heads * shape.head_dim / p;
  const int chosen = shape.experts == 0 ? 1 : shape.chosen;
  const std::array<Linear, kRooflineOps.size()> linear = {{
      {h, query_width},                              // kQuery
      {h, kv_width},                                 // kKey
      {h, kv_width},                                 // kValue
      {},                                            // kAttention
      {query_width, h},                              // kOutput
      {h, shape.mlp / p, 2, shape.experts, chosen},  // kGateUp
      {shape.mlp / p, h, 1, shape.experts, chosen},  // kDown
      {h, shape.vocabulary / p},                     // kHead
  }};
  FT_CHECK(op != RooflineOp::kAttention, "attention is not linear");
  return linear[static_cast<std::size_t>(op)];
}

OpCost AttentionCost(const ModelShape& shape, const PassShape& pass, double mask_bytes) {
  const double p = pass.ranks;
  const double keys = pass.context + pass.speculation;
  const double query_width = shape.query_heads * shape.head_dim / p;
  const double kv_width = shape.kv_heads * shape.head_dim / p;
  return {.flops = 4 * pass.rows() * keys * query_width,
          .read = shape.kv_bytes * 2 * pass.batch * keys * kv_width +
                  kElementBytes * pass.rows() * query_width + mask_bytes * pass.rows() * keys,
          .write = kElementBytes * pass.rows() * query_width};
}

}  // namespace

std::string_view RooflineOpName(RooflineOp op) {
  constexpr std::array<std::string_view, kRooflineOps.size()> kNames = {
      "Q", "K", "V", "attention", "O", "gate, up", "down", "head"};
  return kNames[static_cast<std::size_t>(op)];
}

double ExpertsRead(int experts, int chosen, double rows) {
  return experts * (1 - std::pow(1 - 1.0 * chosen / experts, rows));
}

double OpCost::Seconds(const DeviceRoof& device) const {
  return std::max(flops / device.flops, bytes() / device.bytes_per_second);
}

OpCost RooflineCost(RooflineOp op, const ModelShape& shape, const PassShape& pass,
                    double mask_bytes) {
  FT_CHECK(pass.ranks >= 1, "{} ranks", pass.ranks);
  if (op == RooflineOp::kAttention) return AttentionCost(shape, pass, mask_bytes);
  const Linear linear = LinearOf(op, shape, pass.ranks);
  const double rows = pass.rows() * linear.chosen;  // Rows of all experts together.
  return {.flops = 2 * rows * linear.weights(),
          .read = kElementBytes * rows * linear.in +
                  shape.weight_bytes * linear.weights() * linear.read(pass.rows()),
          .write = kElementBytes * rows * linear.out};
}

PassSeconds RooflinePass(const ModelShape& shape, const PassShape& pass, const DeviceRoof& device) {
  PassSeconds seconds;
  for (const RooflineOp op : kRooflineOps) {
    const double once = RooflineCost(op, shape, pass, device.mask_bytes).Seconds(device);
    if (op == RooflineOp::kAttention) {
      seconds.attention += shape.layers * once;
    } else {
      seconds.linear += (op == RooflineOp::kHead ? 1 : shape.layers) * once;
    }
  }
  return seconds;
}

std::optional<double> KneeRows(RooflineOp op, const ModelShape& shape, int ranks,
                               const DeviceRoof& device) {
  const Linear linear = LinearOf(op, shape, ranks);
  // rows: chosen 2 rows weights = I_knee (weight_bytes weights read(rows) + chosen 2 rows (in +
  // out)).
  const double per_row = linear.chosen * (2 * linear.weights() -
                                          device.knee() * kElementBytes * (linear.in + linear.out));
  if (per_row <= 0) return std::nullopt;
  const double whole = device.knee() * shape.weight_bytes * linear.weights() / per_row;
  if (linear.experts == 0) return whole;
  // What is read never falls with more rows, so from the rows of all experts this comes down to the
  // solution.
  double rows = whole * linear.experts;
  for (double before = 2 * rows; before - rows > 1e-9 * rows;) {
    before = rows;
    rows = whole * linear.read(rows);
  }
  return rows;
}

double RooflineSpeedup(const ModelShape& shape, const PassShape& pass, const DeviceRoof& device,
                       double tokens) {
  PassShape plain = pass;
  plain.speculation = 1;
  return tokens * RooflinePass(shape, plain, device).total() /
         RooflinePass(shape, pass, device).total();
}

}  // namespace foretoken
