#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/backend/device.h"
#include "core/draft/drafter.h"
#include "core/model/judge/judge_head.h"
#include "core/model/model.h"
#include "core/planner/open_plan.h"
#include "core/prediction/cost_model.h"
#include "core/speculation/plan.h"
#include "core/ssd/speculator_client.h"
#include "foretoken/engine.h"
#include "foretoken/tokenizer.h"

namespace foretoken {

class Scheduler;

/// What follows a prompt in a scripted run, the text's end too; nothing: what the target would say.
/// Called by whoever submits a request, from several threads at once.
using ScriptedAnswer = std::function<std::vector<Token>(std::span<const Token> prompt)>;

/// Timing studies only: whether proposals are accepted and hits happen is drawn, not computed; or
/// answers are given, and the target says them. The output is then not the model's, and everything
/// measured is labelled scripted.
struct Script {
  double acceptance = 0.8;
  double hit = 0.9;  ///< Chance that a bonus token is one the cache has prepared.
  std::uint64_t seed = 1;
  /// Where there is one, nothing is drawn: the logits of the answer's tokens are far above all
  /// others, so that they are chosen as far as a request's grammar and bans allow.
  ScriptedAnswer answer;
};

/// What is known of the times of an engine's passes before its first one: measured once, and good
/// for every engine with the same models on the same cores. Empty parts were not measured.
struct MeasuredTimes {
  TimeTable row_times;  ///< The times of the target's passes, for speculation lengths that pay.
  int knee_rows = 0;    ///< I_knee, for speculation lengths by the knee.
  CostModel costs;      ///< What the planner begins with.
};

/// A text that the engine has decoded, at its end.
struct DecodedText {
  std::span<const Token> tokens;  ///< Prompt and output.
  int prompt_tokens = 0;
  const SamplingParams* sampling = nullptr;
  TapRows taps;  ///< TapsOf the engine, of all tokens but the last.
};

/// What an engine is made with. What is left out follows from the rest: EngineSizes
/// (core/engine/rules.h).
struct EngineConfig {
  /// The plan of requests that bring none. An empty fan-out shape stands for kDefaultFanout at
  /// every node.
  SpeculationPlan plan;
  /// What mode auto may choose from; none: the engine plans nothing. A request whose plan is open
  /// is planned, round by round; so are all without a plan, where `plan` is open. MakeEngine adds
  /// and drops it as its modes and `plan` need one.
  std::optional<PlannerSettings> planner;
  /// The most nodes of a proposal that a request's plan may ask for; left out: as `plan`.
  std::optional<int> max_nodes;
// As in EngineOptions, from which Engine::Open copies them.
#define FORETOKEN_ENGINE_FIELD(type, name, value) type name = value;
#include "foretoken/tables/engine_fields.inc"
#undef FORETOKEN_ENGINE_FIELD
  /// The head of Lossy::kJudge; MakeEngine opens it.
  std::shared_ptr<const JudgeHead> judge = nullptr;
  std::optional<Script> script;
  std::int64_t speculator_delay_us = 0;  ///< Tests: it sleeps up to this long between its steps.
  /// States that passes keep behind those that the first draft reads.
  TapShape kept;
  /// Called on the engine's thread with each text that may be learned from: not of a request that
  /// was cancelled, asks for that (Request::learn) or has an adapter.
  std::function<void(const DecodedText&)> when_decoded;
  /// Called as the engine closes, if it has a planner: with what that believes of times, and the
  /// rounds that it learned from.
  std::function<void(const CostModel& learned, std::int64_t rounds)> when_closed;
};

/// Null where there is none.
using DraftersById = ByDrafter<std::unique_ptr<Drafter>>;

/// What an engine can propose with. A mode without its part is one that the engine does not offer;
/// autoregression and drafters that need the text alone are always there.
struct Proposers {
  DraftersById before;                           ///< On the target's device, before a pass.
  std::unique_ptr<SpeculatorClient> speculator;  ///< During a pass.
  ByDrafter<TapShape> taps;                      ///< What each reads of the target's passes.
};

/// An engine (foretoken/engine.h) of parts that were made elsewhere. `target`, its `device` and
/// `tokenizer` (may be null: no text, no stop strings) outlive it. `times` say how
/// long its passes take, as far as that was measured.
Result<std::unique_ptr<Engine>> CreateEngine(EngineConfig config, Model* target, Device* device,
                                             const Tokenizer* tokenizer, Proposers proposers,
                                             MeasuredTimes times = {});

/// What the engine was made with, complete.
const EngineConfig& ConfigOf(const Engine& engine);

/// The times that the engine was created with.
const MeasuredTimes& TimesOf(const Engine& engine);

/// What its target's passes keep for its first draft and, behind that, EngineConfig::kept.
const TapShape& TapsOf(const Engine& engine);

/// Who hands the target's blocks out, and where these lie. For the thread that steps the engine.
struct EngineKv {
  Scheduler* scheduler = nullptr;
  KvStore* store = nullptr;
};
EngineKv KvOf(Engine& engine);

/// Preempts the youngest running sequence now, as a full pool would: for tests.
void ForcePreemption(Engine& engine);

}  // namespace foretoken
