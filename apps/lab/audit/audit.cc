#include "apps/lab/audit/audit.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/numbers/integers.h"
#include "base/text/utf8.h"

namespace foretoken {
namespace {

constexpr std::size_t kShownDifferences = 3;
constexpr std::size_t kShownText = 60;

// A piece of text around `at` for people to look at, in one line.
std::string Around(const std::string& text, std::size_t at) {
  std::size_t begin = at > kShownText / 2 ? at - kShownText / 2 : 0;
  while (begin < at && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
  return (begin > 0 ? "..." : "") + Shortened(std::string_view(text).substr(begin), kShownText);
}

}  // namespace

std::vector<AuditCell> AuditCells(bool switchable, int batch) {
  const std::string together = fmt::format("{} at once", batch);
  std::vector<AuditCell> cells;
  for (const bool speculates : {false, true}) {
    if (!speculates && !switchable) continue;
    const std::string how = speculates ? "with speculation" : "without speculation";
    if (cells.empty()) cells.push_back({how + ", alone, cold", speculates, 1, false});
    cells.push_back({how + ", alone, prefix known", speculates, 1, true});
    cells.push_back({how + ", " + together, speculates, batch, true});
  }
  return cells;
}

AuditResult Compare(const AuditCell& cell, const std::vector<LoadRecord>& baseline,
                    const std::vector<LoadRecord>& records) {
  AuditResult result{.cell = cell.name};
  for (std::size_t i = 0; i < baseline.size(); ++i) {
    for (const LoadRecord* record : {&baseline[i], &records[i]}) {
      if (!record->ok() && result.error.empty()) {
        result.error = fmt::format("{}: {}", record->error, record->message);
      }
    }
    const std::string& wanted = baseline[i].text;
    const std::string& got = records[i].text;
    if (!baseline[i].ok() || !records[i].ok()) {
      ++result.failed;
    } else if (wanted == got && baseline[i].counted_tokens == records[i].counted_tokens) {
      ++result.same;
    } else {
      const auto parted = std::mismatch(wanted.begin(), wanted.end(), got.begin(), got.end());
      result.differences.push_back({i, Size(parted.first - wanted.begin()), wanted, got});
    }
  }
  return result;
}

Json AuditJson(const std::vector<AuditResult>& results) {
  Json cells = Json::array();
  bool lossless = true;
  for (const AuditResult& result : results) {
    lossless = lossless && result.differences.empty() && result.failed == 0;
    Json differences = Json::array();
    for (const Difference& difference : result.differences) {
      differences.push_back({{"prompt", difference.prompt},
                             {"same_bytes", difference.at},
                             {"baseline", difference.baseline},
                             {"got", difference.got}});
    }
    cells.push_back({{"cell", result.cell},
                     {"same", result.same},
                     {"different", result.differences.size()},
                     {"failed", result.failed},
                     {"error", result.error},
                     {"differences", std::move(differences)}});
  }
  return {{"lossless", lossless}, {"cells", std::move(cells)}};
}

std::string RenderAudit(const Json& audit) {
  std::string text = fmt::format("{:<40} {:>6} {:>10} {:>7}\n", "", "same", "different", "failed");
  std::string shown;
  for (const Json& cell : audit["cells"]) {
    text += fmt::format("{:<40} {:>6} {:>10} {:>7}\n", cell["cell"].get<std::string>(),
                        cell["same"].get<int>(), cell["different"].get<int>(),
                        cell["failed"].get<int>());
    if (cell["failed"] > 0) {
      shown += fmt::format("\n{}: {}\n", cell["cell"].get<std::string>(),
                           cell["error"].get<std::string>());
    }
    for (std::size_t i = 0; i < std::min(kShownDifferences, cell["differences"].size()); ++i) {
      const Json& difference = cell["differences"][i];
      const auto at = difference["same_bytes"].get<std::size_t>();
      shown +=
          fmt::format("\n{}, prompt {}, after {} bytes:\n  baseline {}\n  got      {}\n",
                      cell["cell"].get<std::string>(), difference["prompt"].get<std::size_t>() + 1,
                      at, Json(Around(difference["baseline"], at)).dump(),
                      Json(Around(difference["got"], at)).dump());
    }
  }
  return text + shown +
         (audit["lossless"] == true
              ? "\nEvery answer is the same as the first one: no loss was seen.\n"
              : "\nAnswers differ: this is not lossless as it is served.\n");
}

}  // namespace foretoken
