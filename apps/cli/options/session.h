#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "cli/options/options.h"

namespace foretoken {

/// One loaded target and what is needed to make engines over it: what `run`, `chat` and `demo`
/// work with.
class Session {
 public:
  /// Checks the options, then loads the target: on its own cores, or on the draft's too where
  /// `mode` never leaves these to a draft and the user named no cores.
  static Result<std::unique_ptr<Session>> Open(ModelOptions model, const CoreOptions& cores,
                                               const SpeculationOptions& speculation, Mode mode);

  LoadedModel& target() { return *target_; }
  const Tokenizer& tokenizer() const { return *target_->tokenizer; }
  const Cores& cores() const { return cores_; }

  /// The context limit: `--context`, or the model's. `wanted` tokens are enough where the user did
  /// not say; 0 wants all.
  Result<int> Context(int wanted) const;

  /// One that offers several modes; the first is that of requests which name none.
  Result<std::unique_ptr<Engine>> NewEngine(std::span<const Mode> modes, int batch, int context);
  Result<std::unique_ptr<Engine>> NewEngine(Mode mode, int batch, int context) {
    return NewEngine(std::span(&mode, 1), batch, context);
  }
  Result<std::unique_ptr<Engine>> NewEngine(std::span<const Mode> modes,
                                            const EngineOptions& options);

 private:
  Session() = default;
  ModelOptions model_;
  SpeculationOptions speculation_;
  Cores cores_;
  std::unique_ptr<LoadedModel> target_;
};

/// The mode the user named; else auto, or ssd for what auto does not choose among (trees, presets).
/// Fills in the default models.
Result<Mode> ChooseMode(const std::string& named, const SpeculationOptions& speculation,
                        ModelOptions* model);

/// Refuses a prompt that leaves no room for output in `context`.
Status CheckPromptFits(std::size_t prompt_tokens, int context);

}  // namespace foretoken
