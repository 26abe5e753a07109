#include "core/model/drafters/drafted_tokens.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace foretoken {
namespace {

// The tensor of that name, of so many elements of a dtype; empty where there is none.
Result<std::span<const std::byte>> Elements(const Checkpoint& folder, const char* name,
                                            std::string_view dtype, std::size_t size, int count) {
  const auto found = folder.others.find(name);
  const bool other = folder.Find(name) != nullptr;
  if (found == folder.others.end() && !other) return std::span<const std::byte>();
  const bool fits = !other && found->second.dtype == dtype &&
                    found->second.data.size() == size * static_cast<std::size_t>(count);
  if (fits) return found->second.data;
  return Invalid("{}: tensor {} must have {} elements of dtype {}, one for each token",
                 folder.path.string(), name, count, dtype);
}

// The target's tokens where each is so much more than the drafter's, or that itself; none where
// that cannot be: two are alike, one is beyond the vocabulary, or `marked` has others.
std::optional<std::vector<Token>> TokensOf(const std::vector<std::int64_t>& numbers, bool offsets,
                                           int vocabulary, std::span<const std::byte> marked) {
  std::vector<Token> tokens;
  std::vector<bool> said(static_cast<std::size_t>(vocabulary), false);
  for (std::size_t own = 0; own < numbers.size(); ++own) {
    const std::int64_t number = numbers[own];
    if (number < -vocabulary || number >= vocabulary) return std::nullopt;
    const std::int64_t token = offsets ? static_cast<std::int64_t>(own) + number : number;
    if (token < 0 || token >= vocabulary) return std::nullopt;
    const auto place = static_cast<std::size_t>(token);
    if (said[place]) return std::nullopt;
    if (!marked.empty() && marked[place] == std::byte{0}) return std::nullopt;
    said[place] = true;
    tokens.push_back(static_cast<Token>(token));
  }
  return tokens;
}

}  // namespace

Result<std::shared_ptr<const Translation>> DraftedTokens(const Checkpoint& folder, int drafted,
                                                         const ModelConfig& target) {
  const std::string where = folder.path.string();
  FT_ASSIGN_OR_RETURN(const auto d2t,
                      Elements(folder, "d2t", "I64", sizeof(std::int64_t), drafted));
  FT_ASSIGN_OR_RETURN(const auto t2d, Elements(folder, "t2d", "BOOL", 1, target.vocabulary));
  if (drafted > target.vocabulary) {
    return Invalid("{}: drafts {} tokens, but its target has {}", where, drafted,
                   target.vocabulary);
  }
  if (d2t.empty()) {
    if (drafted == target.vocabulary) return std::shared_ptr<const Translation>();
    return Invalid("{}: lacks tensor d2t, which says which {} of the target's {} tokens it drafts",
                   where, drafted, target.vocabulary);
  }
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(drafted));
  std::memcpy(numbers.data(), d2t.data(), d2t.size());
  const auto marks =
      std::ranges::count_if(t2d, [](std::byte mark) { return mark != std::byte{0}; });
  std::optional<std::vector<Token>> tokens;
  if (t2d.empty() || marks == drafted) {
    const bool gguf = folder.gguf.has_value();  // Whose numbers are always tokens.
    if (!gguf) tokens = TokensOf(numbers, /*offsets=*/true, target.vocabulary, t2d);
    if (!tokens) tokens = TokensOf(numbers, /*offsets=*/false, target.vocabulary, t2d);
  }
  if (!tokens) {
    return Invalid("{}: tensor d2t does not name {} different tokens of the target's {}{}", where,
                   drafted, target.vocabulary, t2d.empty() ? "" : ", those that t2d marks");
  }
  if (drafted == target.vocabulary && std::ranges::is_sorted(*tokens)) {
    return std::shared_ptr<const Translation>();
  }
  auto translation = std::make_shared<Translation>();
  translation->read.resize(static_cast<std::size_t>(target.vocabulary));
  std::iota(translation->read.begin(), translation->read.end(), 0);
  translation->said.assign(translation->read.size(), -1);
  for (std::size_t own = 0; own < tokens->size(); ++own) {
    translation->said[static_cast<std::size_t>((*tokens)[own])] = static_cast<Token>(own);
  }
  translation->bos = target.bos;
  translation->eos = target.eos;
  return std::shared_ptr<const Translation>(std::move(translation));
}

}  // namespace foretoken
