// Whether a receipt is what its model wrote.

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <string>

#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/options.h"
#include "apps/foretoken/program/studies.h"
#include "apps/lab/common/study_commands.h"
#include "base/files/read_file.h"
#include "base/threads/cores.h"
#include "foretoken/receipt.h"
#include "json/json.h"

namespace foretoken {
namespace {

struct ReceiptOptions {
  std::string receipt;
  ModelOptions model;
  AdapterOptions adapters;
  bool json = false;
};

std::string NamedToken(const LanguageModel& model, Token token) {
  const Tokenizer* tokenizer = model.tokenizer();
  if (token < 0) return "none";
  if (tokenizer == nullptr || token >= tokenizer->vocabulary()) return fmt::format("{}", token);
  return fmt::format("{} '{}'", token, tokenizer->TokenName(token));
}

void PrintReceipt(const LanguageModel& model, const Receipt& receipt, const ReceiptFlaw* flaw,
                  double seconds) {
  if (flaw == nullptr) {
    fmt::print("yes: {} wrote these {} tokens (read in {})\n", model.source().label(),
               receipt.tokens.size(), FormatDuration(seconds * 1e9));
    return;
  }
  fmt::print("no: {}\n", flaw->what);
  if (flaw->at < 0) return;
  fmt::print("  written  {}, score {:.6f}\n", NamedToken(model, flaw->written),
             flaw->written_score);
  fmt::print("  right    {}, score {:.6f}\n", NamedToken(model, flaw->right), flaw->right_score);
}

Result<int> Check(ReceiptOptions options) {
  const Result<std::string> text = ReadFile(options.receipt);
  if (!text.ok()) return Invalid("cannot read '{}'", options.receipt);
  FT_ASSIGN_OR_RETURN(const Receipt receipt, ParseReceipt(*text, options.receipt));
  FT_RETURN_IF_ERROR(options.model.ResolveDefaults());
  options.model.precision = PrecisionName(receipt.precision);
  options.model.kv = KvFormatName(receipt.kv);
  FT_ASSIGN_OR_RETURN(const auto model,
                      LoadTarget(options.model, AvailableCores(), options.adapters));
  const auto begin = std::chrono::steady_clock::now();
  FT_ASSIGN_OR_RETURN(const std::optional<ReceiptFlaw> flaw, CheckReceipt(*model, receipt));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (options.json) {
    Json report = {{"genuine", !flaw.has_value()}, {"tokens", receipt.tokens.size()}};
    if (flaw.has_value()) report["flaw"] = flaw->what;
    if (flaw.has_value() && flaw->at >= 0) {
      report["at"] = flaw->at;
      report["written"] = {{"token", flaw->written}, {"score", flaw->written_score}};
      report["right"] = {{"token", flaw->right}, {"score", flaw->right_score}};
    }
    fmt::print("{}\n", report.dump(2));
  } else {
    PrintReceipt(*model, receipt, flaw.has_value() ? &*flaw : nullptr, took.count());
  }
  return flaw.has_value() ? kCheckFailed : kSucceeded;
}

}  // namespace

void AddCheckCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddStudy(app, "check");
  const OptionGroup add(command);
  auto options = std::make_shared<ReceiptOptions>();
  add("receipt", &options->receipt, "FILE", "The receipt")->required();
  AddTargetOptions(add, "-m,--target,--model", &options->model,
                   "The model that wrote it, a folder or a GGUF file; the bundled one by default");
  AddAdapterOptions(command, &options->adapters, "what the receipt says that it was written with");
  AddContextOption(command, &options->model);
  add("--json", &options->json, "Print one JSON object");
  SetFooter(command,
            "The text is read again in one prefill, and each token chosen again with its options, "
            "seed and grammar. Exit code 0: it is the model's own; 1: it is not, and the first "
            "wrong token is shown with its score and that of the model's choice. Receipts made "
            "with --precision portable (which models with quantised weights have by default) can "
            "be checked on any machine, others where the same instruction set is used.");
  WhenChosen(command, chosen, [options] { return Check(*options); });
}

}  // namespace foretoken
