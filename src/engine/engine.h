#pragma once

#include <memory>

#include "backend/device.h"
#include "base/result.h"
#include "engine/engine_config.h"
#include "foretoken/engine.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace foretoken {

/// An engine (foretoken/engine.h) of parts that were made elsewhere. `target`, its `device` and
/// `tokenizer` (may be null: no text, no stop strings) outlive it.
Result<std::unique_ptr<Engine>> CreateEngine(EngineConfig config, Model* target, Device* device,
                                             const Tokenizer* tokenizer, Proposers proposers,
                                             const MeasuredTimes& times = {});

/// What the engine was made with, complete.
const EngineConfig& ConfigOf(const Engine& engine);
/// As CreateEngine was given them.
const MeasuredTimes& TimesOf(const Engine& engine);

/// Preempts the youngest running sequence now, as a full pool would: for tests.
void ForcePreemption(Engine& engine);

}  // namespace foretoken
