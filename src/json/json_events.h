#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "json/json.h"

namespace foretoken {

/// The events of a JSON text, all accepted: the base of readers that look at a few kinds. What
/// returns false ends the reading.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  /// Neither an object nor an array.
  virtual bool Value(Json) { return true; }
  virtual bool Name(std::string) { return true; }
  virtual bool BeginObject() { return true; }
  virtual bool EndObject() { return true; }
  virtual bool BeginArray() { return true; }
  virtual bool EndArray() { return true; }
  /// The text is no JSON: the byte where that shows, from 1 on, and what is wrong.
  virtual void Wrong(std::size_t, const char*) {}
};

/// Reads a JSON text; false where it is none or an event was refused. A NUL ends the text.
bool ReadJsonEvents(std::string_view text, JsonEvents* events);

/// Whether the text is JSON.
bool IsJson(std::string_view text);

}  // namespace foretoken
