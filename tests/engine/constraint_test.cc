// Constrained decoding through the whole engine: every mode emits AR's tokens, and every output
// matches.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/json.h"

#include "base/files/temporary_testing.h"
#include "foretoken/json_schema.h"
#include "tests/engine/engine_testing.h"
#include "tests/engine/random_schema_testing.h"
#include "text/grammar/automaton/state_graph.h"

namespace foretoken {
namespace {

constexpr const char* kStoryGrammar = R"(
root ::= sentence{2,4} "The end."
sentence ::= [A-Z] [a-z]{0,8} (" " word){2,9} ("." | "!" | "?") " "
word ::= [a-z]{1,9} | "\"" word "\""
)";

// The mark of thoughts is said before them, or was in the prompt.
constexpr const char* kThoughtsGrammar = R"gbnf(
@reasoning 9 "(" ")" " Enough."
root ::= "(" [^()]* ") " [A-Z] [a-z ,]{8,60} "."
)gbnf";
constexpr const char* kBegunThoughtsGrammar = R"gbnf(
@reasoning 14 begun "(" "--)"
root ::= .*
)gbnf";

std::shared_ptr<TokenConstraint> Compile(const std::string& grammar) {
  auto constraint = BundledTarget()->constraints->Compile(grammar);
  EXPECT_TRUE(constraint.ok()) << constraint.error().message;
  return *constraint;
}

bool MatchesText(const std::string& grammar, const std::string& text, bool whole) {
  const auto automaton = Automaton::Compile(*ParseGrammar(grammar), 16);
  StateGraph graph(&*automaton);
  const auto state = graph.Next(graph.start(), text);
  return whole ? graph.MayEnd(state) : state != StateGraph::kDead;
}

struct ConstraintSetting {
  std::string name;
  SamplingParams sampling;
  std::string grammar;
  StopRules stop{.max_tokens = 80};
  bool continues_text = true;
};

std::vector<ConstraintSetting> ConstraintSettings() {
  const std::string json = JsonObjectGrammar();
  SamplingParams shaped{.temperature = 0.9F, .top_k = 40, .top_p = 0.9F, .seed = 5};
  shaped.repetition_penalty = 1.1F;
  shaped.logit_bias = {{300, 2.0F}};
  return {{"greedy story", {}, kStoryGrammar},
          {"story", {.temperature = 1.0F, .seed = 3}, kStoryGrammar},
          {"answer", {.temperature = 0.8F, .seed = 4}, kStoryGrammar, {.max_tokens = 80}, false},
          {"json", {.temperature = 1.0F, .seed = 7}, json},
          {"shaped", shaped, kStoryGrammar},
          {"thoughts", {.temperature = 0.8F, .seed = 6}, kThoughtsGrammar},
          {"begun thoughts", {.temperature = 0.6F, .seed = 2}, kBegunThoughtsGrammar},
          {"stop string",
           {.temperature = 0.7F, .seed = 9},
           kStoryGrammar,
           {.max_tokens = 80, .stop_strings = {"and", "ed "}}}};
}

// `preempt_every` so many steps a sequence must make room; 0: none.
std::vector<Collector::Output> RunAll(
    Engine& engine, const ConstraintSetting& setting,
    const std::vector<std::vector<Token>>& prompts = StoryPrompts(), int preempt_every = 0) {
  Collector collector;
  std::vector<SequenceId> ids;
  for (const auto& prompt : prompts) {
    SamplingParams sampling = setting.sampling;
    sampling.seed += ids.size();
    sampling.constraint = Compile(setting.grammar);
    const auto id = engine.Submit({.prompt = prompt,
                                   .sampling = sampling,
                                   .stop = setting.stop,
                                   .continues_text = setting.continues_text,
                                   .listener = &collector});
    EXPECT_TRUE(id.ok()) << id.error().message;
    ids.push_back(*id);
  }
  for (int step = 1; engine.Step(); ++step) {
    if (preempt_every > 0 && step % preempt_every == 0) ForcePreemption(engine);
  }
  return Finish(engine, &collector, ids);
}

const std::vector<Collector::Output>& ConstraintTruth(const ConstraintSetting& setting) {
  static std::map<std::string, std::vector<Collector::Output>> known;
  auto& truth = known[setting.name];
  if (truth.empty()) {
    const auto engine =
        MakeEngine(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, BundledTarget(), {});
    truth = RunAll(**engine, setting);
  }
  return truth;
}

