#pragma once

#include <array>
#include <optional>
#include <string_view>

/// The roofline of a verification pass: Table 2 and Appendix B of the SSSD paper, in its symbols.
/// A pass of an operation takes max(FLOPs / FLOP/s, bytes / bandwidth); operations follow one
/// another. No launch overhead, no communication between ranks.
namespace foretoken {

/// A model of the Llama family, dense or with experts in place of each MLP. (Not counted: the
/// scores by which rows choose experts.)
struct ModelShape {
  int layers = 0;
  int hidden = 0;           ///< h
  int query_heads = 0;      ///< n_q
  int kv_heads = 0;         ///< n_kv
  int head_dim = 0;         ///< d. The table takes h = n_q d; here they may differ.
  int mlp = 0;              ///< h_mlp; of each expert.
  int experts = 0;          ///< Experts of each layer; 0: one MLP for all rows.
  int chosen = 0;           ///< Experts that a row goes through.
  int vocabulary = 0;       ///< Width of the output head, which the table leaves out; 0: no head.
  double weight_bytes = 2;  ///< The size of a weight. Activations take 2 bytes.
  double kv_bytes = 2;      ///< The size of a number in keys and values that attention reads.
};

/// What one rank can do at most.
struct DeviceRoof {
  double flops = 0;             ///< Per second.
  double bytes_per_second = 0;  ///< From and to memory.
  /// The size of an element of the attention mask; 0: the mask is computed.
  double mask_bytes = 1;

  /// I_knee: the FLOPs per byte at which computing takes as long as memory.
  double knee() const { return flops / bytes_per_second; }
};

/// What one pass computes.
struct PassShape {
  double batch = 1;        ///< b, sequences.
  double speculation = 1;  ///< s_q: rows of each, its root included; 1 is plain decoding.
  double context = 0;      ///< s_kv: keys of each before this pass.
  int ranks = 1;           ///< p, tensor parallelism.

  double rows() const { return batch * speculation; }
};

/// How many of a layer's experts `rows` rows read in the mean, each choosing `chosen` of all with
/// equal chances: E (1 - (1 - k / E)^rows). Rows of a text choose more alike, and read fewer.
double ExpertsRead(int experts, int chosen, double rows);

/// The rows of Table 2, and the output head.
enum class RooflineOp { kQuery, kKey, kValue, kAttention, kOutput, kGateUp, kDown, kHead };
inline constexpr std::array kRooflineOps = {
    RooflineOp::kQuery,  RooflineOp::kKey,    RooflineOp::kValue, RooflineOp::kAttention,
    RooflineOp::kOutput, RooflineOp::kGateUp, RooflineOp::kDown,  RooflineOp::kHead};

/// "Q", "K", "V", "attention", "O", "gate, up", "down", "head".
std::string_view RooflineOpName(RooflineOp op);

/// What one rank computes and moves for one operation.
struct OpCost {
  double flops = 0;
  double read = 0;   ///< Bytes.
  double write = 0;  ///< Bytes.

  double bytes() const { return read + write; }
  double intensity() const { return flops / bytes(); }  ///< FLOPs:IO
  double Seconds(const DeviceRoof& device) const;
};

/// One operation of one layer (the head: of the model). The table's attention row reads 2 bytes a
/// mask element where its caption says 1; here it is `mask_bytes`, and with 1 the FLOPs:IO column
/// holds.
OpCost RooflineCost(RooflineOp op, const ModelShape& shape, const PassShape& pass,
                    double mask_bytes);

/// The time of a whole pass, apart for what depends on the context and what does not.
struct PassSeconds {
  double linear = 0;
  double attention = 0;
  double total() const { return linear + attention; }
};
PassSeconds RooflinePass(const ModelShape& shape, const PassShape& pass, const DeviceRoof& device);

/// b s_q from which `op`, a linear operation, takes longer to compute than to load. Nothing where
/// its FLOPs:IO never reaches the knee. About I_knee for a wide model (2-byte weights).
std::optional<double> KneeRows(RooflineOp op, const ModelShape& shape, int ranks,
                               const DeviceRoof& device);

/// How many times faster a pass of s_q rows per sequence is that emits `tokens` of them than
/// `tokens` plain passes (Section 3.2, Figure 3c).
double RooflineSpeedup(const ModelShape& shape, const PassShape& pass, const DeviceRoof& device,
                       double tokens);

}  // namespace foretoken
