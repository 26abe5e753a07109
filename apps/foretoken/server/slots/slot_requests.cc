#include "apps/foretoken/server/slots/slot_requests.h"

#include <string>

#include "apps/foretoken/server/api/field_reader.h"
#include "base/text/parse_number.h"

namespace foretoken::server {

Result<SlotAction> ReadSlotAction(std::string_view slot, std::string_view action,
                                  std::string_view body) {
  using Kind = SlotAction::Kind;
  SlotAction asked;
  if (!ParseNumber(std::string(slot), &asked.slot)) {
    return InvalidInput("Invalid slot ID: it is a number, as in /slots/0?action=save", "id_slot");
  }
  if (action == "save") {
    asked.kind = Kind::kSave;
  } else if (action == "restore") {
    asked.kind = Kind::kRestore;
  } else if (action == "erase") {
    asked.kind = Kind::kErase;
  } else {
    return InvalidInput("Invalid action: it is save, restore or erase, as in ?action=save",
                        "action");
  }
  if (body.empty() && asked.kind == Kind::kErase) return asked;
  const auto read = [&asked](FieldReader* fields, SlotAction* /*read*/) {
    std::string model;  // Which one was asked for is known.
    fields->String("model", &model);
    const bool named = fields->String("filename", &asked.filename);
    if (!named && asked.kind != Kind::kErase) fields->Refuse("filename", "the name of a file");
  };
  FT_RETURN_IF_ERROR(ParseFields<SlotAction>(body, nullptr, read));
  return asked;
}

Json SlotOutcomeJson(const SlotAction& action, const SlotOutcome& outcome) {
  Json json = {{"id_slot", action.slot}};
  switch (action.kind) {
    case SlotAction::Kind::kSave:
      json.update({{"filename", action.filename},
                   {"n_saved", outcome.tokens},
                   {"n_written", outcome.bytes},
                   {"timings", {{"save_ms", outcome.milliseconds}}}});
      break;
    case SlotAction::Kind::kRestore:
      json.update({{"filename", action.filename},
                   {"n_restored", outcome.tokens},
                   {"n_read", outcome.bytes},
                   {"timings", {{"restore_ms", outcome.milliseconds}}}});
      break;
    case SlotAction::Kind::kErase:
      json["n_erased"] = outcome.tokens;
      break;
  }
  return json;
}

ApiError SlotError(const Error& error) {
  if (error.code != ErrorCode::kUnavailable) return Refusal(error);
  return {.status = 503,
          .message = error.message,
          .type = "server_error",
          .code = "slot_unavailable",
          .retry_after = 1};
}

}  // namespace foretoken::server
