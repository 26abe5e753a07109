#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>

#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/machine/inspect_drafter.h"
#include "apps/foretoken/options/options.h"
#include "core/backend/cpu/measure.h"
#include "core/backend/device.h"
#include "core/model/config/model_config.h"
#include "core/model/families/read_config.h"
#include "core/model/memory_needs.h"
#include "core/model/open_checkpoint.h"
#include "core/weights/checkpoint.h"
#include "door/assembly/fit_draft.h"
#include "door/assembly/loaded_model.h"
#include "foretoken/chat_format.h"
#include "json/json.h"
#include "text/tokenizer/pair/vocabulary_match.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {
namespace {

struct InspectOptions {
  ModelOptions model;
  bool no_measuring = false;
  bool json = false;
};

std::string TokenizerKind(const Checkpoint& checkpoint, const Tokenizer& tokenizer) {
  bool pieces = false;
  if (checkpoint.gguf) {
    std::string model;
    pieces = checkpoint.gguf->String("tokenizer.ggml.model", &model).ok() && model == "llama";
  } else {
    // A SentencePiece model is a protocol buffer whose first field has this tag; tokenizer.model
    // may also be a list of byte-level ranks.
    constexpr int kPiecesTag = 0x0A;
    std::ifstream model(checkpoint.path / "tokenizer.model", std::ios::binary);
    pieces = model.get() == kPiecesTag;
  }
  if (pieces) return "SentencePiece";
  // Only where words begin as characters there are tokens of bytes by themselves.
  for (Token token = 0; token < tokenizer.vocabulary(); ++token) {
    if (tokenizer.TokenName(token) == "<0x00>") return "BPE of characters";
  }
  return "byte-level BPE";
}

std::string RopeText(const RopeSpec& rope, int head_dim) {
  const RopeScaling& scaling = rope.scaling;
  std::string text = fmt::format("theta {:g}", rope.theta);
  if (rope.dims != head_dim) text += fmt::format(", {} of {} numbers", rope.dims, head_dim);
  switch (scaling.kind) {
    case RopeScaling::Kind::kNone:
      break;
    case RopeScaling::Kind::kLinear:
      text += fmt::format(", linear scaling by {:g}", scaling.factor);
      break;
    case RopeScaling::Kind::kLlama3:
      text += fmt::format(", llama3 scaling by {:g} from {} positions", scaling.factor,
                          scaling.original_positions);
      break;
    case RopeScaling::Kind::kYarn:
      text += fmt::format(", yarn scaling by {:g} from {} positions", scaling.factor,
                          scaling.original_positions);
      break;
    case RopeScaling::Kind::kFactors:
      text += ", each frequency scaled by a factor of its own";
      break;
  }
  return text;
}

// "5 of 6 layers see 1024 positions"; empty where all see all.
std::string WindowText(const ModelConfig& config) {
  int layers = 0;
  int window = 0;
  for (const LayerSpec& layer : config.layers) {
    if (layer.attention.window == 0) continue;
    ++layers;
    window = layer.attention.window;
  }
  if (layers == 0) return "";
  return fmt::format("{} of {} layers see {} positions", layers, config.layer_count(), window);
}

// "36 of 48 layers remember in a state of 2.1 MB"; empty where none does.
std::string RecurrentText(const ModelConfig& config) {
  int layers = 0;
  std::int64_t floats = 0;
  for (const LayerSpec& layer : config.layers) {
    if (!layer.is_recurrent()) continue;
    ++layers;
    floats = layer.delta.state_width();
  }
  if (layers == 0) return "";
  return fmt::format("{} of {} layers remember in a state of {}", layers, config.layer_count(),
                     FormatBytes(4.0 * static_cast<double>(floats)));
}

std::string_view WeighedText(Routing::Weights weights) {
  switch (weights) {
    case Routing::Weights::kSoftmaxOfAll:
      return "the softmax of all";
    case Routing::Weights::kSoftmaxOfChosen:
      return "the softmax of those";
    case Routing::Weights::kSigmoids:
      return "their sigmoids";
    case Routing::Weights::kSigmoidsOfSum:
      return "their sigmoids over the sum of those";
  }
  return "";
}

// "128, of which a token takes 8, weighed by the softmax of those, in 47 of 48 layers, and one of
// 512 that all tokens take"; empty where there are none.
std::string ExpertsText(const ModelConfig& config) {
  int layers = 0;
  MlpSpec mlp;
  for (const LayerSpec& layer : config.layers) {
    if (!layer.mlp.has_experts()) continue;
    ++layers;
    mlp = layer.mlp;
  }
  if (layers == 0) return "";
  const Routing& routing = mlp.routing;
  std::string text = fmt::format("{} of {}, of which a token takes {}", routing.experts,
                                 mlp.intermediate, routing.chosen);
  if (routing.chosen_groups < routing.groups) {
    text += fmt::format(" of the best {} of {} groups", routing.chosen_groups, routing.groups);
  }
  text += fmt::format(", weighed by {}", WeighedText(routing.weights));
  if (routing.factor != 1) text += fmt::format(" times {:g}", routing.factor);
  text += fmt::format(", in {} of {} layers", layers, config.layer_count());
  if (mlp.has_shared()) {
    text += fmt::format(", and one of {} that all tokens take{}", mlp.shared_intermediate,
                        mlp.shared_gate ? ", times its gate" : "");
  }
  return text;
}

// How the model writes calls and thoughts, as its chat template tells; null where it does neither.
Json AnswersJson(const Tokenizer& tokenizer) {
  const ChatFormat& format = tokenizer.chat_format();
  Json answers = {{"tool_format", nullptr}, {"reasoning", nullptr}};
  if (format.calls != nullptr) answers["tool_format"] = format.calls->name;
  if (!format.reasoning.close.empty()) {
    answers["reasoning"] = {{"open", format.reasoning.open}, {"close", format.reasoning.close}};
  }
  return answers;
}

// How the tensors are stored: by format, and all together.
Json Stored(const Checkpoint& checkpoint) {
  struct Sum {
    std::int64_t tensors = 0;
    std::int64_t elements = 0;
    std::size_t bytes = 0;

    void Add(const TensorView& tensor) {
      ++tensors;
      elements += tensor.elements();
      bytes += tensor.bytes();
    }
    Json Figures() const {
      return {{"tensors", tensors},
              {"elements", elements},
              {"bytes", bytes},
              {"bits_per_weight",
               8.0 * static_cast<double>(bytes) / static_cast<double>(std::max(elements, 1L))}};
    }
  };
  Sum all;
  std::map<std::string, Sum> by_type;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    by_type[std::string(FormatName(tensor.format))].Add(tensor);
    all.Add(tensor);
  }
  Json figures = all.Figures();
  for (const auto& [type, sum] : by_type) figures["types"][type] = sum.Figures();
  return figures;
}

