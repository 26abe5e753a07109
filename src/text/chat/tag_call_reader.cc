#include "text/chat/call_readers.h"

#include <algorithm>

#include "json/json.h"
#include "json/json_events.h"

namespace foretoken {
namespace {

std::string JsonString(std::string_view text) { return Json(text).dump(); }

}  // namespace

CallReader::Step TagCallReader::Push(char c, PartList* parts) {
  if (state_ == State::kName) return Name(c, parts);
  text_ += c;
  switch (state_) {
    case State::kBetween:
      return Between(parts);
    case State::kKey:
      if (!text_.ends_with(form_.key_close)) break;
      key_ = text_.substr(0, text_.size() - form_.key_close.size());
      state_ = form_.value_open.empty() ? State::kValue : State::kToValue;
      text_.clear();
      break;
    case State::kToValue:
      if (!text_.ends_with(form_.value_open)) break;
      state_ = State::kValue;
      text_.clear();
      break;
    default:
      if (text_.ends_with(form_.value_close)) EndValue(parts);
  }
  return Step::kGoesOn;
}

CallReader::Step TagCallReader::Name(char c, PartList* parts) {
  const std::string_view before = form_.before_bare_name;
  if (text_.empty() && IsSpace(c)) return Step::kGoesOn;
  if (text_.size() < before.size()) {
    text_ += c;
    return before.starts_with(text_) ? Step::kGoesOn : Step::kNoCall;
  }
  if (IsNameCharacter(c) && text_.size() < kMaxName) {
    text_ += c;
    return Step::kGoesOn;
  }
  name_ = text_.substr(before.size());
  if (name_.empty()) return Step::kNoCall;
  parts->BeginCall(name_);
  called_ = true;
  state_ = State::kBetween;
  text_ = c;
  return Step::kGoesOn;
}

CallReader::Step TagCallReader::Between(PartList* parts) {
  if (text_.ends_with(form_.key_open)) {
    state_ = State::kKey;
    text_.clear();
  } else if (text_.ends_with(form_.close)) {
    parts->Add(ChatPart::Kind::kArguments, any_ ? "}" : "{}");
    return Step::kEnded;
  } else if (text_.size() > std::max(form_.key_open.size(), form_.close.size())) {
    text_.erase(0, 1);
  }
  return Step::kGoesOn;
}

void TagCallReader::EndValue(PartList* parts) {
  std::string_view value = text_;
  value.remove_suffix(form_.value_close.size());
  // Values have lines of their own where no mark opens them.
  if (form_.value_open.empty() && value.starts_with('\n')) value.remove_prefix(1);
  if (form_.value_open.empty() && value.ends_with('\n')) value.remove_suffix(1);
  const bool json = !IsString(key_) && IsJson(value);
  const ChatPart::Kind kind = ChatPart::Kind::kArguments;
  parts->Add(kind, any_ ? ", " : "{");
  parts->Add(kind, JsonString(key_) + ": ");
  parts->Add(kind, json ? std::string(value) : JsonString(value));
  any_ = true;
  state_ = State::kBetween;
  text_.clear();
}

bool TagCallReader::IsString(std::string_view key) const {
  const auto tool = std::ranges::find(tools_, name_, &ChatTool::name);
  if (tool == tools_.end() || tool->parameters.empty()) return false;
  const Json schema = Json::Parse(tool->parameters);
  if (!schema.is_object()) return false;
  const auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object()) return false;
  const auto property = properties->find(key);
  return property != properties->end() && property->is_object() &&
         property->value("type", Json()) == "string";
}

bool TagCallReader::Finish(PartList*) { return called_; }

}  // namespace foretoken
