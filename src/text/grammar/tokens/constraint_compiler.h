#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/grammar/tokens/grammar_constraint.h"

namespace foretoken {

/// Compiles grammars for one model's vocabulary and remembers the latest, since requests tend to
/// come with the same ones. Thread-safe; the constraints it returns are not (TokenConstraint): use
/// one compiler per engine. Compiles one grammar at a time, however many are asked for at once, so
/// that costly ones cannot take every core; grammars that it remembers do not wait for that.
class ConstraintCompiler {
 public:
  /// `make_vocabulary` is called when the first grammar comes.
  explicit ConstraintCompiler(std::function<ConstraintVocabulary()> make_vocabulary)
      : make_vocabulary_(std::move(make_vocabulary)) {}

  Result<std::shared_ptr<TokenConstraint>> Compile(std::string_view grammar);

 private:
  std::shared_ptr<TokenConstraint> Remembered(std::string_view grammar);

  std::mutex compiling_;  // Guards the next two.
  std::function<ConstraintVocabulary()> make_vocabulary_;
  std::shared_ptr<const ConstraintVocabulary> vocabulary_;

  std::mutex mutex_;
  std::vector<std::shared_ptr<TokenConstraint>> recent_;  // Latest last.
};

}  // namespace foretoken