// A model's figures and its tokenizer.
struct Inspected {
  Json figures;
  std::shared_ptr<const Tokenizer> tokenizer;
};

// Inspects the target or the draft, with numbers kept as `options` say.
Result<Inspected> Inspect(const std::string& path, const std::string& weights, ExpertsPlace experts,
                          const ModelOptions& options) {
  FT_ASSIGN_OR_RETURN(
      const OpenedModel opened,
      OpenModel(
          {.path = path, .weights = weights, .context = options.context, .experts = experts}));
  const Checkpoint& checkpoint = *opened.checkpoint;
  const ModelConfig& config = opened.config;
  FT_ASSIGN_OR_RETURN(const ModelConfig whole, ReadModelConfig(checkpoint));
  Device device({AvailableCores().front()});
  const Numerics used(ParsePrecision(options.precision).value_or(UsualPrecision(checkpoint)),
                      ParseKvFormat(options.kv));
  const std::unique_ptr<Backend> backend = device.MakeBackend(used);
  const MemoryNeeds memory = EstimateMemory(config, checkpoint.tensors, *backend, experts);
  const std::shared_ptr<const Tokenizer>& tokenizer = opened.tokenizer;
  const LayerSpec& layer = config.layers.front();
  Json figures = {{"path", path},
                  {"architecture", config.architecture},
                  {"parameters", config.parameters()},
                  {"family", config.family},
                  {"layers", config.layer_count()},
                  {"hidden", config.hidden},
                  {"intermediate", layer.mlp.intermediate},
                  {"experts", ExpertsText(config)},
                  {"heads", config.first_attention().heads},
                  {"kv_heads", config.first_attention().kv_heads},
                  {"head_dim", config.first_attention().head_dim},
                  {"window", WindowText(config)},
                  {"recurrent", RecurrentText(config)},
                  {"vocabulary", config.vocabulary},
                  {"context", config.max_positions},
                  {"made_for_context", whole.max_positions},
                  {"tied_embeddings", config.tied_embeddings},
                  {"rope", RopeText(config.ropes.front(), config.first_attention().head_dim)},
                  {"eos", config.eos},
                  {"stored", Stored(checkpoint)},
                  {"not_used", checkpoint.not_used},
                  {"tokenizer",
                   {{"kind", TokenizerKind(checkpoint, *tokenizer)},
                    {"vocabulary", tokenizer->vocabulary()},
                    {"chat_template", tokenizer->has_chat_template()},
                    {"fingerprint", tokenizer->fingerprint()}}},
                  {"answers", AnswersJson(*tokenizer)},
                  {"memory",
                   {{"precision", PrecisionName(used.precision)},
                    {"kv", KvFormatName(used.kv)},
                    {"weight_bytes", memory.weight_bytes},
                    {"mapped_expert_bytes", memory.mapped_bytes},
                    {"weight_bytes_per_token", memory.weight_bytes_per_pass},
                    {"kv_bytes_per_token", memory.kv_bytes_per_token},
                    {"kv_bytes_per_sequence", memory.kv_bytes_per_sequence}}}};
  return Inspected{std::move(figures), tokenizer};
}

