#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "apps/foretoken/server/api/door.h"

namespace foretoken::server {

// What Ollama's clients say and are told of models themselves.

/// The body of /api/show, /api/pull and the like: the model's name; `name` is what older clients
/// call it.
Result<ApiRequest> ReadOllamaModel(std::string_view body, const ApiDefaults& defaults);

/// What a request says of how long its model is to stay loaded.
struct OllamaKeeping {
  /// There is no prompt, message or input: the model is only to be loaded, or to go.
  bool asks_nothing = false;
  /// How long it stays when nobody uses it; `max()`: for ever; none: as the server has it.
  std::optional<std::chrono::nanoseconds> keep;

  bool unloads() const { return asks_nothing && keep == std::chrono::nanoseconds::zero(); }
};
/// A body that is no JSON object says nothing: its door says what is wrong.
Result<OllamaKeeping> ReadOllamaKeeping(std::string_view body);

/// A time as Ollama's clients write it: seconds, or "5m", "1h30m"; less than 0 is for ever.
std::optional<std::chrono::nanoseconds> ParseOllamaDuration(std::string_view text);

/// The answer of `door` to a request that asks nothing; `reason`: "load" or "unload".
Json OllamaNothingAsked(const Door& door, std::string_view model, std::string_view reason,
                        std::int64_t now);

}  // namespace foretoken::server
