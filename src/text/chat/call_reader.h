#pragma once

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

}  // namespace foretoken
