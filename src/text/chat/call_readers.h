#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/chat_format.h"

namespace foretoken {

/// Parts of an answer as they are found; neighbours of one kind are joined.
class PartList {
 public:
  explicit PartList(std::vector<ChatPart>* parts) : parts_(parts) {}

  void Add(ChatPart::Kind kind, std::string_view text);
  void BeginCall(std::string name) { parts_->push_back({ChatPart::Kind::kCall, std::move(name)}); }

 private:
  std::vector<ChatPart>* const parts_;
};

/// Reads calls, byte by byte, from behind their opening mark on.
class CallReader {
 public:
  enum class Step {
    kGoesOn,
    kEnded,        ///< With this byte.
    kEndedBefore,  ///< This byte belongs to what follows.
    kNoCall,       ///< What came so far, this byte included, is no call after all.
  };
  virtual ~CallReader() = default;

  virtual Step Push(char c, PartList* parts) = 0;
  /// The text ends. False where no call has begun.
  virtual bool Finish(PartList* parts) = 0;
};

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

/// Reads CallBody::kGemma: call:N{key:<|"|>text<|"|>,other:1}. Arguments are passed on as JSON.
class GemmaCallReader final : public CallReader {
 public:
  /// `form` outlives it.
  explicit GemmaCallReader(const CallForm& form) : form_(form) {}

  Step Push(char c, PartList* parts) override;
  bool Finish(PartList* parts) override;

 private:
  enum class State { kName, kArguments, kClosing };

  Step Name(char c, PartList* parts);
  void Argument(char c, PartList* parts);
  void Bare(char c, PartList* parts);
  void EndWord(bool key, PartList* parts);

  const CallForm& form_;
  State state_ = State::kName;
  bool called_ = false;
  bool in_string_ = false;
  int depth_ = 0;
  std::string text_;  // The name, or the latest of what stands behind the arguments.
  std::string held_;  // May become a quotation mark.
  std::string word_;  // Outside of strings: a key, a number, true.
};

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

/// Bytes of a function's name at most, with what stands before it.
inline constexpr std::size_t kMaxName = 512;

inline bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// A character of a function's name.
inline bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

}  // namespace foretoken
