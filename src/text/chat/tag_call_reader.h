#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/chat/call_reader.h"

namespace foretoken {

/// Reads CallBody::kTags. Arguments are written as JSON: what a schema calls a string, or is no
/// JSON, is a string.
class TagCallReader final : public CallReader {
 public:
  /// Both outlive it.
  TagCallReader(const CallForm& form, std::span<const ChatTool> tools)
      : form_(form), tools_(tools) {}

  Step Push(char c, PartList* parts) override;
  bool Finish(PartList* parts) override;

 private:
  enum class State { kName, kBetween, kKey, kToValue, kValue };

  Step Name(char c, PartList* parts);
  Step Between(PartList* parts);
  void EndValue(PartList* parts);
  bool IsString(std::string_view key) const;

  const CallForm& form_;
  const std::span<const ChatTool> tools_;
  State state_ = State::kName;
  std::string text_;  // Since the latest mark.
  std::string name_;
  std::string key_;
  bool called_ = false;
  bool any_ = false;  // There was an argument.
};

}  // namespace foretoken
