#include "text/grammar/tokens/constraint_compiler.h"

#include <algorithm>

namespace foretoken {
namespace {

constexpr std::size_t kRemembered = 16;

}  // namespace

std::shared_ptr<TokenConstraint> ConstraintCompiler::Remembered(std::string_view grammar) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(recent_.begin(), recent_.end(), [&](const auto& constraint) {
    return constraint->grammar() == grammar;
  });
  if (known == recent_.end()) return nullptr;
  std::rotate(known, known + 1, recent_.end());
  return recent_.back();
}

Result<std::shared_ptr<TokenConstraint>> ConstraintCompiler::Compile(std::string_view grammar) {
  if (auto known = Remembered(grammar)) return known;
  const std::lock_guard compiling(compiling_);
  if (auto known = Remembered(grammar)) return known;  // Made while this call waited.
  if (vocabulary_ == nullptr) {
    vocabulary_ = std::make_shared<const ConstraintVocabulary>(make_vocabulary_());
  }
  FT_ASSIGN_OR_RETURN(auto constraint,
                      GrammarConstraint::Create(std::string(grammar), vocabulary_));
  std::shared_ptr<TokenConstraint> oldest;  // Freed without the lock.
  const std::lock_guard lock(mutex_);
  if (recent_.size() == kRemembered) {
    oldest = std::move(recent_.front());
    recent_.erase(recent_.begin());
  }
  recent_.push_back(constraint);
  return std::shared_ptr<TokenConstraint>(constraint);
}

}  // namespace foretoken
