#include "text/chat/call_readers.h"

#include <optional>
#include <utility>

#include "json/json.h"

namespace foretoken {
namespace {

constexpr std::size_t kMaxBareName = 512;  // With what stands around it.

// What a JSON string says; nothing where it is none.
std::optional<std::string> StringOf(std::string_view json) {
  const Json parsed = Json::Parse(json);
  if (!parsed.is_string()) return std::nullopt;
  return parsed.get<std::string>();
}

// The name in what stands before a call's arguments.
std::string BareNameIn(std::string_view text, const CallForm& form) {
  if (!form.before_bare_name.empty() && text.starts_with(form.before_bare_name)) {
    text.remove_prefix(form.before_bare_name.size());
  }
  std::size_t end = 0;
  while (end < text.size() && IsNameCharacter(text[end])) ++end;
  return std::string(text.substr(0, end));
}

}  // namespace

void PartList::Add(ChatPart::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (parts_->empty() || parts_->back().kind != kind) parts_->push_back({kind, {}});
  parts_->back().text += text;
}

JsonValueEnd::Place JsonValueEnd::Push(char c) {
  if (in_string_) {
    const bool ends = !escaped_ && c == '"';
    escaped_ = !escaped_ && c == '\\';
    if (ends) in_string_ = false;
    return ends && depth_ == 0 ? Place::kLast : Place::kInside;
  }
  if (scalar_) {
    return IsSpace(c) || c == ',' || c == '}' || c == ']' ? Place::kBehind : Place::kInside;
  }
  if (!begun_ && IsSpace(c)) return Place::kInside;
  scalar_ = !begun_ && c != '"' && c != '{' && c != '[';
  begun_ = true;
  if (c == '"') in_string_ = true;
  if (c == '{' || c == '[') ++depth_;
  if ((c == '}' || c == ']') && depth_ > 0 && --depth_ == 0) return Place::kLast;
  return Place::kInside;
}

CallReader::Step JsonCallReader::Push(char c, PartList* parts) {
  switch (state_) {
    case State::kBetween:
      return Between(c, parts);
    case State::kClosing:
      return Closing(c);
    case State::kBareName:
      return BareName(c, parts);
    case State::kKeyOrEnd:
      if (c == '}') return EndObject(parts);
      if (c == '"') {
        state_ = State::kKey;
        text_.clear();
        value_ = {};
        return Key(c);
      }
      return IsSpace(c) || c == ',' ? Step::kGoesOn : Stray(c);
    case State::kKey:
      return Key(c);
    case State::kColon:
      if (IsSpace(c)) return Step::kGoesOn;
      if (c != ':') return Stray(c);
      BeginValue();
      return Step::kGoesOn;
    case State::kValue:
      return Value(c, parts);
    case State::kAfterValue:
      return AfterValue(c, parts);
  }
  return Step::kNoCall;
}

CallReader::Step JsonCallReader::Between(char c, PartList* parts) {
  if (IsSpace(c) || c == ',' || c == ';') return Step::kGoesOn;
  if (c == '{') {
    named_ = false;
    has_arguments_ = false;
    arguments_.clear();
    state_ = State::kKeyOrEnd;
    return Step::kGoesOn;
  }
  if (c == '[' && !listed_ && calls_ == 0) {
    listed_ = true;
    return Step::kGoesOn;
  }
  if (c == ']' && listed_) {
    listed_ = false;
    return form_.close.empty() && calls_ > 0 ? Step::kEnded : Step::kGoesOn;
  }
  const bool closes = !form_.close.empty() && c == form_.close.front();
  if (form_.bare_name && calls_ == 0 && !closes) {
    state_ = State::kBareName;
    text_.clear();
    return BareName(c, parts);
  }
  return Stray(c);
}

// What stands where no part of a call does: the closing mark, or it is left out up to that.
CallReader::Step JsonCallReader::Stray(char c) {
  if (form_.close.empty()) return calls_ == 0 ? Step::kNoCall : Step::kEndedBefore;
  state_ = State::kClosing;
  text_.clear();
  return Closing(c);
}

CallReader::Step JsonCallReader::Closing(char c) {
  text_ += c;
  if (calls_ == 0) return form_.close.starts_with(text_) ? Step::kGoesOn : Step::kNoCall;
  if (text_.ends_with(form_.close)) return Step::kEnded;
  if (text_.size() >= form_.close.size()) text_.erase(0, 1);
  return Step::kGoesOn;
}

CallReader::Step JsonCallReader::BareName(char c, PartList* parts) {
  if (c != '{') {
    text_ += c;
    return text_.size() < kMaxBareName ? Step::kGoesOn : Step::kNoCall;
  }
  std::string name = BareNameIn(text_, form_);
  if (name.empty()) return Step::kNoCall;
  has_arguments_ = false;
  BeginCall(std::move(name), parts);
  key_ = form_.arguments_key;
  bare_ = true;
  BeginValue();
  return Value(c, parts);
}

CallReader::Step JsonCallReader::Key(char c) {
  text_ += c;
  if (value_.Push(c) != JsonValueEnd::Place::kLast) return Step::kGoesOn;
  std::optional<std::string> key = StringOf(text_);
  if (!key.has_value()) return Stray(c);
  key_ = std::move(*key);
  // An answer that is JSON need not be a call: it is told as early as can be.
  const bool of_calls = key_ == form_.name_key || key_ == form_.arguments_key || key_ == "type";
  if (form_.opens_by_brace && calls_ == 0 && !of_calls) return Step::kNoCall;
  state_ = State::kColon;
  return Step::kGoesOn;
}

void JsonCallReader::BeginValue() {
  state_ = State::kValue;
  value_ = {};
  text_.clear();
  streams_ = named_ && key_ == form_.arguments_key;
}

CallReader::Step JsonCallReader::Value(char c, PartList* parts) {
  if (text_.empty() && IsSpace(c)) return Step::kGoesOn;
  const JsonValueEnd::Place place = value_.Push(c);
  if (place == JsonValueEnd::Place::kBehind) {
    const Step step = EndValue(parts);
    return step == Step::kGoesOn ? Push(c, parts) : step;
  }
  // Arguments written as a string are what it says.
  if (text_.empty() && c == '"') streams_ = false;
  if (streams_) {
    parts->Add(ChatPart::Kind::kArguments, {&c, 1});
    if (text_.empty()) text_ = c;
  } else {
    text_ += c;
  }
  return place == JsonValueEnd::Place::kLast ? EndValue(parts) : Step::kGoesOn;
}

CallReader::Step JsonCallReader::EndValue(PartList* parts) {
  state_ = State::kAfterValue;
  if (key_ == form_.arguments_key) {
    has_arguments_ = true;
    if (!streams_) arguments_ = StringOf(text_).value_or(text_);
    if (named_ && !streams_) parts->Add(ChatPart::Kind::kArguments, arguments_);
  } else if (key_ == form_.name_key && !named_) {
    const std::optional<std::string> name = StringOf(text_);
    if (name.has_value() && !name->empty()) BeginCall(*name, parts);
    if (named_ && has_arguments_) parts->Add(ChatPart::Kind::kArguments, arguments_);
  }
  return bare_ ? EndObject(parts) : Step::kGoesOn;
}

CallReader::Step JsonCallReader::AfterValue(char c, PartList* parts) {
  if (IsSpace(c)) return Step::kGoesOn;
  if (c == '}') return EndObject(parts);
  if (c == ',') {
    state_ = State::kKeyOrEnd;
    return Step::kGoesOn;
  }
  // A bracket was forgotten.
  const Step step = EndObject(parts);
  return step == Step::kGoesOn ? Between(c, parts) : step;
}

CallReader::Step JsonCallReader::EndObject(PartList* parts) {
  if (calls_ == 0) return Step::kNoCall;
  if (named_ && !has_arguments_) parts->Add(ChatPart::Kind::kArguments, "{}");
  named_ = false;
  bare_ = false;
  state_ = State::kBetween;
  return Step::kGoesOn;
}

void JsonCallReader::BeginCall(std::string name, PartList* parts) {
  parts->BeginCall(std::move(name));
  named_ = true;
  ++calls_;
}

bool JsonCallReader::Finish(PartList* parts) {
  if (state_ == State::kValue && key_ == form_.arguments_key && named_ && !streams_) {
    parts->Add(ChatPart::Kind::kArguments, text_);  // Cut off within.
  }
  return calls_ > 0;
}

}  // namespace foretoken
