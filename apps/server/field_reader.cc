#include "server/field_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "grammar/json/accepting_sax.h"

namespace foretoken::server {
namespace {

using Json = nlohmann::json;

// Brackets open at once at most; what is in strings does not count.
int DepthOf(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

// Finds what is wrong with a JSON text: where it is none, or a member that an object has twice.
class Complaint : public AcceptingSax {
 public:
  std::size_t position = 0;
  std::optional<std::string> repeated;

  bool start_object(std::size_t) override {
    names_.emplace_back();
    return true;
  }
  bool key(string_t& name) override {
    if (!names_.back().insert(name).second) repeated = name;
    return !repeated.has_value();
  }
  bool end_object() override {
    names_.pop_back();
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const Json::exception&) override {
    position = at;
    return false;
  }

 private:
  std::vector<std::set<std::string>> names_;  // Of each object that is open.
};

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  if (DepthOf(text) > kMaxJsonDepth) {
    return InvalidInput(
        fmt::format("the body nests JSON deeper than {} levels; flatten it", kMaxJsonDepth));
  }
  if (text.empty()) return InvalidInput("the body is empty; send a JSON object");
  Complaint complaint;
  if (Json::sax_parse(text, &complaint)) return Json::parse(text, nullptr, false);
  if (complaint.repeated.has_value()) {
    return InvalidInput(
        fmt::format("the body has '{}' twice in one object; give it once", *complaint.repeated));
  }
  return InvalidInput(fmt::format("the body is not valid JSON (in UTF-8): it goes wrong at byte {}",
                                  complaint.position));
}

FieldReader::FieldReader(const Json& object, std::string path, FieldError* error)
    : object_(object), path_(std::move(path)), error_(error) {
  if (!object_.is_object() && error_->ok()) {
    const std::string name = path_.empty() ? "" : path_.substr(0, path_.size() - 1);
    error_->field = name;
    error_->message = name.empty() ? "the body must be a JSON object"
                                   : fmt::format("'{}' must be an object", name);
  }
}

const Json* FieldReader::Find(std::string_view name) {
  asked_.push_back(name);
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool FieldReader::Bool(std::string_view name, bool* value) {
  const Json* field = Find(name);
  if (field == nullptr) return false;
  if (!field->is_boolean()) {
    Refuse(name, "true or false");
    return false;
  }
  *value = field->get<bool>();
  return true;
}

bool FieldReader::Int(std::string_view name, std::int64_t low, std::int64_t high, int* value) {
  const Json* field = Find(name);
  if (field == nullptr) return false;
  const bool huge =
      field->is_number_unsigned() && field->get<std::uint64_t>() > static_cast<std::uint64_t>(high);
  if (!field->is_number_integer() || huge || field->get<std::int64_t>() < low ||
      field->get<std::int64_t>() > high) {
    Refuse(name, fmt::format("an integer from {} to {}", low, high));
    return false;
  }
  *value = static_cast<int>(field->get<std::int64_t>());
  return true;
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

bool FieldReader::Number(std::string_view name, float* value) {
  const Json* field = Find(name);
  if (field == nullptr) return false;
  constexpr double kLargest = 1e30;
  const double number = field->is_number() ? field->get<double>() : INFINITY;
  if (!(std::abs(number) <= kLargest)) {
    Refuse(name, "a number");
    return false;
  }
  *value = static_cast<float>(number);
  return true;
}

bool FieldReader::String(std::string_view name, std::string* value) {
  const Json* field = Find(name);
  if (field == nullptr) return false;
  if (!field->is_string()) {
    Refuse(name, "a string");
    return false;
  }
  *value = field->get_ref<const std::string&>();
  return true;
}

void FieldReader::Refuse(std::string_view name, std::string_view must_be) {
  Fail(name, fmt::format("'{}{}' must be {}", path_, name, must_be));
}

void FieldReader::Fail(std::string_view name, std::string message) {
  if (!error_->ok()) return;
  error_->field = path_ + std::string(name);
  error_->message = std::move(message);
}

void FieldReader::RefuseOthers() {
  if (!object_.is_object()) return;
  for (const auto& [name, value] : object_.items()) {
    if (value.is_null() || std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
    Fail(name,
         fmt::format("'{}{}' is not a field that this server supports; leave it out", path_, name));
    return;
  }
}

}  // namespace foretoken::server
