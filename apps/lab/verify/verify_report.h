#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/lab/verify/verify_plan.h"
#include "foretoken/speculation.h"
#include "foretoken/tokenizer.h"
#include "json/json.h"

namespace foretoken {

/// How tokens are chosen: one column of the table.
struct VerifySetting {
  float temperature = 0;
  std::size_t sampler_set = 0;
};

/// How they are decoded: one row.
struct VerifyConfiguration {
  Mode mode = Mode::kAr;
  int batch = 1;
  bool prefix_cache = false;
  std::vector<int> identical;  ///< Outputs that agree, per setting.

  std::string label() const;
};

/// Where an output first departs from that of AR.
struct VerifyDifference {
  std::size_t configuration = 0;
  std::size_t setting = 0;
  std::size_t prompt = 0;
  int position = 0;
  Token expected = -1;  ///< -1: none, the output ended before.
  Token found = -1;
  double top2_gap = -1;  ///< Between the target's two highest logits there; -1: not looked at.
};

/// All that `foretoken verify` found.
struct VerifyReport {
  int max_tokens = 0;
  std::vector<SamplerSet> sampler_sets;
  std::vector<std::string> prompt_names;
  int too_long = 0;
  std::vector<VerifySetting> settings;
  std::vector<VerifyConfiguration> configurations;
  std::vector<VerifyDifference> differences;
  int preemptions = 0;
  int kills = 0;

  std::size_t outputs() const {
    return prompt_names.size() * settings.size() * configurations.size();
  }
};

/// Counts per configuration, and the first `show` differences in detail.
std::string RenderVerifyReport(const VerifyReport& report, const Tokenizer& tokenizer,
                               std::size_t show);

/// What the report itself knows; which models were compared is the command's to add.
Json VerifyReportJson(const VerifyReport& report);

}  // namespace foretoken
