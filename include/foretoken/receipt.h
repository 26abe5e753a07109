#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/kv_format.h"
#include "foretoken/model.h"
#include "foretoken/precision.h"
#include "foretoken/request.h"
#include "foretoken/result.h"
#include "foretoken/sampling.h"

namespace foretoken {

/// What a generation was made from and by, so that anybody with the model can check it: a finished
/// text is the perfect draft, and reading it again takes one prefill.
struct Receipt {
  std::string model;  ///< Fingerprints of weights and tokenizer, as `inspect` shows them.
  std::string tokenizer;
  std::string adapter;      ///< Fingerprint of the adapter (docs/do/lora.md); empty: none.
  float adapter_scale = 1;  ///< AdapterUse::scale.
  Precision precision = Precision::kPortable;
  KvFormat kv = KvFormat::kBF16;      ///< How keys and values were kept, which bits depend on.
  int arithmetic = kPortableVersion;  ///< Version of the portable arithmetic.
  std::string backend;                ///< Under other precisions bits depend on it.
  SamplingParams sampling;            ///< All options of sampling but the constraint.
  std::string grammar;                ///< The grammar of the sampling's constraint; empty: none.
  bool continues_text = true;         ///< As in Request.
  std::vector<Token> prompt;
  std::vector<Token> tokens;
  FinishReason finish = FinishReason::kMaxTokens;
  /// SHA-256 over all of the above, then over itself and each token in turn.
  std::string chain;
};

/// Makes the receipt of what `model` made of `request`, by shared noise.
Receipt MakeReceipt(const LanguageModel& model, const Request& request,
                    std::span<const Token> tokens, FinishReason finish);

std::string FormatReceipt(const Receipt& receipt);
/// `where` names the text in errors.
Result<Receipt> ParseReceipt(std::string_view json, const std::string& where);

/// What is wrong with a receipt.
struct ReceiptFlaw {
  std::string what;          ///< In one sentence.
  int at = -1;               ///< The first wrong token; -1: it is none of them.
  Token written = -1;        ///< The token that the receipt has at `at`.
  double written_score = 0;  ///< The noisy score of `written` (-infinity where it may not come).
  Token right = -1;          ///< The model's own choice at `at`.
  double right_score = 0;    ///< The noisy score of `right`.
};

/// Reads the receipt's text with `model` in one prefill. Nothing where all of it is right. An error
/// where it cannot be checked: made by another model, or with bits that this machine does not have.
/// No engine may run on the model meanwhile.
Result<std::optional<ReceiptFlaw>> CheckReceipt(const LanguageModel& model, const Receipt& receipt);

}  // namespace foretoken
