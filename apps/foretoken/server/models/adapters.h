#pragma once

#include <string>
#include <variant>

#include "apps/foretoken/server/api/api_request.h"
#include "apps/foretoken/server/service.h"

namespace foretoken::server {

/// The adapter that a request is to be decoded with: that of its field `lora`, or else of a model's
/// name "MODEL:ADAPTER"; or the error where the model was not loaded with it.
std::variant<AdapterUse, ApiError> AdapterFor(const ApiRequest& request,
                                              const LanguageModel& loaded);

/// What the reply calls the model: `model`, and behind it the adapter.
std::string AdaptedName(const std::string& model, const LanguageModel& loaded, AdapterUse use);

}  // namespace foretoken::server