// What a draft needs that says some tokens only, and how many it says.
Status ShowLimited(const ModelOptions& options, Json* figures) {
  FT_ASSIGN_OR_RETURN(const OpenedModel target, OpenModel(options.TargetSource()));
  FT_ASSIGN_OR_RETURN(OpenedModel draft, OpenModel(options.DraftSource()));
  FT_ASSIGN_OR_RETURN(draft, FitDraft(target.config, target.tokenizer, std::move(draft)));
  Device device({AvailableCores().front()});
  const auto backend = device.MakeBackend(
      NumericsFor(draft, ParsePrecision(options.precision), ParseKvFormat(options.kv)));
  const MemoryNeeds memory = EstimateMemory(draft.config, draft.checkpoint->tensors, *backend);
  (*figures)["says"] = draft.config.vocabulary;
  (*figures)["memory"]["weight_bytes"] = memory.weight_bytes;
  (*figures)["memory"]["weight_bytes_per_token"] = memory.weight_bytes_per_pass;
  return {};
}

std::string StoredText(const Json& sum) {
  return fmt::format("{} weights in {} tensors, {}, {:.2f} bits per weight",
                     FormatCount(sum["elements"]), sum["tensors"].get<std::int64_t>(),
                     FormatBytes(sum["bytes"]), sum["bits_per_weight"].get<double>());
}

// What reading the weights allows at most, once for each token, on these cores.
Json SpeedLimit(const Json& memory, const CoreSet& cores) {
  Device device(cores);
  device.Adopt();
  const double gb_per_s = MeasureReadBandwidth(&device);
  const auto bytes = memory["weight_bytes_per_token"].get<double>();
  return {{"cores", FormatCores(cores)},
          {"read_gb_per_s", gb_per_s},
          {"tokens_per_s", gb_per_s * 1e9 / bytes}};
}

