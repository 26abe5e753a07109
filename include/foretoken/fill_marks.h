#pragma once

#include <span>
#include <string_view>

#include "foretoken/types.h"

namespace foretoken {

class Tokenizer;

/// The tokens by which a model is asked to fill a gap in a text, as code models were trained to; -1
/// where a vocabulary has none of that kind.
struct FillMarks {
  Token prefix = -1;      ///< Before what stands in front of the gap,
  Token suffix = -1;      ///< before what stands behind it,
  Token middle = -1;      ///< and before what fills it.
  Token pad = -1;         ///< Of training; ends what fills a gap.
  Token repository = -1;  ///< Before the name of a repository,
  Token file = -1;        ///< and before that of each of its files.

  /// Whether gaps can be filled.
  bool complete() const { return prefix >= 0 && suffix >= 0 && middle >= 0; }
};

/// The marks of a vocabulary, by the names that models have for them.
FillMarks FindFillMarks(const Tokenizer& tokenizer);
FillMarks FindFillMarks(std::span<const std::string_view> names);

}  // namespace foretoken
