#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "backend/device.h"
#include "cli/common/commands.h"
#include "cli/common/terminal.h"
#include "cli/options/options.h"
#include "model/config/model_config.h"
#include "model/memory_needs.h"
#include "tokenizer/tokenizer.h"
#include "weights/model_folder.h"

namespace foretoken {
namespace {

struct InspectOptions {
  std::string directory;
  std::string draft;
  std::string precision = "bf16";
  bool json = false;
};

struct Inspected {
  ModelConfig config;
  std::map<std::string, std::int64_t> elements_by_dtype;
  std::size_t tensors = 0;
  std::size_t file_bytes = 0;
  MemoryNeeds memory;
  std::unique_ptr<Tokenizer> tokenizer;
};

Result<Inspected> Inspect(const std::string& directory, Precision precision) {
  Inspected inspected;
  FT_ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(directory));
  FT_ASSIGN_OR_RETURN(inspected.config, ReadModelConfig(folder));
  for (const auto& [name, tensor] : folder.tensors()) {
    inspected.elements_by_dtype[std::string(DTypeName(tensor.dtype))] += tensor.elements();
    inspected.file_bytes += tensor.bytes();
    ++inspected.tensors;
  }
  Device device({AvailableCores().front()});
  const std::unique_ptr<Backend> backend = device.MakeBackend(precision);
  inspected.memory = EstimateMemory(inspected.config, *backend);
  FT_ASSIGN_OR_RETURN(inspected.tokenizer, Tokenizer::Load(directory));
  return inspected;
}

std::string DTypes(const Inspected& inspected) {
  std::string text;
  for (const auto& [dtype, elements] : inspected.elements_by_dtype) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", dtype,
                        FormatCount(static_cast<double>(elements)));
  }
  return text;
}

// A SentencePiece model is a protocol buffer whose first field has this tag; tokenizer.model may
// also be a list of byte-level ranks.
std::string TokenizerKind(const std::string& directory) {
  constexpr int kPiecesTag = 0x0A;
  std::ifstream model(std::filesystem::path(directory) / "tokenizer.model", std::ios::binary);
  return model.get() == kPiecesTag ? "SentencePiece" : "byte-level BPE";
}

std::string RopeText(const ModelConfig& config) {
  std::string text = fmt::format("theta {:g}", config.rope_theta);
  if (config.rope_scaling.kind == RopeScaling::Kind::kLinear) {
    text += fmt::format(", linear scaling by {:g}", config.rope_scaling.factor);
  } else if (config.rope_scaling.kind == RopeScaling::Kind::kLlama3) {
    text += fmt::format(", llama3 scaling by {:g} from {} positions", config.rope_scaling.factor,
                        config.rope_scaling.original_positions);
  }
  return text;
}

void Print(const std::string& directory, const std::string& precision, const Inspected& inspected) {
  const ModelConfig& config = inspected.config;
  const auto bytes = [](std::size_t count) { return FormatBytes(static_cast<double>(count)); };
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("  {:<16}{}\n", name, value);
  };
  fmt::print("{}\n", directory);
  line("architecture", config.architecture);
  line("parameters",
       fmt::format("{} ({} embeddings)", FormatCount(static_cast<double>(config.parameters())),
                   config.tied_embeddings ? "tied" : "untied"));
  line("layers", fmt::format("{}", config.layers));
  line("hidden", fmt::format("{}, feed-forward {}", config.hidden, config.intermediate));
  line("heads", fmt::format("{} query, {} key/value, {} wide", config.heads, config.kv_heads,
                            config.head_dim));
  line("vocabulary", fmt::format("{}", config.vocabulary));
  line("context", fmt::format("{} tokens", config.max_positions));
  line("rope", RopeText(config));
  line("stored as", fmt::format("{}, {} tensors, {}", DTypes(inspected), inspected.tensors,
                                bytes(inspected.file_bytes)));
  const Tokenizer& tokenizer = *inspected.tokenizer;
  line("tokenizer",
       fmt::format(
           "{}, {} tokens, {}", TokenizerKind(directory), tokenizer.vocabulary(),
           tokenizer.has_chat_template() ? "with a chat template" : "no known chat template"));
  line("fingerprint", tokenizer.fingerprint());
  fmt::print("memory in {}\n", precision);
  line("weights", bytes(inspected.memory.weight_bytes));
  line("KV per token", bytes(inspected.memory.kv_bytes_per_token));
  line("KV per sequence",
       fmt::format("{} with the context full", bytes(inspected.memory.kv_bytes_per_sequence)));
}

