// The one file that sees nlohmann-json, which reads the text: its values are not used.

#include <istream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "json/json.h"
#include "json/json_events.h"
#include "json/json_members.h"

namespace foretoken {

// Hands the library's events on.
class EventAdapter {
 public:
  using Parser = nlohmann::json;

  explicit EventAdapter(JsonEvents* events) : events_(events) {}

  bool null() { return events_->Value(nullptr); }
  bool boolean(bool value) { return events_->Value(value); }
  bool number_integer(std::int64_t value) { return events_->Value(value); }
  bool number_unsigned(std::uint64_t value) { return events_->Value(value); }
  bool number_float(double value, const std::string&) { return events_->Value(value); }
  bool string(std::string& value) { return events_->Value(std::move(value)); }
  bool binary(Parser::binary_t&) { return false; }  // No text has any.
  bool start_object(std::size_t) { return events_->BeginObject(); }
  bool key(std::string& name) { return events_->Name(std::move(name)); }
  bool end_object() { return events_->EndObject(); }
  bool start_array(std::size_t) { return events_->BeginArray(); }
  bool end_array() { return events_->EndArray(); }
  bool parse_error(std::size_t at, const std::string&, const Parser::exception& error) {
    events_->Wrong(at, error.what());
    return false;
  }

 private:
  JsonEvents* const events_;
};

bool ReadJsonEvents(std::string_view text, JsonEvents* events) {
  EventAdapter adapter(events);
  return nlohmann::json::sax_parse(text, &adapter);
}

bool IsJson(std::string_view text) {
  JsonEvents any;
  return ReadJsonEvents(text, &any);
}

// Makes the value of a text.
class JsonBuilder final : public JsonEvents {
 public:
  explicit JsonBuilder(std::string* error) : error_(error) {}

  Json Take() { return std::move(root_); }

  bool Value(Json value) override {
    Place(std::move(value));
    return true;
  }
  bool BeginObject() override { return Open(Json::object()); }
  bool BeginArray() override { return Open(Json::array()); }
  bool Name(std::string name) override {
    name_ = std::move(name);
    return true;
  }
  bool EndObject() override {
    open_.back().value->data_.object->SortNames();
    return EndArray();
  }
  bool EndArray() override {
    open_.pop_back();
    return true;
  }
  void Wrong(std::size_t, const char* message) override {
    if (error_ != nullptr) *error_ = message;
  }

 private:
  // An object or array that is open. What is around it does not grow meanwhile, so it stays where
  // it is.
  struct Opened {
    Json* value;
    std::unordered_map<std::string, std::size_t> places;  // The members of an object that has many.
  };

  bool Open(Json value) {
    Json* const placed = Place(std::move(value));
    open_.push_back({placed, {}});
    return true;
  }

  Json* Place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Opened& around = open_.back();
    if (around.value->is_array()) {
      around.value->push_back(std::move(value));
      return &around.value->back();
    }
    // Given twice, the later one counts, in the place of the first.
    Json& member = MemberOf(&around);
    member = std::move(value);
    return &member;
  }

  // The member of the object with the name that was read last. One after the other is looked at
  // where they are few; a megabyte of short names would take minutes.
  Json& MemberOf(Opened* around) {
    auto& members = around->value->data_.object->members;
    if (members.size() < Json::Object::kFew) return (*around->value)[name_];
    if (around->places.empty()) {
      for (std::size_t i = 0; i < members.size(); ++i) around->places.emplace(members[i].first, i);
    }
    const auto [place, is_new] = around->places.emplace(name_, members.size());
    if (is_new) members.emplace_back(std::move(name_), Json());
    return members[place->second].second;
  }

  std::string* const error_;
  Json root_;
  std::vector<Opened> open_;
  std::string name_;
};

Json Json::Parse(std::string_view text, std::string* error) {
  JsonBuilder builder(error);
  return ReadJsonEvents(text, &builder) ? builder.Take() : Discarded();
}

Json Json::Parse(std::istream& text) {
  return Parse(std::string(std::istreambuf_iterator<char>(text), {}));
}

}  // namespace foretoken
