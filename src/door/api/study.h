#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "core/engine/engine.h"
#include "foretoken/engine.h"

namespace foretoken {

/// What the target is to say behind a prompt (ScriptedAnswer); none: its own. Called from several
/// threads at once.
using AnswerText = std::function<std::optional<std::string>(std::span<const Token> prompt)>;

/// What only studies of the engine ask for (`bench`, `verify`), beside what everybody does.
struct StudyOptions {
  std::optional<Script> script;          ///< Acceptance that is drawn, not computed.
  AnswerText answer;                     ///< What the target says in place of its own.
  std::int64_t speculator_delay_us = 0;  ///< The speculator sleeps up to this between its steps.
  int measuring_sweeps = 1;  ///< How often each time is measured; more where noise matters.
  const Engine* measured_with = nullptr;  ///< Times are those of an engine with the same models.
};

/// Engine::Open, for a study. What times it needs it measures afresh, whatever `options` say of
/// keeping them: its figures must not depend on earlier runs.
Result<std::unique_ptr<Engine>> OpenForStudy(std::shared_ptr<LanguageModel> target,
                                             const EngineOptions& options,
                                             const StudyOptions& study);

}  // namespace foretoken
