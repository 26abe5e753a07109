#include "apps/foretoken/common/report_output.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/files/replace_file.h"

namespace foretoken {

Status WriteReport(const ReportFiles& files, const nlohmann::json& report, const std::string& text,
                   const std::function<std::string(const nlohmann::json&)>& page) {
  const std::string dump =
      report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  fmt::print("{}", files.json == "-" ? dump : text);
  if (!files.json.empty() && files.json != "-") FT_RETURN_IF_ERROR(ReplaceFile(files.json, dump));
  return files.html.empty() ? Status() : ReplaceFile(files.html, page(report));
}

}  // namespace foretoken
