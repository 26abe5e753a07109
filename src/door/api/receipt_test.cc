#include "foretoken/receipt.h"
#include "base/numbers/integers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/threads/cores.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/cpu/quant/quant_isa.h"
#include "door/assembly/loaded_model.h"
#include "foretoken/generate.h"
#include "foretoken/json_schema.h"

namespace foretoken {
namespace {

using testing::HasSubstr;
using testing::Not;

std::shared_ptr<LanguageModel> Load(Precision precision, std::optional<KvFormat> kv = {}) {
  auto model = LanguageModel::Load(
      {.source = {.path = std::string(FORETOKEN_SOURCE_DIR) + "/models/demo-target"},
       .cores = {AvailableCores().front()},
       .precision = precision,
       .kv = kv});
  EXPECT_TRUE(model.ok()) << model.error().message;
  return std::move(*model);
}

class ReceiptTest : public testing::Test {
 protected:
  // A receipt of what the model writes with these options.
  Receipt Write(SamplingParams sampling, int tokens = 60) {
    Request request;
    request.prompt = model_->tokenizer()->Encode("Once upon a time there was", true, false);
    request.sampling = std::move(sampling);
    request.stop.max_tokens = tokens;
    auto engine = Engine::Open(model_, {.modes = {Mode::kNgram}, .max_context = 256});
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    const auto generation = Generate(**engine, request);
    EXPECT_TRUE(generation.ok()) << generation.error().message;
    return MakeReceipt(*model_, request, generation->tokens, generation->finish);
  }
  std::optional<ReceiptFlaw> FlawOf(const Receipt& receipt) {
    const auto flaw = CheckReceipt(*model_, receipt);
    EXPECT_TRUE(flaw.ok()) << flaw.error().message;
    return flaw.ok() ? *flaw : std::nullopt;
  }
  std::string ErrorOf(const Receipt& receipt) {
    const auto flaw = CheckReceipt(*model_, receipt);
    return flaw.ok() ? "no error" : flaw.error().message;
  }
  // As a forger would: the chain is made anew by writing a receipt of the altered request.
  Receipt Forge(const Receipt& receipt, std::vector<Token> tokens) {
    const Request request{.prompt = receipt.prompt, .sampling = receipt.sampling};
    Receipt forged = MakeReceipt(*model_, request, tokens, receipt.finish);
    EXPECT_NE(forged.chain, receipt.chain);
    return forged;
  }

