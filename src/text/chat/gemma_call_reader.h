#pragma once

#include <string>
#include <string_view>

#include "text/chat/call_reader.h"

namespace foretoken {

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

}  // namespace foretoken