struct ConstraintCase {
  std::string name;
  Mode mode;
  EngineConfig options;
  std::int64_t delay_us = 0;
};

void PrintTo(const ConstraintCase& test, std::ostream* out) { *out << test.name; }

class Constrained : public testing::TestWithParam<ConstraintCase> {};

TEST_P(Constrained, EveryTokenEqualsAr) {
  EngineConfig options = GetParam().options;
  options.speculator_delay_us = GetParam().delay_us;
  const auto engine = MakeEngine(GetParam().mode, options, BundledTarget(), BundledDraft());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  int accepted = 0;
  for (const ConstraintSetting& setting : ConstraintSettings()) {
    const auto outputs = RunAll(**engine, setting);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(outputs[i].tokens, ConstraintTruth(setting)[i].tokens) << setting.name << " " << i;
      EXPECT_EQ(outputs[i].text, ConstraintTruth(setting)[i].text) << setting.name << " " << i;
      EXPECT_EQ(outputs[i].reason, ConstraintTruth(setting)[i].reason) << setting.name << " " << i;
      accepted += outputs[i].stats.accepted;
    }
  }
  if (GetParam().mode == Mode::kSd) {
    EXPECT_GT(accepted, 200);  // The draft obeys the grammar too.
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Constrained,
    testing::Values(
        ConstraintCase{"ArBatch4", Mode::kAr, {.max_batch = 4}},
        ConstraintCase{"Sd", Mode::kSd, {.max_batch = 3}},
        ConstraintCase{"Ssd", Mode::kSsd, {.max_batch = 3}},
        ConstraintCase{
            "SsdNgram", Mode::kSsd, {.plan = {.fallback = Fallback::kNgram}, .max_batch = 2}},
        ConstraintCase{"SsdSlowSpeculator", Mode::kSsd, {.max_batch = 2}, 3000},
        ConstraintCase{
            "SsdTinyPool", Mode::kSsd, {.max_batch = 5, .max_context = 160, .kv_tokens = 192}},
        ConstraintCase{"SdTree", Mode::kSd, {.plan = {.tree_width = 3}, .max_batch = 2}},
        ConstraintCase{"SsdTree", Mode::kSsd, {.plan = {.tree_width = 3}, .max_batch = 3}},
        ConstraintCase{
            "SdTreeTinyPool",
            Mode::kSd,
            {.plan = {.tree_width = 3}, .max_batch = 5, .max_context = 160, .kv_tokens = 192}},
        ConstraintCase{"Sssd", Mode::kSssd, {.plan = {.lookahead = 15}, .max_batch = 3}},
        ConstraintCase{"Trie", Mode::kTrie, {.plan = {.lookahead = 7}, .max_batch = 2}},
        ConstraintCase{"Jacobi", {Schedule::kBefore, DrafterId::kJacobi}, {.max_batch = 2}},
        ConstraintCase{"Lookahead", {Schedule::kBefore, DrafterId::kLookahead}, {.max_batch = 3}},
        ConstraintCase{"Recycle",
                       {Schedule::kBefore, DrafterId::kRecycle},
                       {.plan = {.lookahead = 12}, .max_batch = 3}},
        ConstraintCase{"Racer",
                       {Schedule::kBefore, DrafterId::kRacer},
                       {.plan = {.lookahead = 12}, .max_batch = 3}},
        ConstraintCase{"Protocol",
                       {Schedule::kBefore, DrafterId::kProtocol},
                       {.plan = {.lookahead = 12}, .max_batch = 3}},
        ConstraintCase{"Auto", Mode::kAuto, {.max_batch = 3}}),
    [](const auto& test) { return test.param.name; });

TEST(Constraint, OutputsMatchAndEndWithTheGrammar) {
  int ended = 0;
  for (const ConstraintSetting& setting : ConstraintSettings()) {
    for (const Collector::Output& output : ConstraintTruth(setting)) {
      const bool whole = output.reason == FinishReason::kGrammarEnd;
      ended += whole ? 1 : 0;
      // The prompts continue: their text's own leading space would show.
      EXPECT_TRUE(MatchesText(setting.grammar, output.text, whole)) << setting.name << output.text;
    }
  }
  EXPECT_GT(ended, 5);
}