void PrintFigures(const Json& figures) {
  const auto number = [&](const char* key) { return figures[key].get<std::int64_t>(); };
  const auto text = [](const Json& value) { return value.get<std::string>(); };
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("  {:<16}{}\n", name, value);
  };
  fmt::print("{}\n", text(figures["path"]));
  line("architecture", text(figures["architecture"]));
  line("parameters", fmt::format("{} ({} embeddings)", FormatCount(figures["parameters"]),
                                 figures["tied_embeddings"] ? "tied" : "untied"));
  line("layers", figures["layers"].dump());
  line("hidden", fmt::format("{}, feed-forward {}", number("hidden"), number("intermediate")));
  if (!text(figures["experts"]).empty()) line("experts", text(figures["experts"]));
  line("heads", fmt::format("{} query, {} key/value, {} wide", number("heads"), number("kv_heads"),
                            number("head_dim")));
  line("vocabulary",
       figures["vocabulary"].dump() + (figures.contains("says")
                                           ? fmt::format(", of which it says {}", number("says"))
                                           : std::string()));
  const bool all = number("context") == number("made_for_context");
  line("context", fmt::format("{} tokens{}", number("context"),
                              all ? "" : fmt::format(" of {}", number("made_for_context"))));
  line("rope", text(figures["rope"]));
  if (!text(figures["window"]).empty()) line("windows", text(figures["window"]));
  if (!text(figures["recurrent"]).empty()) line("recurrent", text(figures["recurrent"]));
  const Json& stored = figures["stored"];
  std::string name = "stored as";
  for (const auto& [type, sum] : stored["types"].items()) {
    line(name, type + ": " + StoredText(sum));
    name.clear();
  }
  if (stored["types"].size() > 1) line(name, "together: " + StoredText(stored));
  for (const Json& sentence : figures["not_used"]) line("beside", text(sentence));
  const Json& tokenizer = figures["tokenizer"];
  line("tokenizer",
       fmt::format("{}, {} tokens, {}", text(tokenizer["kind"]), tokenizer["vocabulary"].get<int>(),
                   tokenizer["chat_template"] ? "with a chat template" : "no known chat template"));
  line("fingerprint", text(tokenizer["fingerprint"]));
  const Json& answers = figures["answers"];
  if (!answers["tool_format"].is_null()) {
    line("calls of tools", fmt::format("in the form '{}'", text(answers["tool_format"])));
  }
  if (const Json& marks = answers["reasoning"]; !marks.is_null()) {
    line("thoughts", fmt::format("between {} and {}", marks["open"].dump(), marks["close"].dump()));
  }
  const Json& memory = figures["memory"];
  fmt::print("memory in {}, KV in {}\n", text(memory["precision"]), text(memory["kv"]));
  const bool mapped = memory["mapped_expert_bytes"] > 0;
  const std::string in_file = mapped ? fmt::format(", and {} of experts in the file,",
                                                   FormatBytes(memory["mapped_expert_bytes"]))
                                     : ",";
  line("weights", fmt::format("{}{} of which a token reads {}", FormatBytes(memory["weight_bytes"]),
                              in_file, FormatBytes(memory["weight_bytes_per_token"])));
  if (figures.contains("speed_limit")) {
    const Json& limit = figures["speed_limit"];
    line("speed limit",
         fmt::format("{:.0f} tokens/s without speculation: cores {} read {:.1f} GB/s",
                     limit["tokens_per_s"].get<double>(), text(limit["cores"]),
                     limit["read_gb_per_s"].get<double>()));
  }
  line("KV per token", FormatBytes(memory["kv_bytes_per_token"]));
  line("KV per sequence",
       fmt::format("{} with the context full", FormatBytes(memory["kv_bytes_per_sequence"])));
}

