#pragma once

#include <string>
#include <string_view>

#include "foretoken/chat_format.h"
#include "text/chat/call_reader.h"

namespace foretoken {

/// Reads answers of gpt-oss byte by byte: messages on channels, each with a header that says which
/// and, for calls, whom it is to.
class HarmonyReader {
 public:
  explicit HarmonyReader(const ChatReading& reading)
      : calls_(!reading.tools.empty()), parts_reasoning_(!reading.format.reasoning.close.empty()) {}

  void Push(char c, PartList* parts);
  void Finish(PartList* parts);

 private:
  bool TakeMark(PartList* parts);
  void EndHeader(PartList* parts);
  void Say(char c, PartList* parts);

  const bool calls_;
  const bool parts_reasoning_;
  bool in_header_ = true;
  bool first_ = true;                               // Nothing was said or thought yet.
  std::string header_;                              // Up to where it is read.
  std::string held_;                                // May become a mark.
  ChatPart::Kind kind_ = ChatPart::Kind::kContent;  // The kind of the message at hand.
};

}  // namespace foretoken
