#include "apps/foretoken/server/api/field_reader.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/text/utf8.h"
#include "json/json_events.h"

namespace foretoken::server {
namespace {

// Finds what is wrong with a JSON text: where it is none, too many brackets open at once, or a
// member that an object has twice.
class Complaint : public JsonEvents {
 public:
  std::size_t position = 0;
  bool too_deep = false;
  std::optional<std::string> repeated;

  bool BeginObject() override { return Open(); }
  bool BeginArray() override { return Open(); }
  bool Name(std::string name) override {
    if (!names_.back().insert(name).second) repeated = name;
    return !repeated.has_value();
  }
  bool EndObject() override { return Close(); }
  bool EndArray() override { return Close(); }
  void Wrong(std::size_t at, const char*) override { position = at; }

 private:
  bool Open() {
    names_.emplace_back();
    too_deep = names_.size() > kMaxJsonDepth;
    return !too_deep;
  }
  bool Close() {
    names_.pop_back();
    return true;
  }

  // The names in each object that is open; none in an array.
  std::vector<std::set<std::string>> names_;
};

// The code that stands behind "\\u" at `at`; -1: none does.
int EscapedCode(std::string_view text, std::size_t at) {
  constexpr std::size_t kDigits = 4;
  if (text.substr(at, 2) != "\\u" || at + 2 + kDigits > text.size()) return -1;
  int code = 0;
  const char* const begin = text.data() + at + 2;
  const auto [end, error] = std::from_chars(begin, begin + kDigits, code, 16);
  return error == std::errc() && end == begin + kDigits ? code : -1;
}

}  // namespace

void MendJson(std::string* text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  constexpr std::size_t kEscape = 6;  // Bytes.
  if (text->starts_with(kMark)) text->erase(0, kMark.size());
  for (std::size_t at = text->find('\\'); at != text->npos; at = text->find('\\', at)) {
    const int code = EscapedCode(*text, at);
    const bool high = code >= 0xD800 && code < 0xDC00;
    const bool low = code >= 0xDC00 && code < 0xE000;
    const int next = high ? EscapedCode(*text, at + kEscape) : -1;
    const bool pair = next >= 0xDC00 && next < 0xE000;
    if (low || (high && !pair)) text->replace(at + 2, kEscape - 2, "FFFD");
    at += pair ? 2 * kEscape : code >= 0 ? kEscape : 2;
  }
}

Result<Json> ParseJson(std::string_view text) {
  if (text.empty()) return InvalidInput("the body is empty; send a JSON object");
  Complaint complaint;
  // The library takes a NUL for the end of the text, and what follows for nothing.
  const std::size_t nul = text.find('\0');
  if (nul == std::string_view::npos && ReadJsonEvents(text, &complaint)) return Json::Parse(text);
  if (nul != std::string_view::npos) complaint.position = nul + 1;
  if (complaint.too_deep) {
    return Invalid("the body nests JSON deeper than {} levels; flatten it", kMaxJsonDepth);
  }
  if (complaint.repeated.has_value()) {
    return Invalid("the body has '{}' twice in one object; give it once",
                   Shortened(*complaint.repeated));
  }
  return Invalid("the body is not valid JSON (in UTF-8): it goes wrong at byte {}",
                 complaint.position);
}

FieldReader::FieldReader(const Json& object, std::string name, Status* error,
                         std::vector<std::string>* unknown, bool strict)
    : JsonObject(object.is_object() ? &object : nullptr, name.empty() ? name : name + ".", error),
      unknown_(unknown),
      strict_(strict) {
  integer_ = "an integer";
  if (json_ != nullptr || !ok()) return;
  *status_ = name.empty() ? InvalidInput("the body must be a JSON object")
                          : InvalidInput(fmt::format("'{}' must be an object", name), name);
}

FieldReader FieldReader::Inner(std::string_view name, const Json& object) const {
  return {object, fmt::format("{}{}", place_, name), status_, unknown_, strict_};
}

FieldReader FieldReader::InnerStrict(std::string_view name, const Json& object) const {
  return {object, fmt::format("{}{}", place_, name), status_, unknown_, /*strict=*/true};
}

bool FieldReader::Seed(std::string_view name, std::uint64_t* value) {
  const Json* field = Find(name);
  if (field == nullptr) return false;
  if (!field->is_number_integer()) {
    Refuse(name, "an integer");
    return false;
  }
  *value = field->get<std::uint64_t>();  // Negative seeds wrap: still one seed each.
  return true;
}

bool FieldReader::Number(std::string_view name, float low, float high, float* value) {
  const Json* field = Find(name);
  if (field == nullptr) return false;
  constexpr double kLargest = 1e30;
  const double number = field->is_number() ? field->get<double>() : INFINITY;
  if (!(std::abs(number) <= kLargest)) {
    Refuse(name, "a number");
    return false;
  }
  *value = static_cast<float>(number);
  if (!(*value >= low && *value <= high)) Refuse(name, fmt::format("from {} to {}", low, high));
  return ok();
}

void FieldReader::Refuse(std::string_view name, std::string_view must_be) {
  Fail(name, fmt::format("'{}{}' must be {}", place_, name, must_be));
}

void FieldReader::LeaveOut(std::string_view name, std::string_view what) {
  if (unknown_ != nullptr) {
    unknown_->push_back(fmt::format("{}{}={}", place_, name, what));
    return;
  }
  Fail(name, fmt::format("'{}{}' is '{}', which this server does not have; leave it out", place_,
                         name, Shortened(std::string(what))));
}

void FieldReader::Fail(std::string_view name, std::string message) {
  if (ok()) *status_ = InvalidInput(std::move(message), place_ + std::string(name));
}

void FieldReader::RefuseUnknown(std::string_view name) {
  if (unknown_ != nullptr && !strict_) {
    unknown_->push_back(place_ + std::string(name));
    return;
  }
  Fail(name, fmt::format("'{}{}' is not a field that this server supports; leave it out", place_,
                         Shortened(name)));
}

}  // namespace foretoken::server
