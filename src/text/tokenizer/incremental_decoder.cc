#include "base/text/utf8.h"
#include "foretoken/tokenizer.h"

namespace foretoken {

std::string IncrementalDecoder::Push(Token token) {
  std::string_view bytes = tokenizer_->TokenBytes(token);
  if (bytes.empty()) return {};
  if (at_start_) {
    at_start_ = false;
    if (tokenizer_->DropsLeadingSpace() && bytes.front() == ' ') bytes.remove_prefix(1);
  }
  pending_ += bytes;

  std::string text;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Step step = ReadUtf8(rest);
    if (step.kind == Utf8Step::kIncomplete) break;
    text += step.kind == Utf8Step::kCharacter ? rest.substr(0, step.size) : kReplacementCharacter;
    rest.remove_prefix(step.size);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return text;
}

std::string IncrementalDecoder::Finish() {
  std::string text(pending_.empty() ? std::string_view() : kReplacementCharacter);
  pending_.clear();
  return text;
}

}  // namespace foretoken