TEST(Constraint, ThoughtsEndWithTheirBudget) {
  for (const ConstraintSetting& setting : ConstraintSettings()) {
    if (setting.grammar != kThoughtsGrammar && setting.grammar != kBegunThoughtsGrammar) continue;
    const bool begun = setting.grammar == kBegunThoughtsGrammar;
    for (const Collector::Output& output : ConstraintTruth(setting)) {
      EXPECT_THAT(output.text, testing::HasSubstr(begun ? "--)" : ")"));
      const std::size_t end = output.text.find(begun ? "--)" : " Enough.)");
      EXPECT_LT(end, begun ? 140 : 90) << output.text;
    }
  }
}

TEST(Constraint, BudgetsHoldThroughPreemptionAndThePrefixCache) {
  const std::vector<Token> prompt = BundledTarget()->tokenizer->Encode(
      "Once upon a time, there was a little girl named Lily. She had a red ball and a blue ball. "
      "She liked to play with her friends in the park every day after school was over.",
      true, false);
  const std::vector<std::vector<Token>> prompts(3, prompt);
  const auto alone =
      MakeEngine(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, BundledTarget(), {});
  const SpeculationPlan tree{.tree_width = 2};
  const std::vector<std::pair<Mode, SpeculationPlan>> plans = {
      {Mode::kAr, {}},    {Mode::kSd, {}},    {Mode::kSd, tree},
      {Mode::kSsd, {}},   {Mode::kSsd, tree}, {Mode::kSssd, {.lookahead = 15}},
      {Mode::kNgram, {}}, {Mode::kAuto, {}}};
  for (const ConstraintSetting& setting : ConstraintSettings()) {
    if (setting.grammar != kThoughtsGrammar && setting.grammar != kBegunThoughtsGrammar) continue;
    const auto truth = RunAll(**alone, setting, prompts);
    for (const auto& [mode, plan] : plans) {
      const auto engine =
          MakeEngine(mode, {.plan = plan, .max_batch = 2}, BundledTarget(), BundledDraft());
      ASSERT_TRUE(engine.ok()) << engine.error().message;
      int preemptions = 0;
      int cached = 0;
      for (int run = 0; run < 2; ++run) {
        const auto outputs = RunAll(**engine, setting, prompts, /*preempt_every=*/5);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          EXPECT_EQ(outputs[i].tokens, truth[i].tokens) << ModeName(mode) << setting.name << i;
          EXPECT_EQ(outputs[i].text, truth[i].text) << ModeName(mode) << setting.name << i;
          cached += run == 0 ? 0 : outputs[i].stats.cached_prompt_tokens;
          preemptions += outputs[i].stats.preemptions;
        }
      }
      EXPECT_GT(preemptions, 2) << ModeName(mode);
      EXPECT_GE(cached, 3 * 32) << ModeName(mode);
    }
  }
}

// The truth, one token right and one wrong per level.
class TreeDrafter : public Drafter {
 public:
  explicit TreeDrafter(std::vector<std::vector<Token>> full) : full_(std::move(full)) {}
  void Propose(std::span<DraftContext> contexts) override {
    for (DraftContext& context : contexts) {
      Proposal& proposal = *context.proposal;
      proposal.Clear();
      for (const auto& tokens : full_) {
        const std::size_t size = context.tokens.size();
        if (tokens.size() < size ||
            !std::ranges::equal(context.tokens, std::span(tokens).first(size))) {
          continue;
        }
        int parent = 0;
        for (std::size_t at = size; at < tokens.size() && proposal.size() + 2 <= context.lookahead;
             ++at) {
          for (const Token token : {(tokens[at] + 7) % 2048, tokens[at]}) {
            proposal.tokens.push_back(token);
            proposal.parents.push_back(static_cast<std::int8_t>(parent));
          }
          parent = proposal.size();
        }
        proposal.source = ProposalSource::kDraft;
        break;
      }
    }
  }
  void Forget(SequenceId) override {}

 private:
  std::vector<std::vector<Token>> full_;
};

TEST(Constraint, TreesAreVerifiedUnderIt) {
  const ConstraintSetting setting = ConstraintSettings()[1];
  std::vector<std::vector<Token>> full = StoryPrompts();
  for (std::size_t i = 0; i < full.size(); ++i) {
    const auto& tokens = ConstraintTruth(setting)[i].tokens;
    full[i].insert(full[i].end(), tokens.begin(), tokens.end());
  }
  LoadedModel* target = BundledTarget();
  Proposers proposers;
  proposers.before[DrafterId::kModel] = std::make_unique<TreeDrafter>(full);
  const auto engine = CreateEngine({.plan = {.mode = Mode::kSd, .lookahead = 12}, .max_batch = 3},
                                   target->model.get(), target->device.get(),
                                   target->tokenizer.get(), std::move(proposers));
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const auto outputs = RunAll(**engine, setting);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(outputs[i].tokens, ConstraintTruth(setting)[i].tokens);
    EXPECT_GT(outputs[i].stats.acceptance_length(), 3);
  }
}

