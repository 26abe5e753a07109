#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/thread_pool.h"
#include "grammar/constraint_compiler.h"
#include "model/model.h"
#include "ssd/hello.h"
#include "tokenizer/tokenizer.h"

namespace foretoken {

/// Where a model comes from: a Hugging Face folder, or random weights of a named shape.
struct ModelSource {
  std::string directory;
  std::string synthetic;  ///< A name that NamedShape knows; used when `directory` is empty.

  bool empty() const { return directory.empty() && synthetic.empty(); }
};

/// A model with the device it runs on. Tokenizer and constraints are null for synthetic models.
struct LoadedModel {
  std::unique_ptr<ThreadPool> pool;  ///< Null where the model shares another one's.
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<ConstraintCompiler> constraints;  ///< Grammars over the tokenizer's vocabulary.
  ModelIdentity identity;  ///< What both sides of a speculator's channel must have loaded.
};

/// Loads a model onto `cores` with the fastest CPU backend of this machine.
Result<std::unique_ptr<LoadedModel>> LoadModel(const ModelSource& source, const CoreSet& cores,
                                               Precision precision);

/// Loads a model onto the device that `pool` drives, which outlives it.
Result<std::unique_ptr<LoadedModel>> LoadModel(const ModelSource& source, ThreadPool* pool,
                                               Precision precision);

/// Refuses a draft whose vocabulary differs from the target's, the first differing token named.
Status CheckPair(const LoadedModel& target, const LoadedModel& draft);

}  // namespace foretoken
