#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/json_schema.h"
#include "text/grammar/automaton/automaton.h"
#include "text/grammar/automaton/state_graph.h"
#include "text/grammar/grammar.h"
#include "text/grammar/tokens/grammar_constraint.h"

namespace {

using foretoken::ConstraintVocabulary;
using foretoken::GrammarConstraint;
using foretoken::StateGraph;

// A token per byte, and some of two; token 0 ends the text.
std::shared_ptr<const ConstraintVocabulary> Vocabulary() {
  std::vector<std::string> texts = {""};
  for (int byte = 0; byte < 256; ++byte) texts.push_back(std::string(1, static_cast<char>(byte)));
  for (const char first : {'a', '"', ' ', '1'}) {
    for (const char second : {'a', '"', ',', '0'}) texts.push_back({first, second});
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return std::make_shared<ConstraintVocabulary>(
      ConstraintVocabulary{.trie = foretoken::TokenTrie(views), .end_tokens = {0}});
}

// Masks made in pieces are those made at once, no piece takes much more than it was allowed, and
// what one allows can follow.
void UseMasks(const std::string& text) {
  static const auto vocabulary = Vocabulary();
  const auto constraint = GrammarConstraint::Create(text, vocabulary);
  const auto again = GrammarConstraint::Create(text, vocabulary);
  if (constraint.ok() != again.ok()) std::abort();
  if (!constraint.ok()) return;
  foretoken::GrammarCursor pieces(*constraint, false);
  foretoken::GrammarCursor whole(*again, false);
  constexpr std::int64_t kPiece = 2000;
  // At its end: the first transitions of a walk, the return before it, and their expansion.
  constexpr std::int64_t kMost = kPiece + 8 * StateGraph::kMaxByteSteps;
  for (int i = 0; i < 8; ++i) {
    for (bool done = false; !done;) {
      std::int64_t left = kPiece;
      done = pieces.Prepare({}, &left);
      if (kPiece - left > kMost) std::abort();
    }
    const auto mask = whole.Mask({});
    if (!std::ranges::equal(mask, pieces.Mask({}))) std::abort();
    if (whole.Refused({}) != pieces.Refused({})) std::abort();
    foretoken::Token token = vocabulary->trie.vocabulary() - 1;
    while (token > 0 && (mask[token / 64] >> token % 64 & 1) == 0) --token;
    if (token == 0) return;
    pieces.Push(token);
    whole.Push(token);
    if (pieces.MayEnd() != whole.MayEnd()) std::abort();
    if (pieces.MayContinue() != whole.MayContinue()) std::abort();
  }
}

// A text that a grammar begins must be one that it can end, along its shortest way as well.
void Use(std::string_view text, bool from_schema) {
  const auto grammar = foretoken::ParseGrammar(text);
  if (!grammar.ok()) {
    // What the schema writer makes may be too large, but it is well-formed.
    if (grammar.error().message.empty() || (from_schema && text.size() < 200'000)) std::abort();
    return;
  }
  const auto automaton = foretoken::Automaton::Compile(*grammar, 16);
  if (!automaton.ok()) {
    if (automaton.error().message.empty()) std::abort();
    return;
  }
  foretoken::StateGraph graph(&*automaton);
  auto state = graph.start();
  if (state == foretoken::StateGraph::kDead) return;  // Too ambiguous from the start.
  for (int i = 0; i < 64; ++i) {
    if (!graph.MayEnd(state) && !graph.MayContinue(state)) std::abort();
    if (!graph.MayContinue(state)) return;
    bool moved = false;
    for (int byte = 0; byte < 256 && !moved; ++byte) {
      const auto next = graph.Next(state, static_cast<std::uint8_t>((byte * 37 + i) & 0xFF));
      // Too ambiguous a grammar may end in no text at all: StateGraph says so.
      moved =
          next != foretoken::StateGraph::kDead && (graph.MayEnd(next) || graph.MayContinue(next));
      if (moved) state = next;
    }
    if (!moved) return;
  }
}

}  // namespace

// A schema where it begins like one, else a grammar.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!text.starts_with('{')) {
    Use(text, false);
    UseMasks(std::string(text));
    return 0;
  }
  const auto grammar = foretoken::JsonSchemaGrammar(text);
  if (!grammar.ok() && grammar.error().message.empty()) std::abort();
  if (grammar.ok()) Use(*grammar, true);
  return 0;
}
