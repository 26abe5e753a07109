#include "apps/foretoken/common/report_output.h"

#include <fmt/core.h>

#include "base/files/replace_file.h"

namespace foretoken {

Status WriteReport(const ReportFiles& files, const Json& report, const std::string& text,
                   const std::function<std::string(const Json&)>& page) {
  const std::string dump = report.dump(2) + "\n";
  fmt::print("{}", files.json == "-" ? dump : text);
  if (!files.json.empty() && files.json != "-") FT_RETURN_IF_ERROR(ReplaceFile(files.json, dump));
  return files.html.empty() ? Status() : ReplaceFile(files.html, page(report));
}

}  // namespace foretoken
