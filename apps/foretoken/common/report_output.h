#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "json/json.h"

namespace foretoken {

/// Where a command's report goes besides the terminal.
struct ReportFiles {
  std::string json;  ///< "-": to standard output, in place of the text.
  std::string html;
};

/// Prints `text`, and writes `report` and the page that is made of it where files are named.
Status WriteReport(const ReportFiles& files, const Json& report, const std::string& text,
                   const std::function<std::string(const Json&)>& page = {});

}  // namespace foretoken
