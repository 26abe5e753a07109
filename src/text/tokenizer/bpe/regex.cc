#include "text/tokenizer/bpe/regex.h"

#include <cstdint>
#include <string>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/text/utf8.h"

namespace foretoken {
namespace {

constexpr std::size_t kMaxPattern = 4096;
constexpr std::uint32_t kMaxNesting = 50;
constexpr std::uint32_t kMatchLimit = 10'000'000;
constexpr std::uint32_t kHeapLimitKib = 64 << 10;
constexpr std::size_t kJitStackStart = 32 << 10;
constexpr std::size_t kJitStackMax = 1 << 20;

/// What one thread needs to match; costly to make and not to be shared.
struct MatchState {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr);

  MatchState() {
    FT_CHECK(data != nullptr && context != nullptr);
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_heap_limit(context, kHeapLimitKib);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~MatchState() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;
};

/// Writes \s and \S as the property White_Space, which they mean to the tokenizers' own engines;
/// to PCRE2 they also hold U+180E.
std::string WithUnicodeSpaces(std::string_view pattern) {
  std::string text;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view escape = pattern.substr(i, 2);
    if (escape == "\\s") {
      text += "\\p{White_Space}";
      ++i;
    } else if (escape == "\\S") {
      text += "\\P{White_Space}";
      ++i;
    } else if (pattern[i] == '\\') {
      text += escape;
      ++i;
    } else {
      text += pattern[i];
    }
  }
  return text;
}

std::string Message(int error) {
  PCRE2_UCHAR message[256];
  pcre2_get_error_message(error, message, sizeof(message));
  return reinterpret_cast<const char*>(message);
}

}  // namespace

void Regex::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Result<Regex> Regex::Compile(std::string_view pattern, bool literal) {
  if (pattern.size() > kMaxPattern) {
    return Invalid("a pattern has {} bytes; at most {} are accepted", pattern.size(), kMaxPattern);
  }
  const std::string text = literal ? std::string(pattern) : WithUnicodeSpaces(pattern);
  std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  if (literal) options = PCRE2_UTF | PCRE2_LITERAL;
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  FT_CHECK(context != nullptr);
  pcre2_set_parens_nest_limit(context.get(), kMaxNesting);
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), options,
                                   &error, &place, context.get());
  if (code == nullptr) {
    return Invalid("the pattern '{}' does not compile: {}", pattern, Message(error));
  }
  Regex regex(code);
  // Without JIT, matching is slower but the same.
  (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);

  // Patterns that explode do so on repetitions; better refused now than when a user's text comes.
  // The tail holds what a pattern may require, or PCRE2 would not even try.
  std::string tail = "\x01";
  for (char c = ' '; c <= '~'; ++c) tail += c;
  for (const char unit : {'a', ' ', '1', '.', '\n'}) {
    std::size_t begin = 0;
    std::size_t end = 0;
    if (regex.Find(std::string(48, unit) + tail, 0, &begin, &end) == Found::kLimit) {
      return Invalid("the pattern '{}' takes too many steps to match short texts", pattern);
    }
  }
  return regex;
}

Regex::Found Regex::Find(std::string_view text, std::size_t offset, std::size_t* begin,
                         std::size_t* end) const {
  thread_local MatchState state;
  while (offset < text.size()) {
    const int result =
        pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), offset,
                    PCRE2_NO_UTF_CHECK, state.data, state.context);
    if (result == PCRE2_ERROR_NOMATCH) return Found::kNone;
    if (result < 0) return Found::kLimit;
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(state.data);
    // An empty match cuts nothing; \K may even give one that runs backwards.
    if (range[0] >= offset && range[1] > range[0]) {
      *begin = range[0];
      *end = range[1];
      return Found::kMatch;
    }
    offset += ReadUtf8(text.substr(offset)).size;
  }
  return Found::kNone;
}

}  // namespace foretoken