Result<int> RunInspect(InspectOptions options) {
  ModelOptions& model = options.model;
  FT_RETURN_IF_ERROR(model.ResolveDefaults());
  FT_ASSIGN_OR_RETURN(const Inspected target,
                      Inspect(model.target, model.weights, model.experts_place(), model));
  Json figures = target.figures;
  const int limit = figures["made_for_context"].get<int>();
  if (model.context && *model.context > limit) {
    return Invalid("--context {} is more than the model's limit of {} tokens", *model.context,
                   limit);
  }
  if (!options.no_measuring) {
    figures["speed_limit"] = SpeedLimit(figures["memory"], AvailableCores());
  }
  bool by_text = false;
  bool same_vocabulary = true;
  VocabularyMatch match;
  std::optional<Json> drafter;
  if (model.has_draft()) {
    FT_ASSIGN_OR_RETURN(drafter, InspectDrafter(model));
  }
  if (drafter.has_value()) {
    figures["draft"] = *drafter;
  } else if (model.has_draft()) {
    FT_ASSIGN_OR_RETURN(const Inspected draft,
                        Inspect(model.draft, model.draft_weights, ExpertsPlace::kMemory, model));
    same_vocabulary = CheckSameVocabulary(*target.tokenizer, *draft.tokenizer).ok();
    match = MatchVocabularies(*target.tokenizer, *draft.tokenizer);
    by_text = model.draft_by_text ||
              (!same_vocabulary && !CheckEnoughShared(match, *target.tokenizer).ok());
    figures["draft"] = draft.figures;
    if (!by_text && !model.draft_vocabulary.whole()) {
      FT_RETURN_IF_ERROR(ShowLimited(model, &figures["draft"]));
    }
    figures["same_vocabulary"] = same_vocabulary;
    figures["shared_tokens"] = match.shared;
    figures["by_text"] = by_text;
  }
  if (options.json) {
    fmt::print("{}\n", figures.dump(2));
  } else {
    PrintFigures(figures);
    if (drafter.has_value()) {
      fmt::print("\n");
      PrintDrafter(*drafter);
    } else if (figures.contains("draft")) {
      fmt::print("\n");
      PrintFigures(figures["draft"]);
      if (same_vocabulary) {
        fmt::print("\nThe draft has the target's vocabulary.\n");
      } else {
        fmt::print("\nThe draft has another vocabulary: {}.\n", match.Summary());
      }
      if (by_text) {
        fmt::print("It drafts by text{}, in modes sd, ensemble and auto.\n",
                   model.draft_by_text ? "" : ", since these are too few");
      }
    }
  }
  return 0;
}

}  // namespace

void AddInspectCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddCommand(
      app, "inspect", "Show what a model's folder or GGUF file holds and the memory it needs");
  const OptionGroup add(command);
  auto options = std::make_shared<InspectOptions>();
  AddTargetOptions(add, "path,-m,--target,--model", &options->model,
                   "The model, a folder or a GGUF file; by default the bundled models are shown");
  AddDraftOptions(add, &options->model,
                  "A draft (also -md): shown too, and its vocabulary compared");
  AddWeightsOptions(command, &options->model);
  add("--precision", &options->model.precision, "P",
      "How numbers would be kept: auto (default), bf16, f32 or portable, as `run` has it")
      ->check(IsPrecision());
  add("--kv", &options->model.kv, "FORMAT",
      "How keys and values would be: auto (default), bf16, f32 or q8_0, as `run` has it")
      ->check(IsKvFormat());
  AddContextOption(command, &options->model);
  add("--no-measuring", &options->no_measuring,
      "Leave out how fast the machine reads, and so the speed that it allows");
  add("--json", &options->json, "Print one JSON object");
  WhenChosen(command, chosen, [options] { return RunInspect(*options); });
}

}  // namespace foretoken