  std::shared_ptr<LanguageModel> model_ = Load(Precision::kPortable);
};

TEST_F(ReceiptTest, WhatAModelWroteIsFoundGenuine) {
  SamplingParams drawn{.temperature = 0.9F,
                       .top_k = 40,
                       .top_p = 0.9F,
                       .repetition_penalty = 1.2F,
                       .logit_bias = {{300, 2.5F}},
                       .seed = 18446744073709551615U};
  EXPECT_EQ(FlawOf(Write({})), std::nullopt);
  EXPECT_EQ(FlawOf(Write(drawn, 150)), std::nullopt);
  auto grammar = model_->CompileGrammar(*JsonSchemaGrammar(
      R"({"type":"array","items":{"type":"string","maxLength":4},"uniqueItems":true,"minItems":6})"));
  ASSERT_TRUE(grammar.ok());
  drawn.constraint = *grammar;
  const Receipt constrained = Write(drawn, 120);
  EXPECT_THAT(constrained.grammar, HasSubstr("@unique"));
  EXPECT_EQ(FlawOf(constrained), std::nullopt);
}

// Written on the fastest instruction set of the machine, checked on all that it has.
TEST_F(ReceiptTest, EveryInstructionSetFindsThemGenuine) {
  const Receipt greedy = Write({});
  const Receipt drawn = Write({.temperature = 1, .top_p = 0.95F, .seed = 12}, 100);
  LoadedModel& loaded = model_->loaded();
  const auto check_with = [&](const cpu::Kernels& kernels, const cpu::QuantKernels& quant) {
    loaded.model.reset();
    loaded.backend = MakePortableCpuBackend(kernels, quant, &loaded.device->pool());
    loaded.model = loaded.weights->MakeModel(loaded.backend.get());
    EXPECT_EQ(FlawOf(greedy), std::nullopt) << kernels.name << " " << quant.name;
    EXPECT_EQ(FlawOf(drawn), std::nullopt) << kernels.name << " " << quant.name;
    Receipt wrong = drawn;
    ++wrong.tokens[40];
    wrong = Forge(wrong, wrong.tokens);
    EXPECT_EQ(FlawOf(wrong)->at, 40) << kernels.name << " " << quant.name;
  };
  for (const cpu::Kernels* kernels : PortableKernels()) {
    check_with(*kernels, *AvailableQuantKernels().front());
  }
  for (const cpu::QuantKernels* quant : AvailableQuantKernels()) {
    check_with(*PortableKernels().back(), *quant);
  }
}

TEST_F(ReceiptTest, ComesBackFromItsText) {
  const Receipt receipt = Write({.temperature = 0.7F, .min_p = 0.05F, .seed = 7});
  const auto read = ParseReceipt(FormatReceipt(receipt), "receipt.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->tokens, receipt.tokens);
  EXPECT_EQ(read->chain, receipt.chain);
  EXPECT_EQ(FlawOf(*read), std::nullopt);
}

TEST_F(ReceiptTest, OfAnotherFormatOfKvSaysSo) {
  EXPECT_THAT(FormatReceipt(Write({})), Not(HasSubstr("\"kv\"")));
  model_ = Load(Precision::kPortable, KvFormat::kQ8_0);
  const Receipt receipt = Write({.temperature = 0.8F, .seed = 3});
  EXPECT_THAT(FormatReceipt(receipt), HasSubstr(R"("kv":"q8_0")"));
  const auto read = ParseReceipt(FormatReceipt(receipt), "receipt.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(FlawOf(*read), std::nullopt);
  Receipt forged = *read;
  forged.kv = KvFormat::kBF16;
  model_ = Load(Precision::kPortable);
  EXPECT_THAT(FlawOf(forged)->what, HasSubstr("hash chain"));
}

TEST_F(ReceiptTest, OfPenaltiesThatLookAtTheLatestTokensSaysSo) {
  EXPECT_THAT(FormatReceipt(Write({.repetition_penalty = 1.4F})), Not(HasSubstr("penalty_window")));
  const Receipt receipt = Write(
      {.temperature = 0.8F, .repetition_penalty = 1.4F, .penalty_window = 16, .seed = 3}, 120);
  EXPECT_THAT(FormatReceipt(receipt), HasSubstr(R"("penalty_window":16)"));
  const auto read = ParseReceipt(FormatReceipt(receipt), "receipt.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(FlawOf(*read), std::nullopt);
  Receipt forged = *read;
  forged.sampling.penalty_window = -1;
  EXPECT_NE(FlawOf(Forge(forged, forged.tokens)), std::nullopt);
}

TEST_F(ReceiptTest, AWrongTokenIsFoundWhereItIs) {
  const Receipt receipt = Write({.temperature = 0.8F, .seed = 3});
  for (const std::size_t at : {0U, 17U, 59U}) {
    std::vector<Token> tokens = receipt.tokens;
    tokens[at] = (tokens[at] + 1) % 400;
    const auto flaw = FlawOf(Forge(receipt, tokens));
    ASSERT_TRUE(flaw.has_value());
    EXPECT_EQ(flaw->at, Int(at));
    EXPECT_EQ(flaw->written, tokens[at]);
    EXPECT_EQ(flaw->right, receipt.tokens[at]);
    EXPECT_LT(flaw->written_score, flaw->right_score);
  }
  // A token that top-k leaves out has no score.
  const Receipt narrow = Write({.temperature = 0.8F, .top_k = 1, .seed = 3});
  std::vector<Token> tokens = narrow.tokens;
  tokens[5] = (tokens[5] + 1) % 400;
  EXPECT_EQ(FlawOf(Forge(narrow, tokens))->written_score, -std::numeric_limits<double>::infinity());
}

TEST_F(ReceiptTest, AlteredReceiptsAreFound) {
  const Receipt receipt = Write({.temperature = 0.8F, .seed = 3});
  Receipt other = receipt;
  other.tokens.pop_back();
  EXPECT_THAT(FlawOf(other)->what, HasSubstr("hash chain"));
  other = receipt;
  other.sampling.seed = 4;
  EXPECT_THAT(FlawOf(other)->what, HasSubstr("hash chain"));
  // Another seed with a chain that fits.
  SamplingParams sampling = receipt.sampling;
  sampling.seed = 4;
  const Receipt forged = MakeReceipt(*model_, {.prompt = receipt.prompt, .sampling = sampling},
                                     receipt.tokens, receipt.finish);
  EXPECT_GE(FlawOf(forged)->at, 0);
  const Receipt ended =
      MakeReceipt(*model_, {.prompt = receipt.prompt, .sampling = receipt.sampling}, receipt.tokens,
                  FinishReason::kEndOfSequence);
  EXPECT_THAT(FlawOf(ended)->what, HasSubstr("did not end"));
}

TEST_F(ReceiptTest, RefusesWhatCannotBeChecked) {
  const Receipt receipt = Write({});
  Receipt other = receipt;
  other.model = std::string(64, 'a');
  EXPECT_THAT(ErrorOf(other), HasSubstr("of a model with fingerprint aaaa"));
  other = receipt;
  other.arithmetic = 99;
  EXPECT_THAT(ErrorOf(other), HasSubstr("version 99"));
  other = receipt;
  other.prompt[0] = 1 << 20;
  EXPECT_THAT(ErrorOf(other), HasSubstr("the receipt has token 1048576"));
  other = receipt;
  other.prompt.clear();
  EXPECT_THAT(ErrorOf(other), HasSubstr("no prompt"));
  other = receipt;
  other.precision = Precision::kBF16;
  EXPECT_THAT(ErrorOf(other), HasSubstr("made in precision bf16, not in portable"));
  other = receipt;
  other.kv = KvFormat::kQ8_0;
  EXPECT_THAT(ErrorOf(other), HasSubstr("made with KV in q8_0, not in bf16"));
  other = receipt;
  other.precision = Precision::kBF16;
  model_ = Load(Precision::kBF16);
  other.backend = "cpu/abacus";
  EXPECT_THAT(ErrorOf(other), HasSubstr("made in bf16 by cpu/abacus, but this machine"));
}

TEST(Receipt, RefusesWhatIsNone) {
  const auto error = [](std::string_view text) {
    const auto receipt = ParseReceipt(text, "r.json");
    return receipt.ok() ? "no error" : receipt.error().message;
  };
  EXPECT_THAT(error(""), HasSubstr("r.json: is no JSON object"));
  EXPECT_THAT(error("{}"), HasSubstr("receipt"));
  EXPECT_THAT(error(R"({"receipt":2})"), HasSubstr("receipt"));
}

}  // namespace
}  // namespace foretoken
