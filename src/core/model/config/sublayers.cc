#include "core/model/config/sublayers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/text/printable.h"

namespace foretoken {
namespace {

// Reads a number off the front of `text`.
bool TakeNumber(std::string_view* text, int* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc() || text->front() == '-') return false;
  text->remove_prefix(end - text->data());
  return true;
}

// "a3", "a5-a8" or "a5-8".
Status AddItem(std::string_view item, SkippedSublayers* skipped) {
  const std::string_view whole = item;
  const auto refuse = [&] {
    return Invalid(
        "'{}' is no list of sub-layers: write a for a layer's attention and m for its MLP, and the "
        "layer, as a3,m3,a5-a8",
        Printable(whole));
  };
  if (item.empty() || (item[0] != 'a' && item[0] != 'm')) return refuse();
  const char kind = item[0];
  item.remove_prefix(1);
  int first = 0;
  if (!TakeNumber(&item, &first)) return refuse();
  int last = first;
  if (!item.empty()) {
    if (item[0] != '-') return refuse();
    item.remove_prefix(1);
    if (!item.empty() && item[0] == kind) item.remove_prefix(1);
    if (!TakeNumber(&item, &last) || !item.empty()) return refuse();
  }
  if (first < 0 || last < first || last >= skipped->layers()) {
    return Invalid("'{}' names layers that are not there: the model has layers 0 to {}",
                   Printable(whole), skipped->layers() - 1);
  }
  std::vector<bool>& of_kind = kind == 'a' ? skipped->mixers : skipped->mlps;
  std::fill(of_kind.begin() + first, of_kind.begin() + last + 1, true);
  return {};
}

void AppendStretches(char kind, const std::vector<bool>& skipped, std::vector<std::string>* items) {
  for (std::size_t first = 0; first < skipped.size(); ++first) {
    if (!skipped[first]) continue;
    std::size_t last = first;
    while (last + 1 < skipped.size() && skipped[last + 1]) ++last;
    items->push_back(last == first ? fmt::format("{}{}", kind, first)
                                   : fmt::format("{}{}-{}{}", kind, first, kind, last));
    first = last;
  }
}

}  // namespace

bool IsWhole(const ModelConfig& config) {
  return std::ranges::all_of(
      config.layers, [](const LayerSpec& layer) { return HasMixer(layer) && HasMlp(layer); });
}

int SkippedSublayers::count() const {
  return std::ranges::count(mixers, true) + std::ranges::count(mlps, true);
}

std::string SkippedSublayers::ToText() const {
  std::vector<std::string> items;
  AppendStretches('a', mixers, &items);
  AppendStretches('m', mlps, &items);
  return fmt::format("{}", fmt::join(items, ","));
}

Result<SkippedSublayers> ParseSkippedSublayers(std::string_view text, int layers) {
  SkippedSublayers skipped(layers);
  for (;;) {
    const std::size_t comma = text.find(',');
    FT_RETURN_IF_ERROR(AddItem(text.substr(0, comma), &skipped));
    if (comma == std::string_view::npos) return skipped;
    text.remove_prefix(comma + 1);
  }
}

Result<SkippedSublayers> SkippedByExit(int exit, int layers) {
  if (exit < 1 || exit >= layers) {
    return Invalid(
        "an exit behind {} layers: the model has {}, so a draft of its first ones has from 1 to {}",
        exit, layers, layers - 1);
  }
  SkippedSublayers skipped(layers);
  std::fill(skipped.mixers.begin() + exit, skipped.mixers.end(), true);
  std::fill(skipped.mlps.begin() + exit, skipped.mlps.end(), true);
  return skipped;
}

Result<ModelConfig> Without(const SkippedSublayers& skipped, const ModelConfig& whole) {
  ModelConfig part = whole;
  for (std::size_t i = 0; i < part.layers.size(); ++i) {
    LayerSpec& layer = part.layers[i];
    if (skipped.mixers[i]) {
      layer.attention = {};
      layer.delta = {};
    }
    if (skipped.mlps[i]) layer.mlp = {};
  }
  for (std::size_t i = 0; i < part.layers.size(); ++i) {
    const int read = part.layers[i].attention.kv_from;
    if (read < 0 || HasMixer(part.layers[read])) continue;
    return Invalid("attention of layer {} cannot be left out: layer {} reads its keys and values",
                   read, i);
  }
  if (std::ranges::none_of(part.layers, HasMixer)) {
    return InvalidInput("no layer is left that reads other positions: leave fewer out");
  }
  return part;
}

}  // namespace foretoken