TEST(Constraint, RefusesWhatDoesNotGoWithIt) {
  const auto engine = MakeEngine(Mode::kAr, {.max_batch = 1}, BundledTarget(), {});
  Collector collector;
  SamplingParams sampling;
  sampling.constraint = Compile("root ::= \"a\"");
  const auto id = (*engine)->Submit(
      {.prompt = {1}, .sampling = sampling, .stop = {.ignore_eos = true}, .listener = &collector});
  ASSERT_FALSE(id.ok());
  EXPECT_THAT(id.error().message, testing::HasSubstr("grammar"));
}

// A text of n letters has ever more readings, and none of them may end before the '!'.
constexpr const char* kAmbiguousGrammar = "root ::= x \"!\"\nx ::= [a-zA-Z ,.] x? x?";

TEST(Constraint, AGrammarTooAmbiguousEndsTheSameInEveryMode) {
  const ConstraintSetting setting{.name = "ambiguous",
                                  .sampling = {.temperature = 1.0F, .seed = 8},
                                  .grammar = kAmbiguousGrammar,
                                  .stop = {.max_tokens = 150}};
  const auto& truth = ConstraintTruth(setting);
  for (const Collector::Output& output : truth) {
    EXPECT_EQ(output.reason, FinishReason::kGrammarStuck);
    EXPECT_GT(output.tokens.size(), 5);
  }
  for (const Mode mode : {Mode::kSd, Mode::kSsd}) {
    const auto engine = MakeEngine(mode, {.max_batch = 3}, BundledTarget(), BundledDraft());
    const auto outputs = RunAll(**engine, setting);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(outputs[i].tokens, truth[i].tokens) << ModeName(mode) << i;
      EXPECT_EQ(outputs[i].text, truth[i].text) << ModeName(mode) << i;
      EXPECT_EQ(outputs[i].reason, truth[i].reason) << ModeName(mode) << i;
    }
  }
}

TEST(Constraint, NobodyWaitsForAnothersMasks) {
  const auto engine = MakeEngine(Mode::kAr, {.max_batch = 2}, BundledTarget(), {});
  Collector collector;
  const auto submit = [&](const std::string& grammar) {
    SamplingParams sampling{.temperature = 1.0F, .seed = 2};
    if (!grammar.empty()) sampling.constraint = Compile(grammar);
    return *(*engine)->Submit({.prompt = StoryPrompts()[0],
                               .sampling = sampling,
                               .stop = {.max_tokens = 100},
                               .listener = &collector});
  };
  // Its own text, so that nothing of it is known.
  const SequenceId costly = submit(std::string(kAmbiguousGrammar) + " # new");
  const SequenceId other = submit("");
  int steps = 0;
  while (!collector.outputs[other].finished) {
    ASSERT_TRUE((*engine)->Step());
    ++steps;
  }
  const int tokens = collector.outputs[other].tokens.size();
  EXPECT_LE(steps, tokens + 2);  // Every step after its prompt's gives it a token,
  EXPECT_LT(collector.outputs[costly].tokens.size(), tokens / 2);  // while these take several.
  (*engine)->RunUntilIdle();
  EXPECT_EQ(collector.outputs[costly].reason, FinishReason::kGrammarStuck);
}

struct SchemaCase {
  Json schema;
  std::string grammar;
  std::shared_ptr<TokenConstraint> constraint;
};

std::vector<SchemaCase> RandomSchemas(unsigned count, bool bounded) {
  std::vector<SchemaCase> cases;
  for (unsigned seed = 0; seed < count; ++seed) {
    auto schema = RandomSchema(seed, bounded).Make();
    const auto grammar = JsonSchemaGrammar(schema.dump());
    EXPECT_TRUE(grammar.ok()) << grammar.error().message << "\n" << schema.dump(2);
    cases.push_back({std::move(schema), *grammar, Compile(*grammar)});
  }
  return cases;
}

