#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/result.h"

struct pcre2_real_code_8;

namespace foretoken {

/// A compiled pattern of a pre-tokeniser (PCRE2 with Unicode properties, JIT where there is one).
/// Work and memory of a match are bounded. Thread-safe.
class Regex {
 public:
  enum class Found { kMatch, kNone, kLimit };

  /// Compiles `pattern`, taken to the letter with `literal`. Refuses patterns that do not compile
  /// and those that reach the limits on short texts.
  static Result<Regex> Compile(std::string_view pattern, bool literal);

  /// The first non-empty match in the valid UTF-8 `text` at or after `offset`. kLimit: the search
  /// was given up.
  Found Find(std::string_view text, std::size_t offset, std::size_t* begin, std::size_t* end) const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };

  explicit Regex(pcre2_real_code_8* code) : code_(code) {}

  std::unique_ptr<pcre2_real_code_8, Free> code_;
};

}  // namespace foretoken
