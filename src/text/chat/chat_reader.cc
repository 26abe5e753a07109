#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "foretoken/chat_format.h"
#include "text/chat/call_readers.h"

namespace foretoken {
namespace {

std::unique_ptr<CallReader> MakeCallReader(const ChatReading& reading) {
  const CallForm& form = *reading.format.calls;
  if (form.body == CallBody::kGemma) return std::make_unique<GemmaCallReader>(form);
  if (form.body == CallBody::kTags) return std::make_unique<TagCallReader>(form, reading.tools);
  return std::make_unique<JsonCallReader>(form);
}

}  // namespace

// Reads byte by byte, so that pieces make no difference.
class ChatReader::Machine {
 public:
  explicit Machine(const ChatReading& reading)
      : reading_(reading),
        marked_(!reading.format.reasoning.close.empty() || finds_calls()),
        reasons_(reading.in_reasoning),
        trims_(reading.in_reasoning) {
    const CallForm* calls = reading.format.calls;
    if (calls != nullptr && calls->body == CallBody::kHarmony) harmony_.emplace(reading);
  }

  void Push(std::string_view text, std::vector<ChatPart>* parts) {
    PartList list(parts);
    if (harmony_.has_value()) {
      for (const char c : text) harmony_->Push(c, &list);
    } else if (marked_) {
      for (const char c : text) Step(c, &list);
    } else {
      list.Add(ChatPart::Kind::kContent, text);
    }
  }

  void Finish(std::vector<ChatPart>* parts) {
    PartList list(parts);
    if (harmony_.has_value()) return harmony_->Finish(&list);
    if (call_ != nullptr && !call_->Finish(&list)) Say(call_text_, &list);
    call_.reset();
    Say(held_, &list);
    if (!reasons_) list.Add(ChatPart::Kind::kContent, space_);
    held_.clear();
    space_.clear();
  }

 private:
  bool finds_calls() const { return !reading_.tools.empty() && reading_.format.calls != nullptr; }

  void Step(char c, PartList* parts) {
    if (call_ != nullptr) return StepInCall(c, parts);
    const bool by_brace = finds_calls() && reading_.format.calls->opens_by_brace;
    if (by_brace && c == '{' && held_.empty() && !reasons_ && !spoken_) {
      BeginCalls("");
      return StepInCall(c, parts);
    }
    held_ += c;
    while (!held_.empty()) {
      if (TakeMark()) return;
      if (MayBecomeMark()) return;
      Say(std::string_view(held_).substr(0, 1), parts);
      held_.erase(0, 1);
    }
  }

  void StepInCall(char c, PartList* parts) {
    call_text_ += c;
    const CallReader::Step step = call_->Push(c, parts);
    if (step == CallReader::Step::kGoesOn) return;
    call_.reset();
    if (step == CallReader::Step::kNoCall) return Say(std::exchange(call_text_, {}), parts);
    spoken_ = false;
    trims_ = true;
    if (step == CallReader::Step::kEndedBefore) Step(c, parts);
  }

  void BeginCalls(std::string_view mark) {
    call_ = MakeCallReader(reading_);
    call_text_ = std::exchange(space_, {}) + std::string(mark);
  }

  // The marks that count here: the one that begins or ends thoughts, the one that begins calls, and
  // those that are passed over; empty ones do not count.
  std::array<std::string_view, 4> Marks() const {
    const ReasoningForm& reasoning = reading_.format.reasoning;
    if (reasons_) return {reasoning.close};
    // What is said about thinking later is no thought.
    const std::string_view thinks = spoken_ ? std::string_view() : reasoning.open;
    if (!finds_calls()) return {thinks};
    const CallForm& calls = *reading_.format.calls;
    return {thinks, calls.open, calls.passed_over[0], calls.passed_over[1]};
  }

  bool TakeMark() {
    const auto marks = Marks();
    const auto mark = std::ranges::find(marks, held_);
    if (mark == marks.end()) return false;
    if (mark - marks.begin() == 1) {
      BeginCalls(held_);
    } else {
      if (mark == marks.begin()) reasons_ = !reasons_;
      trims_ = true;
      space_.clear();
    }
    held_.clear();
    return true;
  }

  bool MayBecomeMark() const {
    return std::ranges::any_of(Marks(), [&](auto mark) { return mark.starts_with(held_); });
  }

  // Space is kept until what follows it is known: none is said around thoughts and calls.
  void Say(std::string_view text, PartList* parts) {
    const auto kind = reasons_ ? ChatPart::Kind::kReasoning : ChatPart::Kind::kContent;
    for (const char c : text) {
      if (IsSpace(c)) {
        if (!trims_) space_ += c;
        continue;
      }
      parts->Add(kind, std::exchange(space_, {}));
      parts->Add(kind, {&c, 1});
      trims_ = false;
      spoken_ = spoken_ || !reasons_;
    }
  }

  const ChatReading reading_;
  std::optional<HarmonyReader> harmony_;  // Reads it all where the format is that.
  const bool marked_;                     // There is something to look for.
  bool reasons_;
  bool trims_;           // Space that comes now is left out.
  bool spoken_ = false;  // Something was said since the last call.
  std::string space_;    // Space that may be said yet.
  std::string held_;     // May become a mark.
  std::unique_ptr<CallReader> call_;
  std::string call_text_;  // The text of the calls at hand, from their opening mark on.
};

ChatReader::ChatReader(const ChatReading& reading) : machine_(std::make_unique<Machine>(reading)) {}
ChatReader::~ChatReader() = default;
ChatReader::ChatReader(ChatReader&&) noexcept = default;
ChatReader& ChatReader::operator=(ChatReader&&) noexcept = default;

void ChatReader::Push(std::string_view text, std::vector<ChatPart>* parts) {
  machine_->Push(text, parts);
}

void ChatReader::Finish(std::vector<ChatPart>* parts) { machine_->Finish(parts); }

}  // namespace foretoken
