#include "text/chat/call_readers.h"

#include <utility>

#include "json/json.h"
#include "json/json_events.h"

namespace foretoken {
namespace {

constexpr std::string_view kQuote = "<|\"|>";
constexpr ChatPart::Kind kArguments = ChatPart::Kind::kArguments;

// A character of a string as JSON has it; bytes of others stay as they are.
std::string Escaped(char c) {
  if (c == '"' || c == '\\') return std::string("\\") + c;
  if (c == '\n') return "\\n";
  if (static_cast<unsigned char>(c) >= 0x20) return {c};
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(c);
  return std::string("\\u00") + kDigits[code >> 4] + kDigits[code & 15];
}

}  // namespace

CallReader::Step GemmaCallReader::Push(char c, PartList* parts) {
  switch (state_) {
    case State::kName:
      return Name(c, parts);
    case State::kArguments:
      Argument(c, parts);
      return Step::kGoesOn;
    case State::kClosing:
      text_ += c;
      if (text_.ends_with(form_.close)) return Step::kEnded;
      if (text_.size() >= form_.close.size()) text_.erase(0, 1);
  }
  return Step::kGoesOn;
}

CallReader::Step GemmaCallReader::Name(char c, PartList* parts) {
  const std::string_view before = form_.before_bare_name;
  if (c != '{') {
    text_ += c;
    const bool begins = text_.size() > before.size() || before.starts_with(text_);
    return begins && text_.size() < kMaxName ? Step::kGoesOn : Step::kNoCall;
  }
  if (text_.size() <= before.size() || !text_.starts_with(before)) return Step::kNoCall;
  for (const char letter : text_.substr(before.size())) {
    if (!IsNameCharacter(letter)) return Step::kNoCall;
  }
  parts->BeginCall(text_.substr(before.size()));
  called_ = true;
  state_ = State::kArguments;
  Bare(c, parts);
  return Step::kGoesOn;
}

void GemmaCallReader::Argument(char c, PartList* parts) {
  held_ += c;
  while (!held_.empty()) {
    if (held_ == kQuote) {
      if (!in_string_) EndWord(/*key=*/false, parts);
      in_string_ = !in_string_;
      parts->Add(kArguments, "\"");
      held_.clear();
      return;
    }
    if (kQuote.starts_with(held_)) return;
    const char first = held_.front();
    held_.erase(0, 1);
    if (in_string_) {
      parts->Add(kArguments, Escaped(first));
    } else if (state_ == State::kArguments) {
      Bare(first, parts);
    } else {
      text_ += first;
    }
  }
}

void GemmaCallReader::Bare(char c, PartList* parts) {
  if (IsSpace(c)) return;
  if (c != '{' && c != '[' && c != '}' && c != ']' && c != ':' && c != ',') {
    word_ += c;
    return;
  }
  EndWord(c == ':', parts);
  parts->Add(kArguments, {&c, 1});
  if (c == '{' || c == '[') ++depth_;
  if ((c == '}' || c == ']') && --depth_ == 0) state_ = State::kClosing;
}

void GemmaCallReader::EndWord(bool key, PartList* parts) {
  const std::string word = std::exchange(word_, {});
  if (word.empty()) return;
  const bool json = !key && IsJson(word);
  parts->Add(kArguments, json ? word : Json(word).dump());
}

bool GemmaCallReader::Finish(PartList*) { return called_; }

}  // namespace foretoken
