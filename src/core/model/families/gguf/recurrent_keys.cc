#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "core/model/families/family.h"
#include "core/model/families/gguf/own_keys.h"

namespace foretoken {

// Files call the sizes of heads as those of other recurrent layers.
void RecurrentFromGguf(const GgufMetadata& metadata, Json* config) {
  std::string architecture;
  if (!metadata.String("general.architecture", &architecture).ok()) return;
  const auto copy = [&](const char* key, const char* field) {
    constexpr std::int64_t kMost = 1 << 30;
    std::int64_t value = -1;
    const std::string whole = fmt::format("{}.{}", architecture, key);
    if (metadata.Integer(whole, 0, kMost, &value).ok() && value >= 0) (*config)[field] = value;
  };
  copy("ssm.group_count", "linear_num_key_heads");
  copy("ssm.time_step_rank", "linear_num_value_heads");
  copy("ssm.state_size", "linear_key_head_dim");
  copy("ssm.conv_kernel", "linear_conv_kernel_dim");
  copy("ssm.inner_size", "linear_value_width");
  copy("full_attention_interval", "full_attention_interval");
}

void RecurrentToGguf(const ModelConfig& config, GgufHeader* header) {
  const std::string architecture(FamilyNamed(config.family)->gguf);
  const auto set = [&](const char* key, int value) {
    header->Set(fmt::format("{}.{}", architecture, key), static_cast<std::uint32_t>(value));
  };
  const auto recurrent = std::ranges::find_if(config.layers, &LayerSpec::is_recurrent);
  if (recurrent == config.layers.end()) return;
  const DeltaShape& delta = recurrent->delta;
  set("ssm.conv_kernel", delta.taps);
  set("ssm.state_size", delta.key_dim);
  set("ssm.group_count", delta.key_heads);
  set("ssm.time_step_rank", delta.value_heads);
  set("ssm.inner_size", delta.value_width());
  const auto attends = std::ranges::find_if_not(config.layers, &LayerSpec::is_recurrent);
  set("full_attention_interval", static_cast<int>(attends - config.layers.begin()) + 1);
  if (!delta.keys_in_turns) return;
  // How many pairs tell times, rows and columns of images apart, of which texts have none.
  const int pairs = config.ropes.front().dims / 2;
  const std::array<std::int32_t, 4> sections = {(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0};
  header->Set(architecture + ".rope.dimension_sections", std::span<const std::int32_t>(sections));
}

}  // namespace foretoken
