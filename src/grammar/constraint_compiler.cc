#include "grammar/constraint_compiler.h"

#include <algorithm>

namespace foretoken {
namespace {

constexpr std::size_t kRemembered = 16;

}  // namespace

Result<std::shared_ptr<TokenConstraint>> ConstraintCompiler::Compile(std::string_view grammar) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(recent_.begin(), recent_.end(), [&](const auto& constraint) {
    return constraint->grammar() == grammar;
  });
  if (known != recent_.end()) {
    std::rotate(known, known + 1, recent_.end());
    return recent_.back();
  }
  if (vocabulary_ == nullptr) {
    vocabulary_ = std::make_shared<const ConstraintVocabulary>(make_vocabulary_());
  }
  FT_ASSIGN_OR_RETURN(auto constraint, TokenConstraint::Create(std::string(grammar), vocabulary_));
  if (recent_.size() == kRemembered) recent_.erase(recent_.begin());
  recent_.push_back(constraint);
  return constraint;
}

}  // namespace foretoken
