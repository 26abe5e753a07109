#pragma once

#include <string>
#include <string_view>

#include "apps/foretoken/common/prompts.h"
#include "apps/lab/bench/bench_report.h"
#include "base/result.h"
#include "foretoken/engine.h"
#include "json/json.h"

namespace foretoken {

/// The last number of a text, as GSM8K's answers end with one: "1234.5" of "That makes $1,234.50.";
/// empty where there is none.
std::string LastNumber(std::string_view text);

/// Scores what a mode wrote behind the prompts of `set`: how likely the model holds it, and how
/// many texts end with the number that their answers end with. `engine` is idle; its target, called
/// `model`, judges.
Result<WrittenTexts> ScoreTexts(Engine* engine, int batch, std::string_view model,
                                const EncodedSet& set, const ModeResult& mode);

/// What a set's modes have lost by a lossy rule, as a table; empty where nothing was scored.
std::string RenderLossyCost(const SetResult& set);
Json WrittenTextsJson(const WrittenTexts& written, const RequestStats& total);

}  // namespace foretoken
