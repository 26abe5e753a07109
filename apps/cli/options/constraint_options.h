#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "foretoken/model.h"
#include "foretoken/sampling.h"

namespace foretoken {

/// What the output must match, at most one of them.
struct ConstraintOptions {
  std::string grammar_file;
  std::string json_schema;      ///< A file, or the schema itself, which begins with '{'.
  std::string response_format;  ///< "json"

  bool given() const {
    return !grammar_file.empty() || !json_schema.empty() || !response_format.empty();
  }
};

void AddConstraintOptions(CLI::App* app, ConstraintOptions* options);

/// Sets the constraint of `sampling` for `target`, which must have a tokenizer. Does nothing where
/// none was given.
Status Constrain(const ConstraintOptions& options, const LanguageModel& target,
                 SamplingParams* sampling);

}  // namespace foretoken
