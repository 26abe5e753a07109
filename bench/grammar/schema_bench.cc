// What schemas cost on a real vocabulary, for tools/measure_schemas.py: schema_bench
// TOKENIZER_FOLDER reads lines of JSON, {"schema": TEXT, "tokens": [ID, ...]}, and answers each
// with {"compile_us": NUMBER, "mask_us": [NUMBER, ...]}, of a grammar made anew: the mask before
// each token and after the last; or with {"refused": MESSAGE}.

#include <chrono>
#include <iostream>
#include <string>

#include "foretoken/json_schema.h"
#include "json/json.h"
#include "text/grammar/tokens/grammar_constraint.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {
namespace {

using Clock = std::chrono::steady_clock;

double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

Json Answer(const Json& line, const std::shared_ptr<const ConstraintVocabulary>& vocabulary) {
  const auto schema = line["schema"].get<std::string>();
  const auto begin = Clock::now();
  auto grammar = JsonSchemaGrammar(schema);
  if (!grammar.ok()) return {{"refused", grammar.error().message}};
  auto constraint = GrammarConstraint::Create(std::move(grammar).value(), vocabulary);
  if (!constraint.ok()) return {{"refused", constraint.error().message}};
  Json answer = {{"compile_us", MicrosecondsSince(begin)}, {"mask_us", Json::array()}};
  GrammarCursor cursor(*constraint, false);
  const auto add_mask = [&] {
    const auto before = Clock::now();
    (void)cursor.Mask({});
    answer["mask_us"].push_back(MicrosecondsSince(before));
  };
  for (const Json& token : line["tokens"]) {
    add_mask();
    cursor.Push(token.get<Token>());
  }
  if (!cursor.MayEnd()) return {{"refused", "the text does not match"}};
  add_mask();
  return answer;
}

int Run(const std::string& folder) {
  const auto tokenizer = LoadTokenizerFolder(folder);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.error().message << '\n';
    return 1;
  }
  std::vector<std::string_view> bytes;
  for (Token token = 0; token < (*tokenizer)->vocabulary(); ++token) {
    const bool special = (*tokenizer)->IsSpecial(token);
    bytes.push_back(special ? std::string_view() : (*tokenizer)->TokenBytes(token));
  }
  const auto vocabulary = std::make_shared<const ConstraintVocabulary>(
      ConstraintVocabulary{.trie = TokenTrie(bytes), .end_tokens = (*tokenizer)->eos()});
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << Answer(Json::Parse(line), vocabulary).dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  if (argc == 2) return foretoken::Run(argv[1]);
  std::cerr << "usage: schema_bench TOKENIZER_FOLDER\n";
  return 2;
}
