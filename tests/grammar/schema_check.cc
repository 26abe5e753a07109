// Says which texts a schema's grammar lets through. Reads lines of JSON, {"schema": TEXT, "texts":
// [[TEXT, ...], ...]}, and answers each with {"refused": MESSAGE} or {"accepted": [BOOLEAN, ...]}:
// whether any text of each list matches as a whole.

#include <iostream>
#include <string>

#include "foretoken/json_schema.h"
#include "json/json.h"
#include "text/grammar/automaton/automaton.h"
#include "text/grammar/automaton/state_graph.h"
#include "text/grammar/grammar.h"
#include "text/grammar/unique/unique_lists.h"

namespace foretoken {
namespace {

constexpr int kHorizon = 16;

Result<Automaton> Compile(const std::string& schema) {
  FT_ASSIGN_OR_RETURN(const std::string text, JsonSchemaGrammar(schema));
  FT_ASSIGN_OR_RETURN(const Grammar grammar, ParseGrammar(text));
  return Automaton::Compile(grammar, kHorizon);
}

Json Answer(const Json& line) {
  const Result<Automaton> automaton = Compile(line["schema"]);
  if (!automaton.ok()) return {{"refused", automaton.error().message}};
  StateGraph graph(&*automaton);
  Json accepted = Json::array();
  for (const Json& texts : line["texts"]) {
    bool any = false;
    for (const Json& text : texts) {
      any = any || Matches(text.text(), &graph);
    }
    accepted.push_back(any);
  }
  return {{"accepted", accepted}};
}

}  // namespace
}  // namespace foretoken

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << foretoken::Answer(foretoken::Json::Parse(line)).dump() << std::endl;
  }
}
