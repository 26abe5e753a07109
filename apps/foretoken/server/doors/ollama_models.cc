#include "apps/foretoken/server/doors/ollama_models.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "apps/foretoken/server/api/request_fields.h"
#include "apps/foretoken/server/doors/doors.h"
#include "base/text/parse_number.h"
#include "json/json_events.h"

namespace foretoken::server {
namespace {

using Nanoseconds = std::chrono::nanoseconds;

constexpr double kLongest = 10 * 365.0 * 24 * 3600 * 1e9;  // More is for ever.

std::optional<Nanoseconds> Duration(double nanoseconds) {
  if (std::isnan(nanoseconds)) return std::nullopt;
  if (nanoseconds < 0 || nanoseconds > kLongest) return Nanoseconds::max();
  return Nanoseconds(std::llround(nanoseconds));
}

// Makes the outline of a body.
class OutlineReader : public JsonEvents {
 public:
  Json Take() { return std::move(root_); }

  bool Value(Json value) override {
    Add(std::move(value));
    return true;
  }
  bool Name(std::string name) override {
    if (depth_ == 1) name_ = std::move(name);
    return true;
  }
  bool BeginObject() override { return Open(Json::object()); }
  bool BeginArray() override { return Open(Json::array()); }
  bool EndObject() override { return Close(); }
  bool EndArray() override { return Close(); }

 private:
  bool Open(Json value) {
    Add(std::move(value));
    ++depth_;
    return true;
  }
  bool Close() {
    --depth_;
    return true;
  }
  void Add(Json value) {
    if (depth_ == 0) {
      root_ = std::move(value);
    } else if (depth_ == 1 && root_.is_object()) {
      root_[name_] = std::move(value);
    } else if (depth_ == 2 && root_.is_object() && root_[name_].is_array()) {
      root_[name_].push_back(nullptr);
    }
  }

  int depth_ = 0;
  Json root_;
  std::string name_;
};

// A body's own members; of lists only how many elements they have, of objects nothing.
Json Outline(std::string_view body) {
  OutlineReader outline;
  return ReadJsonEvents(body, &outline) ? outline.Take() : Json::Discarded();
}

bool IsEmpty(const Json& body, const char* name) {
  const auto field = body.find(name);
  return field == body.end() || field->is_null() || *field == Json("") ||
         (field->is_array() && field->empty());
}

}  // namespace

Result<ApiRequest> ReadOllamaModel(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [](FieldReader* fields, ApiRequest* request) {
    fields->String("name", &request->model);
    if (request->model.empty()) fields->Refuse("model", "the name of a model");
    SkipFields(fields, {"verbose", "insecure"});
    request->stream = true;
    fields->Bool("stream", &request->stream);
  });
}

std::optional<Nanoseconds> ParseOllamaDuration(std::string_view text) {
  using Unit = std::pair<std::string_view, double>;
  constexpr Unit kUnits[] = {{"ns", 1},  {"us", 1e3}, {"µs", 1e3},  {"ms", 1e6},
                             {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  double sum = 0;
  double number = 0;
  if (ParseNumber(text, &number)) return Duration((negative ? -number : number) * 1e9);
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    if (!ParseNumber(text.substr(0, digits), &number)) return std::nullopt;
    text.remove_prefix(digits);
    const std::string_view unit = text.substr(0, text.find_first_of("0123456789."));
    const auto* const known = std::ranges::find(kUnits, unit, &Unit::first);
    if (known == std::end(kUnits)) return std::nullopt;
    sum += number * known->second;
    text.remove_prefix(unit.size());
  }
  return Duration(negative ? -sum : sum);
}

Result<OllamaKeeping> ReadOllamaKeeping(std::string_view body) {
  OllamaKeeping keeping;
  const Json outline = Outline(body);
  if (!outline.is_object()) return keeping;
  keeping.asks_nothing = true;
  for (const char* name : {"prompt", "messages", "input", "suffix"}) {
    keeping.asks_nothing = keeping.asks_nothing && IsEmpty(outline, name);
  }
  const auto given = outline.find("keep_alive");
  if (given == outline.end() || given->is_null()) return keeping;
  if (given->is_number()) keeping.keep = Duration(given->get<double>() * 1e9);
  if (given->is_string()) keeping.keep = ParseOllamaDuration(given->get<std::string>());
  if (keeping.keep.has_value()) return keeping;
  return InvalidInput(
      "'keep_alive' must be a number of seconds, or a time like \"5m\" or \"1h30m\"; 0 unloads the "
      "model and -1 keeps it",
      "keep_alive");
}

Json OllamaNothingAsked(const Door& door, std::string_view model, std::string_view reason,
                        std::int64_t now) {
  if (door.path == "/api/embeddings") return {{"embedding", Json::array()}};
  Json reply = {{"model", model}};
  if (door.path == "/api/embed") {
    reply["embeddings"] = Json::array();
    return reply;
  }
  reply["created_at"] = OllamaTime(now);
  if (door.path == "/api/chat") {
    reply["message"] = {{"role", "assistant"}, {"content", ""}};
  } else {
    reply["response"] = "";
  }
  reply["done"] = true;
  reply["done_reason"] = reason;
  return reply;
}

}  // namespace foretoken::server
