#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "options.h"

namespace foretoken {

/// One loaded target and what is needed to make engines over it: what `run`, `chat` and `demo`
/// work with.
class Session {
 public:
  /// Checks the options, then loads the target: on its own cores, or on the draft's too where
  /// `mode` is not ssd and the user named no cores.
  static Result<std::unique_ptr<Session>> Open(ModelOptions model, const CoreOptions& cores,
                                               const SpeculationOptions& speculation, Mode mode);

  LoadedModel& target() { return *target_; }
  const Tokenizer& tokenizer() const { return *target_->tokenizer; }
  const Cores& cores() const { return cores_; }

  /// The context limit: `--context`, or the model's. `wanted` tokens are enough where the user did
  /// not say; 0 wants all.
  Result<int> Context(int wanted) const;

  Result<std::unique_ptr<Engine>> NewEngine(Mode mode, int batch, int context);
  /// One that offers several modes; the first is that of requests which name none.
  Result<std::unique_ptr<Engine>> NewEngine(std::span<const Mode> modes,
                                            const EngineOptions& options);

 private:
  Session() = default;
  ModelOptions model_;
  SpeculationOptions speculation_;
  Cores cores_;
  std::unique_ptr<LoadedModel> target_;
};

/// The mode the user named, or the best that the models allow. Fills in the default models.
Result<Mode> ChooseMode(const std::string& named, ModelOptions* model);

/// Refuses a prompt that leaves no room for output in `context`.
Status CheckPromptFits(std::size_t prompt_tokens, int context);

}  // namespace foretoken
