#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/engine.h"
#include "grammar/constraint_compiler.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace foretoken {

/// Where a model comes from: a Hugging Face folder, or random weights of a named shape.
struct ModelSource {
  std::string directory;
  std::string synthetic;  ///< A name that NamedShape knows; used when `directory` is empty.
};

/// A model with the device it runs on. Tokenizer and constraints are null for synthetic models.
struct LoadedModel {
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<ConstraintCompiler> constraints;  ///< Grammars over the tokenizer's vocabulary.
};

/// Loads a model onto `cores` with the fastest CPU backend of this machine.
Result<std::unique_ptr<LoadedModel>> LoadModel(const ModelSource& source, const CoreSet& cores,
                                               Precision precision);

/// The draft side of an engine: which model, and for SSD on which cores and in which process.
struct DraftSetup {
  ModelSource source;
  CoreSet cores;  ///< SSD only; SD drafts on the target's cores.
  Precision precision = Precision::kBF16;
  bool process = false;       ///< SSD: a separate process over shared memory.
  std::string executable;     ///< The foretoken program, for `process`.
  std::int64_t delay_us = 0;  ///< Tests: the speculator sleeps up to this long between its steps.
};

/// An engine over a loaded target that offers `modes`; the first one is that of requests without a
/// plan. For SD and SSD the draft is loaded here; a draft whose vocabulary differs from the
/// target's is refused with the first differing token named. Several engines may share a target as
/// long as one thread steps them, one at a time.
Result<std::unique_ptr<Engine>> MakeEngine(std::span<const Mode> modes, EngineOptions options,
                                           LoadedModel* target, const DraftSetup& draft);

/// ... of one mode.
Result<std::unique_ptr<Engine>> MakeEngine(Mode mode, const EngineOptions& options,
                                           LoadedModel* target, const DraftSetup& draft);

/// The main loop of a speculator process (`foretoken speculator`, started by the engine itself):
/// loads the draft, serves the shared memory of file descriptor `memory_fd`, returns at shutdown.
Status RunSpeculatorProcess(const ModelSource& source, const CoreSet& cores, Precision precision,
                            int memory_fd);

}  // namespace foretoken