nlohmann::json ToJson(const std::string& directory, const std::string& precision,
                      const Inspected& inspected) {
  const ModelConfig& config = inspected.config;
  const Tokenizer& tokenizer = *inspected.tokenizer;
  return {
      {"directory", directory},
      {"architecture", config.architecture},
      {"parameters", config.parameters()},
      {"layers", config.layers},
      {"hidden", config.hidden},
      {"intermediate", config.intermediate},
      {"heads", config.heads},
      {"kv_heads", config.kv_heads},
      {"head_dim", config.head_dim},
      {"vocabulary", config.vocabulary},
      {"context", config.max_positions},
      {"tied_embeddings", config.tied_embeddings},
      {"rope", RopeText(config)},
      {"eos", config.eos},
      {"dtypes", inspected.elements_by_dtype},
      {"tensors", inspected.tensors},
      {"file_bytes", inspected.file_bytes},
      {"tokenizer",
       {{"kind", TokenizerKind(directory)},
        {"vocabulary", tokenizer.vocabulary()},
        {"chat_template", tokenizer.has_chat_template()},
        {"fingerprint", tokenizer.fingerprint()}}},
      {"memory",
       {{"precision", precision},
        {"weight_bytes", inspected.memory.weight_bytes},
        {"kv_bytes_per_token", inspected.memory.kv_bytes_per_token},
        {"kv_bytes_per_sequence", inspected.memory.kv_bytes_per_sequence}}},
  };
}

Result<int> RunInspect(const InspectOptions& options) {
  const Precision precision = options.precision == "f32" ? Precision::kF32 : Precision::kBF16;
  FT_ASSIGN_OR_RETURN(const Inspected target, Inspect(options.directory, precision));
  std::optional<Inspected> draft;
  Status compatible;
  if (!options.draft.empty()) {
    FT_ASSIGN_OR_RETURN(draft, Inspect(options.draft, precision));
    compatible = CheckSameVocabulary(*target.tokenizer, *draft->tokenizer);
  }
  if (options.json) {
    nlohmann::json json = ToJson(options.directory, options.precision, target);
    if (draft) {
      json["draft"] = ToJson(options.draft, options.precision, *draft);
      json["same_vocabulary"] = compatible.ok();
    }
    fmt::print("{}\n", json.dump(2));
  } else {
    Print(options.directory, options.precision, target);
    if (draft) {
      fmt::print("\n");
      Print(options.draft, options.precision, *draft);
      if (compatible.ok()) fmt::print("\nThe draft has the target's vocabulary.\n");
    }
  }
  FT_RETURN_IF_ERROR(compatible);
  return 0;
}

}  // namespace

void AddInspectCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command =
      app->add_subcommand("inspect", "Show what a model folder holds and the memory it needs");
  const OptionGroup add(command);
  auto options = std::make_shared<InspectOptions>();
  add("directory,-m,--target,--model", &options->directory, "DIR", "The model folder")->required();
  add("--draft", &options->draft, "DIR",
      "A draft's folder (also -md): shown too, and its vocabulary compared");
  add("--precision", &options->precision, "P",
      "How weights and KV would be stored: bf16 (default) or f32")
      ->check(OneOf({"bf16", "f32"}));
  add("--json", &options->json, "Print one JSON object");
  command->callback([options, chosen] { *chosen = [options] { return RunInspect(*options); }; });
}

}  // namespace foretoken
