#include "cli/options/session.h"

#include "assembly/make_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foretoken {

Result<Mode> ChooseMode(const std::string& named, const SpeculationOptions& speculation,
                        ModelOptions* model) {
  FT_RETURN_IF_ERROR(model->ResolveDefaults());
  const bool fixed = speculation.tree_width > 1 || !speculation.ssd_preset.empty();
  Mode mode = fixed ? Mode::kSsd : Mode::kAuto;
  if (!named.empty()) {
    FT_ASSIGN_OR_RETURN(mode, ParseMode(named));
  }
  if (NeedsDraft(mode) && !model->has_draft()) {
    return InvalidInput(
        fmt::format("mode {} needs a draft model; name its folder with --draft, or use --mode ar",
                    ModeName(mode)));
  }
  return mode;
}

Result<std::unique_ptr<Session>> Session::Open(ModelOptions model, const CoreOptions& cores,
                                               const SpeculationOptions& speculation, Mode mode) {
  std::unique_ptr<Session> session(new Session);
  FT_ASSIGN_OR_RETURN(session->cores_, ResolveCores(cores));
  session->model_ = std::move(model);
  session->speculation_ = speculation;
  const bool spares_draft =
      mode == Mode::kSsd || (mode == Mode::kAuto && session->model_.has_draft());
  const bool all = !spares_draft && !cores.given();
  FT_ASSIGN_OR_RETURN(session->target_,
                      LoadShowingProgress(session->model_.TargetSource(),
                                          all ? session->cores_.all : session->cores_.target,
                                          session->model_.ParsedPrecision()));
  return session;
}

Result<int> Session::Context(int wanted) const {
  const int limit = target_->model->config().max_positions;
  if (speculation_.context > limit) {
    return InvalidInput(fmt::format("--context {} is more than the model's limit of {} tokens",
                                    speculation_.context, limit));
  }
  if (speculation_.context > 0) return speculation_.context;
  return wanted > 0 ? std::min(wanted, limit) : limit;
}

Result<std::unique_ptr<Engine>> Session::NewEngine(std::span<const Mode> modes, int batch,
                                                   int context) {
  FT_ASSIGN_OR_RETURN(const EngineOptions options, speculation_.ToEngineOptions(batch, context));
  return NewEngine(modes, options);
}

Result<std::unique_ptr<Engine>> Session::NewEngine(std::span<const Mode> modes,
                                                   const EngineOptions& options) {
  return MakeEngine(modes, options, target_.get(), MakeDraftSetup(model_, speculation_, cores_));
}

Status CheckPromptFits(std::size_t prompt_tokens, int context) {
  if (prompt_tokens < static_cast<std::size_t>(context)) return {};
  return InvalidInput(fmt::format(
      "the prompt has {} tokens, but the context holds {} with at least one of output; shorten it",
      prompt_tokens, context));
}

}  // namespace foretoken
