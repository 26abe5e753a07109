#pragma once

#include <string>
#include <vector>

#include "apps/lab/load/bench_server_load.h"
#include "json/json.h"

namespace foretoken {

/// One way to send the same prompts, whose answers must be the same as those of any other.
struct AuditCell {
  std::string name;
  bool speculates = true;
  int at_once = 1;     ///< Requests under way together.
  bool reuses = true;  ///< Sent after the same prompts, so that the server may find them cached.
};

/// The cells, the baseline first: without speculation, alone, cold. Where the server cannot be told
/// to leave speculation out (`switchable` false), all of them take it as it is.
std::vector<AuditCell> AuditCells(bool switchable, int batch);

/// Where two texts part.
struct Difference {
  std::size_t prompt = 0;
  std::size_t at = 0;  ///< Bytes that are the same.
  std::string baseline;
  std::string got;
};

/// How one cell's answers compare with the baseline's.
struct AuditResult {
  std::string cell;
  int same = 0;
  int failed = 0;  ///< Requests that got no whole answer, of either.
  std::vector<Difference> differences;
  std::string error;  ///< The error of the first request that failed.
};

/// Compares by text and, where the server counts tokens, by their number: a text that was cut
/// elsewhere has the same beginning.
AuditResult Compare(const AuditCell& cell, const std::vector<LoadRecord>& baseline,
                    const std::vector<LoadRecord>& records);

Json AuditJson(const std::vector<AuditResult>& results);
/// For a terminal: a line for each cell, and the first differences.
std::string RenderAudit(const Json& audit);

}  // namespace foretoken
