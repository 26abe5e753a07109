#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/bench/bench_report.h"
#include "foretoken/engine.h"
#include "foretoken/tokenizer.h"

namespace foretoken {

/// The last number of a text, as GSM8K's answers end with one: "1234.5" of "That makes $1,234.50.";
/// empty where there is none.
std::string LastNumber(std::string_view text);

/// Scores what a mode wrote: how likely the model holds it, and how many texts end with the number
/// that `answers` end with (empty ones, or a shorter list: not known). `engine` is idle; its target
/// judges. `tokenizer` may be null: no answers are read.
Result<WrittenTexts> ScoreTexts(Engine* engine, const Tokenizer* tokenizer, int batch,
                                std::span<const std::vector<Token>> prompts,
                                std::span<const std::vector<Token>> outputs,
                                std::span<const std::string> answers);

/// What a set's modes have lost by a lossy rule, as a table; empty where nothing was scored.
std::string RenderLossyCost(const SetResult& set);
nlohmann::json WrittenTextsJson(const WrittenTexts& texts, const RequestStats& total);

}  // namespace foretoken
