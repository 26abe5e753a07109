#pragma once

// Golden folders of drafters that are heads, changed in memory.

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "core/model/drafters/own_drafter.h"
#include "core/model/families/read_config.h"
#include "core/model/open_checkpoint.h"
#include "json/json.h"

namespace foretoken {

class GoldenHeads : public testing::Test {
 protected:
  using Change = std::function<void(Checkpoint&, Json&)>;

  static std::filesystem::path Folder(const std::string& name) {
    return std::filesystem::path(FORETOKEN_SOURCE_DIR) / "tests/golden/drafters" / name;
  }
  static Checkpoint Open(const std::string& name) { return Checkpoint::Open(Folder(name)).value(); }

  // What a changed folder, or what it has by the name `own`, is for the target.
  Result<LearnedDraft> With(const std::string& name, const Change& change,
                            std::string_view own = "") {
    Checkpoint folder = Open(name);
    Json json = Json::Parse(folder.config.json);
    change(folder, json);
    folder.config.json = json.dump();
    return ReadDrafter(own, std::move(folder), target_, target_config_);
  }
  std::string Refusal(const std::string& name, const Change& change, std::string_view own = "") {
    const auto draft = With(name, change, own);
    return draft.ok() ? "no error" : draft.error().message;
  }
  Result<LearnedDraft> Read(const std::string& name) {
    return With(name, [](Checkpoint& /*folder*/, Json& /*json*/) {});
  }

  // A model that has heads beside all else runs as one.
  bool IsToldFromAModelWith(const char* count) {
    Checkpoint model = Open("target");
    Json json = Json::Parse(model.config.json);
    json[count] = 5;
    model.config.json = json.dump();
    return !IsLearnedDraft(model);
  }

  Checkpoint target_ = OpenCheckpoint(Folder("target"), "").value();
  ModelConfig target_config_ = *ReadModelConfig(target_);
};

}  // namespace foretoken
