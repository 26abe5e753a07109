#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "foretoken/json_schema.h"
#include "grammar/automaton.h"
#include "grammar/grammar.h"
#include "grammar/state_graph.h"

namespace {

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
    return 0;
  }
  const auto grammar = foretoken::JsonSchemaGrammar(text);
  if (!grammar.ok() && grammar.error().message.empty()) std::abort();
  if (grammar.ok()) Use(*grammar, true);
  return 0;
}
