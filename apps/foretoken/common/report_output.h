#pragma once

#include <string>

#include "base/result.h"
#include "json/json.h"

namespace foretoken {

/// Where a command's report goes besides the terminal.
struct ReportFiles {
  std::string json;  ///< "-": to standard output, in place of the text.
  std::string html;
};

/// A page that draws `report`, whose "kind" says which report it is (report.html knows the kinds).
/// It has all in itself and fetches nothing.
std::string ReportPage(const Json& report);

/// Prints `text`, and writes `report` and its page where files are named.
Status WriteReport(const ReportFiles& files, const Json& report, const std::string& text);

}  // namespace foretoken
