#pragma once

#include <string_view>

#include "apps/foretoken/server/api/api_json.h"
#include "apps/foretoken/server/slots/slot_keeper.h"

namespace foretoken::server {

/// Reads what llama.cpp's clients ask of a slot: its number, as it stands in the path, the query
/// `action` and the body, whose `filename` says where it is saved.
Result<SlotAction> ReadSlotAction(std::string_view slot, std::string_view action,
                                  std::string_view body);

/// What is answered when it is done.
Json SlotOutcomeJson(const SlotAction& action, const SlotOutcome& outcome);

/// The error that is answered when it is not done.
ApiError SlotError(const Error& error);

}  // namespace foretoken::server
