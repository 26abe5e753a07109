#include "text/hub/hub_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/files/temporary_testing.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;

Result<HubSettings> Read(const std::vector<std::string>& variables) {
  std::vector<const char*> entries;
  for (const std::string& variable : variables) entries.push_back(variable.c_str());
  entries.push_back(nullptr);
  return ReadHubSettings(entries.data());
}

TEST(HubSettings, FindTheCacheAsTheHubsToolsDo) {
  EXPECT_EQ(Read({"HOME=/h"})->cache, "/h/.cache/huggingface/hub");
  EXPECT_EQ(Read({"HOME=/h", "XDG_CACHE_HOME=/x"})->cache, "/x/huggingface/hub");
  EXPECT_EQ(Read({"HOME=/h", "XDG_CACHE_HOME=/x", "HF_HOME=~/hf"})->cache, "/h/hf/hub");
  EXPECT_EQ(Read({"HF_HOME=/hf", "HF_HUB_CACHE=/c"})->cache, "/c");
  EXPECT_EQ(Read({"HF_HOME=", "HOME=/h"})->cache, "/h/.cache/huggingface/hub");
  EXPECT_THAT(Read({}).error().message, HasSubstr("there is no place for models"));
}

TEST(HubSettings, SayWhatIsAskedAndHowLong) {
  EXPECT_EQ(Read({"HOME=/h", "HF_ENDPOINT=http://127.0.0.1:80/hub//"})->endpoint,
            "http://127.0.0.1:80/hub");
  EXPECT_TRUE(Read({"HOME=/h"})->endpoint.starts_with("https://"));
  EXPECT_FALSE(Read({"HOME=/h", "HF_HUB_OFFLINE=0"})->offline);
  EXPECT_TRUE(Read({"HOME=/h", "HF_HUB_OFFLINE=true"})->offline);
  EXPECT_EQ(Read({"HOME=/h", "HF_HUB_DOWNLOAD_TIMEOUT=3"})->timeout, std::chrono::seconds(3));
  EXPECT_THAT(Read({"HOME=/h", "HF_HUB_DOWNLOAD_TIMEOUT=soon"}).error().message,
              HasSubstr("must be a number of seconds"));
  for (const char* bad : {"HF_ENDPOINT=hub.example.com", "HF_ENDPOINT=ftp://a",
                          "HF_ENDPOINT=http://", "HF_ENDPOINT=https://user@host"}) {
    EXPECT_THAT(Read({"HOME=/h", bad}).error().message, HasSubstr("HF_ENDPOINT is")) << bad;
  }
}

TEST(HubSettings, TakeTheTokenThatIsNearest) {
  const TemporaryFolder home;
  const std::string at_home = "HF_HOME=" + home.path().string();
  EXPECT_EQ(Read({at_home})->token, "");
  home.Write("token", "hf_stored\n");
  home.Write("other", " hf_other ");
  EXPECT_EQ(Read({at_home})->token, "hf_stored");
  EXPECT_EQ(Read({at_home, "HF_TOKEN_PATH=" + (home.path() / "other").string()})->token,
            "hf_other");
  EXPECT_EQ(Read({at_home, "HF_TOKEN=hf_given"})->token, "hf_given");
  EXPECT_EQ(Read({at_home, "HF_TOKEN=hf_given", "HF_HUB_DISABLE_IMPLICIT_TOKEN=1"})->token, "");
  // It becomes a line of a request.
  EXPECT_THAT(Read({at_home, "HF_TOKEN=a\r\nHost: b"}).error().message,
              HasSubstr("the token in HF_TOKEN has spaces"));
}

}  // namespace
}  // namespace foretoken
