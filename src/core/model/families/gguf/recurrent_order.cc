#include "core/model/families/gguf/recurrent_order.h"

#include <fmt/core.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/portable_math.h"
#include "core/weights/arrange/gathered_rows.h"

namespace foretoken {
namespace {

using Stretches = std::vector<Stretch>;

// The tensors of one recurrent layer, each under the name that it has in a file.
class LayerArranger {
 public:
  LayerArranger(int layer, const DeltaShape& shape, Checkpoint* checkpoint)
      : at_(fmt::format("layers.{}.delta.", layer)), shape_(shape), checkpoint_(checkpoint) {}

  // Whether there is such a tensor, of this size in this dimension.
  bool Has(const char* name, std::int64_t size, std::size_t dimension = 0) const {
    const TensorView* tensor = checkpoint_->Find(at_ + name);
    return tensor != nullptr && tensor->shape.size() > dimension &&
           tensor->shape[dimension] == size;
  }
  bool HasLogRates() const { return Has("log_rates", shape_.value_heads); }
  bool HasTogether() const {
    return Has("qkvz.weight", shape_.conv_width() + shape_.value_width());
  }
  // All that Reorder looks for.
  bool HasApart() const {
    const std::int64_t heads = shape_.value_heads;
    return Has("qkv.weight", shape_.conv_width()) && Has("taps.weight", shape_.conv_width()) &&
           Has("z.weight", shape_.value_width()) && Has("a.weight", heads) &&
           Has("b.weight", heads) && Has("rate_bias", heads) &&
           Has("o.weight", shape_.value_width(), /*dimension=*/1);
  }

  // Arranges the rates of the value heads in this order.
  void Rates(const std::vector<int>& order) {
    const TensorView from = *checkpoint_->Find(at_ + "log_rates");
    Put("log_rates", {WeightFormat::kF32, from.shape, nullptr}, "minus_rates", [from, order] {
      std::vector<float> rates(order.size());
      LoadElements(from, 0, from.elements(), rates.data());
      std::vector<std::byte> made(order.size() * sizeof(float));
      for (std::size_t i = 0; i < order.size(); ++i) {
        const double log_rate = rates[static_cast<std::size_t>(order[i])];
        const auto rate = static_cast<float>(-PortableExp(log_rate));
        std::memcpy(made.data() + i * sizeof(float), &rate, sizeof(float));
      }
      return made;
    });
    checkpoint_->tensors.erase(at_ + "log_rates");
  }

  // Queries, keys and values, and gates, which lie by key heads.
  void Apart() {
    const TensorView from = *checkpoint_->Find(at_ + "qkvz.weight");
    const std::int64_t keys = shape_.key_dim;
    const std::int64_t values = shape_.value_width() / shape_.key_heads;
    Stretches qkv;
    Stretches z;
    const auto add = [&](std::int64_t first, std::int64_t count, Stretches* to) {
      for (int head = 0; head < shape_.key_heads; ++head) {
        to->push_back({head * 2 * (keys + values) + first, count});
      }
    };
    add(0, keys, &qkv);
    add(keys, keys, &qkv);
    add(2 * keys, values, &qkv);
    add(2 * keys + values, values, &z);
    PutRows("qkvz.weight", "qkv.weight", shape_.conv_width(), std::move(qkv));
    PutRows("qkvz.weight", "z.weight", shape_.value_width(), std::move(z));
    checkpoint_->tensors.erase(at_ + "qkvz.weight");
  }

  // Value heads in this order.
  void Reorder(const std::vector<int>& order) {
    const auto stretches = [&](std::int64_t before, std::int64_t width) {
      Stretches all;
      if (before > 0) all.push_back({0, before});
      for (const int head : order) all.push_back({before + head * width, width});
      return all;
    };
    const std::int64_t before = 2 * std::int64_t{shape_.key_width()};
    const std::int64_t width = shape_.value_dim;
    for (const char* name : {"qkv.weight", "taps.weight"}) {
      PutRows(name, name, shape_.conv_width(), stretches(before, width));
    }
    PutRows("z.weight", "z.weight", shape_.value_width(), stretches(0, width));
    for (const char* name : {"a.weight", "b.weight", "rate_bias"}) {
      PutRows(name, name, shape_.value_heads, stretches(0, 1));
    }
    const TensorView out = *checkpoint_->Find(at_ + "o.weight");
    Put("o.weight", {out.format, out.shape, nullptr}, "o.weight",
        [out, columns = stretches(0, width)] { return GatheredColumns(out, columns); });
  }

 private:
  void PutRows(const char* from, const char* to, std::int64_t count, Stretches rows) {
    const TensorView tensor = *checkpoint_->Find(at_ + from);
    TensorView made{tensor.format, tensor.shape, nullptr};
    made.shape[0] = count;
    Put(from, made, to, [tensor, rows = std::move(rows)] { return GatheredRows(tensor, rows); });
  }

  // `made` of `from`, under the name `to`.
  void Put(const char* from, const TensorView& made, const char* to,
           std::function<std::vector<std::byte>()> make) {
    const TensorView source = *checkpoint_->Find(at_ + from);
    const std::string name = at_ + to;
    checkpoint_->names_in_files.insert_or_assign(name, checkpoint_->NameInFile(at_ + from));
    checkpoint_->arranged[name] = {{{source.data, source.bytes()}}, std::move(make)};
    checkpoint_->tensors.insert_or_assign(name, made);
  }

  std::string at_;  // The beginning of its tensors' names.
  const DeltaShape& shape_;
  Checkpoint* checkpoint_;
};

// All value heads as they are: those that take the first key head come first.
std::vector<int> HeadsInOrder(const DeltaShape& shape) {
  std::vector<int> order;
  for (int head = 0; head < shape.value_heads; ++head) order.push_back(head);
  return order;
}

// The first of each key head, then the second of each, and so on.
std::vector<int> HeadsInTurns(const DeltaShape& shape) {
  const int of_key = shape.value_heads / shape.key_heads;
  std::vector<int> order;
  for (int i = 0; i < of_key; ++i) {
    for (int key = 0; key < shape.key_heads; ++key) order.push_back(key * of_key + i);
  }
  return order;
}

}  // namespace

void ArrangeQwen3NextForGguf(Checkpoint* checkpoint, const ModelConfig& config) {
  for (int i = 0; i < config.layer_count(); ++i) {
    const LayerSpec& layer = config.layers[static_cast<std::size_t>(i)];
    if (!layer.is_recurrent()) continue;
    LayerArranger arranger(i, layer.delta, checkpoint);
    if (arranger.HasLogRates()) arranger.Rates(HeadsInOrder(layer.delta));
    if (arranger.HasTogether()) arranger.Apart();
  }
}

void ArrangeQwen35ForGguf(Checkpoint* checkpoint, const ModelConfig& config) {
  for (int i = 0; i < config.layer_count(); ++i) {
    const LayerSpec& layer = config.layers[static_cast<std::size_t>(i)];
    if (!layer.is_recurrent()) continue;
    LayerArranger arranger(i, layer.delta, checkpoint);
    if (!arranger.HasLogRates() || !arranger.HasApart()) continue;
    const std::vector<int> order = HeadsInTurns(layer.delta);
    arranger.Rates(order);
    arranger.Reorder(order);
  }
}

}  // namespace foretoken
