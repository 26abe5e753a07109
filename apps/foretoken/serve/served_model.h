#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/foretoken/options/model_sampling.h"
#include "apps/foretoken/options/options.h"
#include "apps/foretoken/server/service.h"
#include "base/result.h"

namespace foretoken {

/// What opens the engine of a model that is served.
using EngineOpener = std::function<Result<std::unique_ptr<Engine>>(std::shared_ptr<LanguageModel>,
                                                                   const EngineOptions&)>;

/// What can be said of each model that is served.
struct ServedOptions : DecodingOptions {
  std::vector<std::string> aliases;  ///< How clients may call it.
  std::string modes;
  int batch = 16;
  int queue = 256;
  int max_lookahead = 16;
  std::string learn_draft;  ///< The folder of LearningOptions; empty: the draft does not learn.
  int learn_draft_mb = 1024;
  ModelSamplingOptions model_sampling;
  std::string key_namespace;  ///< In place of --namespace where API keys say so; empty: none do.
  server::ServiceOptions service;
  EngineOpener open = &Engine::Open;  ///< Another one makes its models say what it wants.
};

/// All but those that say which target.
void AddServedOptions(CLI::App* app, ServedOptions* options);
/// Notes in `options` which of those were given, once `app` has read them.
void NoteGiven(CLI::App* app, ServedOptions* options);

/// The model as the server takes it: finds it (and fetches it, where it is named as on a hub),
/// checks its options and says which cores it takes, so this is for before any thread is pinned.
/// `id` empty: what its files are called. What is in them is only seen when it is loaded.
Result<server::ModelSpec> SpecOf(ServedOptions options, std::string id);

/// The modes of requests to a model, that of those which name none first.
Result<std::vector<Mode>> ModesToOffer(const ServedOptions& options, Mode first);

}  // namespace foretoken
