#include "core/model/families/key_value_rows.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/weights/arrange/head_rows.h"

namespace foretoken {
namespace {

// The heads of a layer by the shapes of its tensors; none where they do not fit together, which is
// found when they are asked for.
HeadRows RowsOf(const Checkpoint& checkpoint, const std::string& layer) {
  const auto size = [&](const char* name, std::size_t dimension) -> std::int64_t {
    const TensorView* view = checkpoint.Find(layer + name + ".weight");
    return view == nullptr || view->shape.size() != 2 ? 0 : view->shape[dimension];
  };
  const std::int64_t values = size("o", 1);
  const std::int64_t keys = size("kv_b", 0) - values;
  const std::int64_t queries = size("q_b", 0) + size("q", 0);
  const std::int64_t rotated = size("kv_a", 0) - size("kv_b", 1);
  if (values <= 0 || keys <= 0 || rotated <= 0 || queries <= keys) return {};
  const std::int64_t heads = (queries - keys) / rotated;
  if (heads == 0 || values % heads != 0 || keys % heads != 0) return {};
  return {heads, keys / heads, values / heads};
}

}  // namespace

Status ArrangeKeysAndValues(Checkpoint* checkpoint) {
  std::vector<std::pair<std::string, TensorView>> both;
  for (const auto& [name, view] : checkpoint->tensors) {
    if (name.ends_with(".kv_b.weight") && !IsQuantized(view.format)) both.emplace_back(name, view);
  }
  for (const auto& [name, view] : both) {
    const std::string layer = name.substr(0, name.size() - std::strlen("kv_b.weight"));
    const HeadRows rows = RowsOf(*checkpoint, layer);
    if (rows.heads == 0) continue;
    const std::int64_t rank = view.shape[1];
    const auto arrange = [&, tensor = view](const std::string& ours,
                                            std::vector<std::int64_t> shape, auto make) {
      checkpoint->arranged[ours] = {{{tensor.data, tensor.bytes()}},
                                    [tensor, rows, make] { return make(tensor, rows); }};
      checkpoint->tensors[ours] = {tensor.format, std::move(shape), nullptr};
    };
    arrange(layer + "k_b.weight", {rows.heads, rank, rows.key}, KeyColumns);
    arrange(layer + "v_b.weight", {rows.heads, rows.value, rank}, ValueRows);
    checkpoint->tensors.erase(name);
  }
  return {};
}

}  // namespace foretoken
