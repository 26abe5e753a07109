#pragma once

#include <string>
#include <string_view>

#include "text/chat/call_reader.h"

namespace foretoken {

/// Finds the end of a JSON value that comes byte by byte. It looks at brackets and strings only:
/// whether the value is one is for who uses it to find out.
class JsonValueEnd {
 public:
  enum class Place { kInside, kLast, kBehind };
  /// Where `c` stands: in the value, as its last byte, or behind a number or word that ended.
  Place Push(char c);

 private:
  int depth_ = 0;
  bool begun_ = false;
  bool in_string_ = false;
  bool escaped_ = false;
  bool scalar_ = false;
};

/// Reads CallBody::kJson.
class JsonCallReader final : public CallReader {
 public:
  explicit JsonCallReader(const CallForm& form) : form_(form) {}

  Step Push(char c, PartList* parts) override;
  bool Finish(PartList* parts) override;

 private:
  enum class State {
    kBetween,   // Calls, or before the first.
    kClosing,   // Within the closing mark, or what stands before it.
    kBareName,  // A name before its arguments.
    kKeyOrEnd,  // A key of a call's object, or its end.
    kKey,
    kColon,
    kValue,
    kAfterValue,
  };

  Step Between(char c, PartList* parts);
  Step Stray(char c);
  Step Closing(char c);
  Step BareName(char c, PartList* parts);
  Step Key(char c);
  void BeginValue();
  Step Value(char c, PartList* parts);
  Step EndValue(PartList* parts);
  Step AfterValue(char c, PartList* parts);
  Step EndObject(PartList* parts);
  void BeginCall(std::string name, PartList* parts);

  const CallForm& form_;
  State state_ = State::kBetween;
  int calls_ = 0;        // Calls that have begun.
  bool listed_ = false;  // The calls stand in a list.
  JsonValueEnd value_;   // Finds the end of the key or value at hand.
  // The key or value at hand as far as it is kept; marks and bare names as well.
  std::string text_;
  std::string key_;       // The key whose value comes.
  bool streams_ = false;  // The value at hand is passed on as it comes.

  // The call at hand.
  bool bare_ = false;   // Its name stands before its arguments.
  bool named_ = false;  // It has begun.
  bool has_arguments_ = false;
  std::string arguments_;  // Where they were not passed on as they came.
};

}  // namespace foretoken
