#include "text/grammar/json/schema_document.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace foretoken {
namespace {

constexpr std::size_t kMaxSchemaWork = 2'000'000;
constexpr int kMaxReferences = 64;  // One after the other.

// The JSON pointer from `from` to a part of it, known by its address.
std::optional<std::string> PointerTo(const Json& from, const Json* part) {
  if (&from == part) return "";
  if (!from.is_structured()) return std::nullopt;
  for (const auto& [key, value] : from.items()) {
    if (const auto rest = PointerTo(value, part)) return fmt::format("/{}{}", key, *rest);
  }
  return std::nullopt;
}

// The part of a URI behind '#', where "%XX" stands for a byte.
std::string Decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 3], byte, 16).ptr == &text[i + 3]) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

// Whether a part of `json` has a name by which references may be meant to be read.
bool NamesAPart(const Json& json) {
  return std::ranges::any_of(json, [](const Json& part) {
    if (!part.is_structured()) return false;
    const bool named = part.is_object() && part.contains("$id") && part["$id"].is_string();
    return named || NamesAPart(part);
  });
}

}  // namespace

SchemaDocument::SchemaDocument(const Json& root) : root_(root), names_parts_(NamesAPart(root)) {}

void SchemaDocument::Refuse(const Json& part, const std::string& what) const {
  std::optional<std::string> pointer = PointerTo(root_, &part);
  for (const Own& own : own_) {
    if (!pointer.has_value() && PointerTo(own.schema, &part)) Refuse(*own.origin, what);
  }
  const std::string place = pointer.value_or("").empty() ? "its root" : *pointer;
  throw SchemaRefusal{fmt::format("schema, at {}: {}", place, what)};
}

void SchemaDocument::Spend(std::size_t work) {
  work_ += work;
  if (work_ > kMaxSchemaWork) Refuse(root_, "it is too large or too intricate; make it smaller");
}

const Json& SchemaDocument::Resolve(const Json& schema) const {
  const Json& reference = schema["$ref"];
  const std::string text = reference.is_string() ? reference.get<std::string>() : "";
  if (text != "#" && !text.starts_with("#/")) {
    Refuse(schema, "'$ref' must name a place in this schema, like #/$defs/name");
  }
  if (names_parts_) {
    Refuse(schema, "'$ref' is not supported in a schema with parts that have an '$id'");
  }
  try {
    const Json* const found = root_.Find(Decoded(text.substr(1)));
    if (found != nullptr) return *found;
  } catch (const Json::Error&) {
    // Said below.
  }
  Refuse(schema, fmt::format("'$ref' names '{}', which is not there", text));
}

const Json& SchemaDocument::Dereference(const Json& schema) const {
  const Json* at = &schema;
  for (int i = 0; i < kMaxReferences; ++i) {
    if (!at->is_object() || at->size() != 1 || !at->contains("$ref")) break;
    at = &Resolve(*at);
  }
  return *at;
}

}  // namespace foretoken
