#include "foretoken/receipt.h"
#include "base/numbers/integers.h"

#include <fmt/core.h>

#include <algorithm>
#include <type_traits>

#include "base/numbers/sha256.h"
#include "base/result.h"
#include "door/assembly/loaded_model.h"
#include "door/assembly/replay.h"
#include "foretoken/constraint.h"
#include "json/json.h"
#include "json/json_object.h"

namespace foretoken {
namespace {

constexpr int kVersion = 1;
constexpr FinishReason kFinishReasons[] = {
    FinishReason::kEndOfSequence, FinishReason::kStopToken,  FinishReason::kStopString,
    FinishReason::kMaxTokens,     FinishReason::kGrammarEnd, FinishReason::kGrammarStuck,
    FinishReason::kContextFull,   FinishReason::kCancelled};

// All but the tokens and the chain.
Json ReceiptHead(const Receipt& receipt) {
  const SamplingParams& sampling = receipt.sampling;
  Json json = {{"receipt", kVersion},
               {"model", receipt.model},
               {"tokenizer", receipt.tokenizer},
               {"precision", PrecisionName(receipt.precision)},
               {"arithmetic", receipt.arithmetic},
               {"backend", receipt.backend},
               {"logit_bias", sampling.logit_bias},
               {"seed", sampling.seed},
               {"grammar", receipt.grammar},
               {"continues_text", receipt.continues_text},
               {"finish_reason", FinishReasonName(receipt.finish)},
               {"prompt", receipt.prompt}};
  ForEachSamplingField([&](const auto& field) {
    const auto value = sampling.*field.member;
    if (field.receipt == InReceipt::kAlways || value != field.by_default) json[field.name] = value;
  });
  // Receipts of the usual KV stay what they were before there was any other.
  if (receipt.kv != UsualKvFormat(receipt.precision)) json["kv"] = KvFormatName(receipt.kv);
  if (!receipt.adapter.empty()) {
    json["adapter"] = receipt.adapter;
    json["adapter_scale"] = receipt.adapter_scale;
  }
  json.SortMembers();  // The chain begins with this text.
  return json;
}

std::string ChainOf(const Receipt& receipt) {
  std::string chain = Sha256Hex(ReceiptHead(receipt).dump());
  for (const Token token : receipt.tokens) {
    chain = Sha256Hex(fmt::format("{} {}", chain, token));
  }
  return chain;
}

// Numbers that are written with all their digits, or refused.
class Reader {
 public:
  Reader(const Json& json, const std::string& where, Status* status)
      : object_(&json, where, status) {}

  JsonObject& object() { return object_; }
  float Float(std::string_view name) { return static_cast<float>(object_.Number(name, -1e9, 1e9)); }
  std::vector<Token> Tokens(std::string_view name) {
    constexpr std::size_t kMost = 1 << 24;
    constexpr int kLargest = 1 << 24;
    return object_.Integers(name, kMost, 0, kLargest);
  }
  std::uint64_t Seed() {
    const auto* seed = object_.Find("seed");
    if (seed != nullptr && seed->is_number_unsigned()) return seed->get<std::uint64_t>();
    object_.Refuse("has no seed that is a whole number from 0 on");
    return 0;
  }
  std::vector<std::pair<Token, float>> Bias() {
    std::vector<std::pair<Token, float>> bias;
    const auto* list = object_.Find("logit_bias");
    if (list == nullptr) return bias;
    for (const auto& entry : *list) {
      const bool pair = entry.is_array() && entry.size() == 2 && entry[0].is_number_unsigned() &&
                        entry[1].is_number();
      if (!pair) object_.Refuse("has a logit_bias that is no list of pairs of token and number");
      if (!pair) break;
      bias.emplace_back(entry[0].get<Token>(), entry[1].get<float>());
    }
    return bias;
  }
  FinishReason Finish() {
    std::string name;
    object_.String("finish_reason", &name);
    const auto found = std::ranges::find(kFinishReasons, name, FinishReasonName);
    if (found != std::end(kFinishReasons)) return *found;
    object_.Refuse("has no finish_reason that is known");
    return FinishReason::kMaxTokens;
  }

