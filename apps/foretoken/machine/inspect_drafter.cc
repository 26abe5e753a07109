#include "apps/foretoken/machine/inspect_drafter.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/foretoken/common/terminal.h"
#include "core/model/config/sublayers.h"
#include "core/model/drafters/learned_draft.h"
#include "core/model/drafters/own_drafter.h"
#include "core/model/families/read_config.h"
#include "core/model/open_checkpoint.h"
#include "core/model/self/self_draft.h"
#include "door/assembly/loaded_model.h"

namespace foretoken {
namespace {

std::string ReadsText(const FeatureSpec& feature, int target_layers) {
  std::vector<std::string> parts;
  for (const int point : feature.points) {
    if (point == TapShape::kFinalState) {
      parts.emplace_back("the state after the final norm");
    } else if (point == target_layers) {
      parts.emplace_back("what leaves the last layer");
    } else {
      parts.push_back(fmt::format("what enters layer {}", point));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

int DraftedTokens(const LearnedDraft& draft) {
  if (draft.translation == nullptr) return draft.config.vocabulary;
  const std::vector<Token>& said = draft.translation->said;
  return std::ranges::count_if(said, [](Token token) { return token >= 0; });
}

bool IsShared(const TensorView& tensor, const Checkpoint& target) {
  return std::ranges::any_of(
      target.tensors, [&tensor](const auto& other) { return other.second.data == tensor.data; });
}

Json Figures(const LearnedDraft& draft, const Checkpoint& target, const ModelConfig& config,
             const std::string& path) {
  std::int64_t weights = 0;
  std::size_t bytes = 0;
  Json shared = Json::array();
  for (const auto& [name, tensor] : draft.checkpoint.tensors) {
    if (IsShared(tensor, target)) {
      shared.push_back(name == "head.weight" ? "head" : "embeddings");
      continue;
    }
    weights += tensor.elements();
    bytes += tensor.bytes();
  }
  return {{"path", path},
          {"kind", draft.config.architecture},
          {"layers", draft.config.layer_count()},
          {"heads", draft.config.feature.heads},
          {"hidden", draft.config.hidden},
          {"parameters", weights},
          {"bytes", bytes},
          {"shared", shared},
          {"reads", ReadsText(draft.config.feature, config.layer_count())},
          {"tap_points", draft.config.feature.points},
          {"tap_bytes_per_token", draft.config.feature.tap_width() * sizeof(BFloat16)},
          {"positions_per_pass", draft.config.parallel.positions},
          {"markov_rank", draft.config.markov.rank},
          {"says_confidence", draft.config.markov.confidence},
          {"drafted_tokens", DraftedTokens(draft)},
          {"target_tokens", config.vocabulary},
          {"notes", draft.notes}};
}

// A model without some sub-layers, as a draft of itself. Its keys and values are the target's on
// the conditions of docs/do/self_speculation.md that can be told without an engine.
Result<Json> SelfFigures(const ModelOptions& options) {
  FT_ASSIGN_OR_RETURN(const OpenedModel whole, OpenModel(options.TargetSource()));
  FT_ASSIGN_OR_RETURN(const OpenedModel draft, OpenModel(options.DraftSource()));
  const std::vector<LayerSpec>& layers = draft.config.layers;
  const bool shares_weights = draft.weights_of == whole.identity;
  const bool recurrent = std::ranges::any_of(whole.config.layers, &LayerSpec::is_recurrent);
  return Json{{"path", options.DraftSource().label()},
              {"kind", "the target without some of its layers"},
              {"layers", layers.size()},
              {"attention_layers", std::ranges::count_if(layers, HasMixer)},
              {"mlps", std::ranges::count_if(layers, HasMlp)},
              {"parameters", draft.config.parameters()},
              {"target_parameters", whole.config.parameters()},
              {"shares_weights", shares_weights},
              {"recurrent", recurrent},
              {"on_target_kv", shares_weights && !recurrent}};
}

std::string KeysAndValuesText(const Json& figures) {
  if (figures["on_target_kv"] == true) return "the target's in mode sd; in mode ssd its own";
  return fmt::format("its own, as {}", figures["recurrent"] == true
                                           ? "recurrent layers move one state on"
                                           : "its weights are");
}

void PrintSelf(const Json& figures) {
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("  {:<16}{}\n", name, value);
  };
  fmt::print("{}\n", figures["path"].get<std::string>());
  line("kind", figures["kind"].get<std::string>());
  line("runs", fmt::format("attention of {} and the MLPs of {} of {} layers",
                           figures["attention_layers"].dump(), figures["mlps"].dump(),
                           figures["layers"].dump()));
  line("parameters",
       fmt::format("{} of the target's {}", FormatCount(figures["parameters"].get<double>()),
                   FormatCount(figures["target_parameters"].get<double>())));
  line("weights", figures["shares_weights"] == true ? "the target's own, in the same memory"
                                                    : "converted: in memory of their own");
  line("keys, values", KeysAndValuesText(figures));
}

}  // namespace

Result<std::optional<Json>> InspectDrafter(const ModelOptions& options) {
  const bool there = std::filesystem::exists(options.draft);
  const std::string& own = options.own_drafter;
  if (IsSelfDraft(own)) {
    FT_ASSIGN_OR_RETURN(Json figures, SelfFigures(options));
    return std::optional(std::move(figures));
  }
  if (!there && own.empty()) return std::optional<Json>();
  FT_ASSIGN_OR_RETURN(Checkpoint files, Checkpoint::Open(options.draft));
  if (own.empty() && !IsLearnedDraft(files)) return std::optional<Json>();
  FT_ASSIGN_OR_RETURN(const Checkpoint target, OpenCheckpoint(options.target, ""));
  FT_ASSIGN_OR_RETURN(const ModelConfig config,
                      ReadModelConfig(target, options.context.value_or(0)));
  FT_ASSIGN_OR_RETURN(const LearnedDraft draft, ReadDrafter(own, std::move(files), target, config));
  return std::optional(Figures(draft, target, config, options.DraftSource().label()));
}

void PrintDrafter(const Json& figures) {
  if (figures.contains("shares_weights")) return PrintSelf(figures);
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("  {:<16}{}\n", name, value);
  };
  fmt::print("{}\n", figures["path"].get<std::string>());
  line("kind", figures["kind"].get<std::string>());
  line("parameters",
       fmt::format("{} of its own, {}", FormatCount(figures["parameters"].get<double>()),
                   FormatBytes(figures["bytes"].get<double>())));
  if (!figures["shared"].empty()) {
    line("shares",
         fmt::format("the target's {}",
                     fmt::join(figures["shared"].get<std::vector<std::string>>(), " and ")));
  }
  line("layers", figures["layers"].dump());
  if (figures["heads"] != 0) line("heads", figures["heads"].dump());
  line("hidden", figures["hidden"].dump());
  line("reads", fmt::format("{}: {} a token", figures["reads"].get<std::string>(),
                            FormatBytes(figures["tap_bytes_per_token"].get<double>())));
  line("drafts", fmt::format("{} of the target's {} tokens", figures["drafted_tokens"].get<int>(),
                             figures["target_tokens"].get<int>()));
  if (figures["positions_per_pass"] != 1) {
    line("in a pass", fmt::format("{} positions", figures["positions_per_pass"].dump()));
  }
  if (figures["markov_rank"] != 0) {
    line("token before",
         fmt::format("adds to logits, by {} numbers", figures["markov_rank"].dump()));
  }
  if (figures["says_confidence"] == true) {
    line("confidence", "says how likely tokens are to be accepted");
  }
  for (const Json& note : figures["notes"]) line("note", note.get<std::string>());
}

}  // namespace foretoken
