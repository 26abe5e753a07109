#include "text/chat/call_readers.h"

#include <algorithm>
#include <array>

namespace foretoken {
namespace {

constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kConstrain = "<|constrain|>";
constexpr std::array<std::string_view, 7> kMarks = {kChannel,  kStart,     kMessage,    kConstrain,
                                                    "<|end|>", "<|call|>", "<|return|>"};
constexpr std::string_view kRecipient = "to=functions.";

// What stands in a header behind `mark`, up to a space or the next mark; empty where nothing does.
std::string_view WordBehind(std::string_view header, std::string_view mark) {
  const std::size_t at = header.find(mark);
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + mark.size());
  return header.substr(0, header.find_first_of(" <\n"));
}

}  // namespace

void HarmonyReader::Push(char c, PartList* parts) {
  held_ += c;
  while (!held_.empty()) {
    if (TakeMark(parts)) return;
    const auto begins = [&](std::string_view mark) { return mark.starts_with(held_); };
    if (std::ranges::any_of(kMarks, begins)) return;
    Say(held_.front(), parts);
    held_.erase(0, 1);
  }
}

bool HarmonyReader::TakeMark(PartList* parts) {
  if (std::ranges::find(kMarks, held_) == kMarks.end()) return false;
  if (held_ == kMessage && in_header_) {
    EndHeader(parts);
  } else if (held_ == kChannel || held_ == kStart || held_ == kConstrain) {
    if (!in_header_) header_.clear();
    in_header_ = true;
    header_ += held_;
  } else {
    in_header_ = true;
    header_.clear();
  }
  held_.clear();
  return true;
}

void HarmonyReader::EndHeader(PartList* parts) {
  const std::string_view function = WordBehind(header_, kRecipient);
  kind_ = ChatPart::Kind::kContent;
  if (!function.empty() && calls_) {
    parts->BeginCall(std::string(function));
    kind_ = ChatPart::Kind::kArguments;
  } else if (WordBehind(header_, kChannel) == "analysis" && parts_reasoning_) {
    kind_ = ChatPart::Kind::kReasoning;
  }
  in_header_ = false;
  first_ = false;
  header_.clear();
}

void HarmonyReader::Say(char c, PartList* parts) {
  // An answer without a header is said as it is.
  if (in_header_ && first_ && header_.empty() && c != ' ') in_header_ = false;
  if (in_header_) {
    header_ += c;
    return;
  }
  first_ = false;
  parts->Add(kind_, {&c, 1});
}

void HarmonyReader::Finish(PartList* parts) {
  for (const char c : held_) Say(c, parts);
  held_.clear();
}

}  // namespace foretoken
