#pragma once

#include <cstdint>

#include "core/speculation/plan.h"
#include "foretoken/stats.h"

namespace foretoken {

/// How each mode's measured speed compares with its predictions.
class ModeRecords {
 public:
  /// `rounds` alike of a mode, for one of which `predicted_tokens` had been predicted.
  void Add(Mode mode, int rounds, double tokens, double us, double predicted_tokens);

  /// What predictions of the mode are multiplied with, and its standard deviation.
  double correction(Mode mode) const;
  double doubt(Mode mode) const;
  ByMode<ModeReport> Report() const;

 private:
  struct Record {
    std::int64_t rounds = 0;
    // Decayed.
    double tokens = 0;
    double us = 0;
    double predicted_tokens = 0;
  };

  ByMode<Record> records_{};
};

}  // namespace foretoken
