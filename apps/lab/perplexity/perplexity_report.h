#pragma once

#include <cstdint>
#include <string>

#include "core/model/measure/text_score.h"
#include "foretoken/kv_format.h"
#include "foretoken/precision.h"
#include "json/json.h"

namespace foretoken {

/// Which model was read with.
struct ScoredModel {
  std::string name;
  Precision precision = Precision::kBF16;
  KvFormat kv = KvFormat::kBF16;
};

/// A text's score, and what it is the score of.
struct PerplexityReport {
  ScoredModel model;
  ScoredModel against;  ///< Without a name: there is none.
  std::string text;     ///< The file's path.
  std::int64_t text_tokens = 0;
  TextWindows windows;
  std::int64_t scored_bytes = 0;  ///< The bytes of the scored tokens.
  TextScore score;
  double seconds = 0;
};

/// Bits per byte of the scored tokens, where a token loses `loss` nats; NaN where these have no
/// bytes.
double BitsPerByte(const PerplexityReport& report, const Mean& loss);

/// For `--json`. What is not known is null.
Json PerplexityJson(const PerplexityReport& report);

/// For people.
std::string PerplexityText(const PerplexityReport& report);

}  // namespace foretoken
