#pragma once

#include <string>
#include <vector>

#include "apps/foretoken/serve/served_model.h"
#include "base/result.h"

namespace foretoken {

/// Which models a server is to serve.
struct ModelChoice {
  std::vector<std::string> targets;      ///< [NAME=]PATH
  std::vector<std::string> hub_targets;  ///< [NAME=]ORG/NAME..., as of a hub.
  std::string models;                    ///< A folder with models, or a file that names some.

  /// Whether they are served one by one, each by its name; else there is one, which answers by any.
  bool several() const { return !models.empty() || targets.size() + hub_targets.size() > 1; }
};

/// A model's options and its name; empty: what its files are called.
struct NamedModel {
  std::string id;
  ServedOptions options;
};

/// The models that were chosen, all with the options that `common` says, unless the file with
/// models says otherwise for all or for one of them:
///
///   context = 8192              # for all
///   [qwen]                      # a model's name
///   target = "qwen.gguf"        # or hf-repo; not where the folder has a model of that name
///   draft = "small.gguf"        # options of `serve` that are for a model
///
/// In a folder that file is models.toml; paths in it begin where it lies. The aliases in `common`
/// are those of one model, or of the form ALIAS=NAME.
Result<std::vector<NamedModel>> ChooseModels(const ModelChoice& choice,
                                             const ServedOptions& common);

/// Refuses names that two models have, and datastores that two models would use.
Status CheckDiffer(const std::vector<NamedModel>& models,
                   const std::vector<server::ModelSpec>& specs);

}  // namespace foretoken
