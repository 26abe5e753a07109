#include "apps/foretoken/server/models/adapters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text/utf8.h"

namespace foretoken::server {
namespace {

// Where it says no scale, the adapter's own; nothing of an adapter is no adapter.
AdapterUse UseOf(int index, std::optional<float> scale, const LanguageModel& loaded) {
  const AdapterSource& adapter = loaded.adapters()[index];
  const AdapterUse use{index, scale.value_or(adapter.scale)};
  return use.scale == 0 ? AdapterUse{} : use;
}

}  // namespace

std::variant<AdapterUse, ApiError> AdapterFor(const ApiRequest& request,
                                              const LanguageModel& loaded) {
  const std::vector<AdapterSource>& adapters = loaded.adapters();
  const AdapterWish& wish = request.adapter;
  const auto find = [&adapters](std::string_view name) {
    return static_cast<int>(std::ranges::find(adapters, name, &AdapterSource::name) -
                            adapters.begin());
  };
  const int count = adapters.size();
  if (!wish.given) {
    const std::size_t colon = request.model.rfind(':');
    if (colon == std::string::npos) return AdapterUse{};
    const int index = find(std::string_view(request.model).substr(colon + 1));
    return index < count ? UseOf(index, std::nullopt, loaded) : AdapterUse{};
  }
  if (wish.name.empty() && wish.index < 0) return AdapterUse{};
  const int index = wish.name.empty() ? wish.index : find(wish.name);
  if (index < count) return UseOf(index, wish.scale, loaded);
  std::vector<std::string> names;
  for (const AdapterSource& adapter : adapters) names.push_back(adapter.name);
  const std::string asked =
      wish.name.empty() ? fmt::format("{}", wish.index) : fmt::format("'{}'", wish.name);
  return ApiError{.message = names.empty()
                                 ? "this server has no adapters: it was started without --lora"
                                 : fmt::format("there is no adapter {}: this server has {}",
                                               Shortened(asked), fmt::join(names, ", ")),
                  .param = "lora",
                  .code = "adapter_not_found"};
}

std::string AdaptedName(const std::string& model, const LanguageModel& loaded, AdapterUse use) {
  if (use.index < 0) return model;
  return fmt::format("{}:{}", model, loaded.adapters()[use.index].name);
}

}  // namespace foretoken::server
