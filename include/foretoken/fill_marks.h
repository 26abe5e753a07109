#pragma once

#include <span>
#include <string_view>

#include "foretoken/types.h"

namespace foretoken {

class Tokenizer;

/// The tokens by which a model is asked to fill a gap in a text, as code models were trained to; -1
/// where a vocabulary has none of that kind.
struct FillMarks {
  Token prefix = -1;      ///< Stands before the text in front of the gap.
  Token suffix = -1;      ///< Stands before the text behind the gap.
  Token middle = -1;      ///< Stands before what fills the gap.
  Token pad = -1;         ///< The padding token of training; it ends what fills a gap.
  Token repository = -1;  ///< Stands before the name of a repository.
  Token file = -1;        ///< Stands before the name of each file of a repository.

  /// Whether gaps can be filled.
  bool complete() const { return prefix >= 0 && suffix >= 0 && middle >= 0; }
};

/// The marks of a vocabulary, by the names that models have for them.
FillMarks FindFillMarks(const Tokenizer& tokenizer);
FillMarks FindFillMarks(std::span<const std::string_view> names);

}  // namespace foretoken
