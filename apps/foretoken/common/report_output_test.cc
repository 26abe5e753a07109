#include "apps/foretoken/common/report_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace foretoken {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The text of the page's element that holds the report.
std::string ReportIn(const std::string& page) {
  const std::string opening = "<script type=\"application/json\" id=\"report\">";
  const std::size_t begin = page.find(opening) + opening.size();
  return page.substr(begin, page.find('<', begin) - begin);
}

TEST(ReportPage, HoldsTheReportWhateverItsStringsSay) {
  const Json report = {{"kind", "bench"},
                       {"meta",
                        {{"target", "</script><script>alert(1)</script><!-- &lt; \"x\" \\ REPORT"},
                         {"<b>", ">REPORT<"}}},
                       {"sets", Json::array()}};
  const std::string page = ReportPage(report);
  EXPECT_EQ(Json::Parse(ReportIn(page)), report);
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
}

TEST(ReportPage, FetchesNothing) {
  const std::string page = ReportPage({{"kind", "bench"}});
  for (const char* fetched : {"http:", "https:", "src=", "@import", "url(", "<link"}) {
    EXPECT_THAT(page, Not(HasSubstr(fetched)));
  }
}

}  // namespace
}  // namespace foretoken