 private:
  JsonObject object_;
};

// Whether it can be checked here at all.
Status CheckReceiptOrigin(const LanguageModel& model, const Receipt& receipt) {
  const LoadedModel& loaded = model.loaded();
  const std::string own = FingerprintText(loaded.identity.model);
  if (receipt.model != own) {
    return Invalid("the receipt is of a model with fingerprint {}, but {} has {}", receipt.model,
                   model.source().label(), own);
  }
  if (receipt.tokenizer != FingerprintText(loaded.identity.tokenizer)) {
    return InvalidInput("the receipt is of a model with another tokenizer");
  }
  const Precision precision = loaded.backend->precision();
  if (receipt.precision != precision) {
    return Invalid("the receipt was made in precision {}, not in {}",
                   PrecisionName(receipt.precision), PrecisionName(precision));
  }
  const KvFormat kv = loaded.backend->kv_format();
  if (receipt.kv != kv) {
    return Invalid("the receipt was made with KV in {}, not in {}", KvFormatName(receipt.kv),
                   KvFormatName(kv));
  }
  if (precision == Precision::kPortable) {
    if (receipt.arithmetic == kPortableVersion) return {};
    return Invalid(
        "the receipt was made by version {} of the portable arithmetic; this program has version "
        "{}",
        receipt.arithmetic, kPortableVersion);
  }
  if (receipt.backend == loaded.backend->name()) return {};
  return Invalid(
      "the receipt was made in {} by {}, but this machine computes by {}, whose last bits are "
      "others; receipts of --precision portable can be checked on any machine",
      PrecisionName(precision), receipt.backend, loaded.backend->name());
}

Result<AdapterUse> AdapterOfReceipt(const Receipt& receipt, const LoadedModel& loaded) {
  if (receipt.adapter.empty()) return AdapterUse{};
  const auto found = std::ranges::find(loaded.adapter_fingerprints, receipt.adapter);
  if (found == loaded.adapter_fingerprints.end()) {
    return Invalid(
        "the receipt was made with an adapter of fingerprint {}, which is none of those that were "
        "loaded with the model: give it with --lora",
        receipt.adapter);
  }
  return AdapterUse{static_cast<int>(found - loaded.adapter_fingerprints.begin()),
                    receipt.adapter_scale};
}

Status CheckTokens(const Receipt& receipt, const ModelConfig& config) {
  if (receipt.prompt.empty()) return InvalidInput("the receipt has no prompt");
  if (receipt.prompt.size() + receipt.tokens.size() > Size(config.max_positions)) {
    return Invalid("the receipt has more tokens than the model's context of {}",
                   config.max_positions);
  }
  for (const auto* tokens : {&receipt.prompt, &receipt.tokens}) {
    for (const Token token : *tokens) {
      if (token < config.vocabulary) continue;
      return Invalid("the receipt has token {}, but the model has only {}", token,
                     config.vocabulary);
    }
  }
  return {};
}

}  // namespace

Receipt MakeReceipt(const LanguageModel& model, const Request& request,
                    std::span<const Token> tokens, FinishReason finish) {
  const LoadedModel& loaded = model.loaded();
  Receipt receipt{.model = FingerprintText(loaded.identity.model),
                  .tokenizer = FingerprintText(loaded.identity.tokenizer),
                  .precision = loaded.backend->precision(),
                  .kv = loaded.backend->kv_format(),
                  .backend = std::string(loaded.backend->name()),
                  .sampling = request.sampling,
                  .continues_text = request.continues_text,
                  .prompt = request.prompt,
                  .tokens = {tokens.begin(), tokens.end()},
                  .finish = finish};
  if (request.adapter.index >= 0) {
    receipt.adapter = loaded.adapter_fingerprints.at(Size(request.adapter.index));
    receipt.adapter_scale = request.adapter.scale;
  }
  if (request.sampling.constraint != nullptr) {
    receipt.grammar = request.sampling.constraint->grammar();
    receipt.sampling.constraint = nullptr;
  }
  receipt.chain = ChainOf(receipt);
  return receipt;
}

std::string FormatReceipt(const Receipt& receipt) {
  Json json = ReceiptHead(receipt);
  json["tokens"] = receipt.tokens;
  json["chain"] = receipt.chain;
  json.SortMembers();
  return json.dump() + "\n";
}

Result<Receipt> ParseReceipt(std::string_view json, const std::string& where) {
  const auto parsed = Json::Parse(json);
  if (!parsed.is_object()) return Invalid("{}: is no JSON object", where);
  Status status;
  Reader reader(parsed, where, &status);
  JsonObject& object = reader.object();
  Receipt receipt;
  (void)object.Integer("receipt", kVersion, kVersion);
  receipt.model = object.Fingerprint("model");
  receipt.tokenizer = object.Fingerprint("tokenizer");
  receipt.precision = ParsePrecision(object.Text("precision", {"bf16", "f32", "portable"}))
                          .value_or(receipt.precision);
  receipt.kv = UsualKvFormat(receipt.precision);
  if (object.Has("kv")) {
    receipt.kv = ParseKvFormat(object.Text("kv", {"bf16", "f32", "q8_0"})).value_or(receipt.kv);
  }
  receipt.arithmetic = object.Integer("arithmetic", 1, 1 << 20);
  receipt.backend = object.Text("backend");
  SamplingParams& sampling = receipt.sampling;
  ForEachSamplingField([&](const auto& field) {
    if (field.receipt == InReceipt::kUnlessDefault && !object.Has(field.name)) return;
    if constexpr (std::is_same_v<decltype(field.most), int>) {
      sampling.*field.member = object.Integer(field.name, field.least, field.most);
    } else {
      sampling.*field.member = reader.Float(field.name);
    }
  });
  sampling.logit_bias = reader.Bias();
  sampling.seed = reader.Seed();
  object.String("grammar", &receipt.grammar);
  if (object.Has("adapter")) {
    receipt.adapter = object.Fingerprint("adapter");
    receipt.adapter_scale = reader.Float("adapter_scale");
  }
  object.Bool("continues_text", &receipt.continues_text);
  receipt.finish = reader.Finish();
  receipt.prompt = reader.Tokens("prompt");
  receipt.tokens = reader.Tokens("tokens");
  receipt.chain = object.Fingerprint("chain");
  object.Close();
  if (!status.ok()) return status.error();
  return receipt;
}

Result<std::optional<ReceiptFlaw>> CheckReceipt(const LanguageModel& model,
                                                const Receipt& receipt) {
  const LoadedModel& loaded = model.loaded();
  const ModelConfig& config = loaded.model->config();
  FT_RETURN_IF_ERROR(CheckReceiptOrigin(model, receipt));
  FT_RETURN_IF_ERROR(CheckTokens(receipt, config));
  FT_ASSIGN_OR_RETURN(const AdapterUse adapter, AdapterOfReceipt(receipt, loaded));
  SamplingParams sampling = receipt.sampling;
  FT_RETURN_IF_ERROR(ValidateSamplingParams(sampling, config.vocabulary));
  if (!receipt.grammar.empty()) {
    FT_ASSIGN_OR_RETURN(sampling.constraint, model.CompileGrammar(receipt.grammar));
  }
  if (receipt.chain != ChainOf(receipt)) {
    return std::optional(
        ReceiptFlaw{.what = "its hash chain does not fit: it was altered after it was written"});
  }
  const Tokenizer* tokenizer = model.tokenizer();
  const Replay replay{.prompt = receipt.prompt,
                      .tokens = receipt.tokens,
                      .sampling = &sampling,
                      .drops_space = tokenizer != nullptr && !receipt.continues_text &&
                                     tokenizer->DropsLeadingSpace(),
                      .adapter = adapter};
  if (const auto deviation = FindDeviation(loaded, replay)) {
    return std::optional(ReceiptFlaw{
        .what = fmt::format("the model did not choose token {} of its output", deviation->at),
        .at = static_cast<int>(deviation->at),
        .written = deviation->written.token,
        .written_score = deviation->written.score,
        .right = deviation->chosen.token,
        .right_score = deviation->chosen.score});
  }
  std::vector<Token> ends = config.eos;
  if (tokenizer != nullptr) {
    for (const Token token : tokenizer->eos()) ends.push_back(token);
  }
  const bool ended = !receipt.tokens.empty() && std::ranges::count(ends, receipt.tokens.back()) > 0;
  if (receipt.finish == FinishReason::kEndOfSequence && !ended) {
    return std::optional(ReceiptFlaw{.what = "the model did not end its text there"});
  }
  return std::optional<ReceiptFlaw>();
}

}  // namespace foretoken
