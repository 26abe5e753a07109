// Masks of a real vocabulary, named by the folder of a tokenizer in FORETOKEN_TOKENIZER: the first
// mask of every state of a JSON text (its frames may be known), and the same again from the cache.

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "foretoken/json_schema.h"
#include "text/grammar/tokens/grammar_constraint.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {
namespace {

constexpr std::string_view kText =
    "{\"name\": \"A long walk along the river\", \"tags\": [\"river\", \"walk\", \"evening "
    "light\"],"
    " \"stars\": 4, \"price\": 12.5, \"open\": true, \"author\": {\"name\": \"Mrs Jones\","
    " \"born\": 1961, \"city\": null}, \"notes\": [\"She said: \\\"never again\\\".\", \"\"]}";

constexpr std::string_view kSchema = R"({"type":"object","properties":{
    "name":{"type":"string","maxLength":60},"tags":{"type":"array","items":{"type":"string"}},
    "stars":{"type":"integer","minimum":0,"maximum":5},"price":{"type":"number"},
    "open":{"type":"boolean"},"author":{"type":"object","properties":{"name":{"type":"string"},
    "born":{"type":"integer"},"city":{"type":["string","null"]}}},
    "notes":{"type":"array","items":{"type":"string","maxLength":200}}}})";

std::shared_ptr<const ConstraintVocabulary> Vocabulary(std::vector<Token>* tokens) {
  const char* const folder = std::getenv("FORETOKEN_TOKENIZER");
  if (folder == nullptr) return nullptr;
  const auto tokenizer = LoadTokenizerFolder(folder);
  if (!tokenizer.ok()) return nullptr;
  std::vector<std::string_view> bytes;
  for (Token token = 0; token < (*tokenizer)->vocabulary(); ++token) {
    const bool special = (*tokenizer)->IsSpecial(token);
    bytes.push_back(special ? std::string_view() : (*tokenizer)->TokenBytes(token));
  }
  *tokens = (*tokenizer)->Encode(kText, false, false);
  return std::make_shared<const ConstraintVocabulary>(
      ConstraintVocabulary{.trie = TokenTrie(bytes), .end_tokens = (*tokenizer)->eos()});
}

std::string GrammarOf(int which) {
  return which == 0 ? JsonObjectGrammar() : *JsonSchemaGrammar(kSchema);
}

void MasksOfOneText(benchmark::State& state) {
  std::vector<Token> tokens;
  const auto vocabulary = Vocabulary(&tokens);
  if (vocabulary == nullptr) {
    state.SkipWithError("set FORETOKEN_TOKENIZER to a folder with a tokenizer");
    return;
  }
  const bool fresh = state.range(1) == 0;
  auto constraint = *GrammarConstraint::Create(GrammarOf(state.range(0)), vocabulary);
  for (auto _ : state) {
    if (fresh) {
      state.PauseTiming();
      constraint = *GrammarConstraint::Create(GrammarOf(state.range(0)), vocabulary);
      state.ResumeTiming();
    }
    GrammarCursor cursor(constraint, true);
    for (const Token token : tokens) {
      benchmark::DoNotOptimize(cursor.Mask({}).data());
      cursor.Push(token);
    }
    if (!cursor.MayEnd()) state.SkipWithError("the text does not match");
  }
  state.counters["us_per_token"] =
      benchmark::Counter(static_cast<double>(state.iterations() * tokens.size()) / 1e6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.SetLabel(fmt::format("{}, {}, {} tokens", state.range(0) == 0 ? "any object" : "schema",
                             fresh ? "new grammar" : "known grammar",
                             vocabulary->trie.vocabulary()));
}
BENCHMARK(MasksOfOneText)->ArgsProduct({{0, 1}, {0, 1}})->Unit(benchmark::kMillisecond);

// Grammars that read a text in ever more ways; of single letters "a", until the grammar ends.
std::string Ambiguous(int which) {
  const auto doubling = [](const std::string& last) {
    std::string text = "root ::= a0\n";
    for (int i = 0; i < 20; ++i) text += fmt::format("a{} ::= a{} a{}\n", i, i + 1, i + 1);
    return text + "a20 ::= " + last;
  };
  switch (which) {
    case 0:
      return "root ::= (\"a\"?){5000}";
    case 1:
      return doubling("\"a\"");
    case 2:
      return doubling("\"a\"?");
    case 3:
      return "root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"a\" | \"b\" | \"\"";
    default:
      return "root ::= [ab]* \"a\" [ab]{100}";
  }
}

void AmbiguousGrammars(benchmark::State& state) {
  std::vector<Token> tokens;
  const auto vocabulary = Vocabulary(&tokens);
  Token a = 0;
  while (vocabulary != nullptr && a < vocabulary->trie.vocabulary() &&
         vocabulary->trie.BytesOf(a) != "a") {
    ++a;
  }
  if (vocabulary == nullptr || a == vocabulary->trie.vocabulary()) {
    state.SkipWithError("set FORETOKEN_TOKENIZER to a folder with a tokenizer");
    return;
  }
  double worst_ms = 0;
  for (auto _ : state) {
    GrammarCursor cursor(*GrammarConstraint::Create(Ambiguous(state.range(0)), vocabulary), false);
    for (int i = 0; i < 4096 && cursor.MayContinue(); ++i) {
      const auto begin = std::chrono::steady_clock::now();
      benchmark::DoNotOptimize(cursor.Mask({}).data());
      cursor.Push(a);
      const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin;
      worst_ms = std::max(worst_ms, ms.count());
    }
  }
  state.counters["worst_token_ms"] = worst_ms;
}
BENCHMARK(AmbiguousGrammars)->DenseRange(0, 4)->Unit(benchmark::kMillisecond);

void Compile(benchmark::State& state) {
  std::vector<Token> tokens;
  const auto vocabulary = Vocabulary(&tokens);
  if (vocabulary == nullptr) {
    state.SkipWithError("set FORETOKEN_TOKENIZER to a folder with a tokenizer");
    return;
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(GrammarConstraint::Create(GrammarOf(state.range(0)), vocabulary).ok());
  }
}
BENCHMARK(Compile)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace foretoken

BENCHMARK_MAIN();