std::vector<Collector::Output> DecodeSchemas(Mode mode, const std::vector<SchemaCase>& cases,
                                             const StopRules& stop,
                                             const std::shared_ptr<DatastoreTenant>& tenant) {
  const auto engine =
      MakeEngine(mode, {.plan = {.lookahead = mode == Mode::kSssd ? 15 : 6}, .max_batch = 16},
                 BundledTarget(), BundledDraft());
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  const auto prompt = BundledTarget()->tokenizer->Encode("Lily said: ", true, false);
  Collector collector;
  std::vector<SequenceId> ids;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SamplingParams sampling{.temperature = i % 4 == 0 ? 0.0F : 1.0F, .seed = i};
    sampling.constraint = cases[i].constraint;
    ids.push_back(*(*engine)->Submit({.prompt = prompt,
                                      .sampling = sampling,
                                      .stop = stop,
                                      .continues_text = false,
                                      .datastore = tenant,
                                      .learn = mode == Mode::kAr,
                                      .listener = &collector}));
  }
  (*engine)->RunUntilIdle();
  std::vector<Collector::Output> outputs;
  for (const SequenceId id : ids) outputs.push_back(collector.outputs[id]);
  return outputs;
}

double AcceptanceLength(const std::vector<Collector::Output>& outputs) {
  RequestStats sum;
  for (const Collector::Output& output : outputs) {
    sum.output_tokens += output.stats.output_tokens;
    sum.rounds += output.stats.rounds;
  }
  return sum.acceptance_length();
}

bool EndedByItself(const Collector::Output& output) {
  return output.reason == FinishReason::kGrammarEnd ||
         output.reason == FinishReason::kEndOfSequence;
}

TEST(Constraint, OutputsOf500RandomSchemasValidateAndAreTheSameInEveryMode) {
  const auto cases = RandomSchemas(500, /*bounded=*/true);
  const TemporaryFolder folder;
  DatastoreOptions options;
  const Tokenizer& tokenizer = *BundledTarget()->tokenizer;
  options.tokenizer = {"demo-target", tokenizer.fingerprint(), tokenizer.vocabulary()};
  auto datastore = DatastoreDirectory::Open(folder.path(), options, /*learn=*/true);
  ASSERT_TRUE(datastore.ok());
  const std::shared_ptr<DatastoreTenant> tenant = *(*datastore)->Tenant("schemas");

  const StopRules stop{.max_tokens = 480};  // More than any of them needs.
  const auto truth = DecodeSchemas(Mode::kAr, cases, stop, tenant);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [schema, grammar, constraint] = cases[i];
    ASSERT_TRUE(EndedByItself(truth[i])) << truth[i].text << schema.dump(2);
    const auto value = Json::Parse(truth[i].text);
    ASSERT_FALSE(value.is_discarded()) << truth[i].text;
    ASSERT_TRUE(Validates(schema, schema, value)) << truth[i].text << " of " << schema.dump(2);
  }
  ASSERT_TRUE((*datastore)->Flush().ok());
  for (const Mode mode : {Mode::kSd, Mode::kSsd, Mode::kSssd}) {
    const auto outputs = DecodeSchemas(mode, cases, stop, tenant);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      ASSERT_EQ(outputs[i].tokens, truth[i].tokens) << ModeName(mode) << cases[i].schema.dump(2);
      ASSERT_EQ(outputs[i].reason, truth[i].reason) << ModeName(mode);
    }
    EXPECT_GT(AcceptanceLength(outputs), 1.5) << ModeName(mode);
  }
}

TEST(Constraint, OutputsOfSchemasWithoutBoundsValidateOrAreTheBeginningOfSuch) {
  const auto cases = RandomSchemas(60, /*bounded=*/false);
  const StopRules stop{.max_tokens = 100};
  const auto truth = DecodeSchemas(Mode::kAr, cases, stop, nullptr);
  const auto outputs = DecodeSchemas(Mode::kSsd, cases, stop, nullptr);
  int cut = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [schema, grammar, constraint] = cases[i];
    ASSERT_EQ(outputs[i].tokens, truth[i].tokens) << schema.dump(2);
    const bool whole = EndedByItself(truth[i]);
    cut += whole ? 0 : 1;
    ASSERT_TRUE(MatchesText(grammar, truth[i].text, whole)) << truth[i].text << schema.dump(2);
    if (!whole) continue;
    const auto value = Json::Parse(truth[i].text);
    ASSERT_TRUE(Validates(schema, schema, value)) << truth[i].text << " of " << schema.dump(2);
  }
  EXPECT_GT(cut, 0);
}

}  // namespace
}  // namespace foretoken
