#include "foretoken/request.h"

namespace foretoken {

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfSequence:
      return "end_of_sequence";
    case FinishReason::kStopToken:
      return "stop_token";
    case FinishReason::kStopString:
      return "stop_string";
    case FinishReason::kMaxTokens:
      return "max_tokens";
    case FinishReason::kGrammarEnd:
      return "grammar_end";
    case FinishReason::kGrammarStuck:
      return "grammar_stuck";
    case FinishReason::kContextFull:
      return "context_full";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace foretoken
