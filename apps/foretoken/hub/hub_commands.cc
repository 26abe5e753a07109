// Models that are fetched from a hub by name: into the cache, what is in it, and out of it.

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/hub_models.h"
#include "apps/foretoken/options/options.h"
#include "json/json.h"
#include "text/hub/cache/hub_cache.h"
#include "text/hub/hub_settings.h"
#include "text/hub/repository/choose_files.h"
#include "text/hub/repository/model_name.h"

namespace foretoken {
namespace {

struct HubCommandOptions {
  std::string name;
  bool yes = false;
  bool json = false;
};

Result<int> Pull(const HubCommandOptions& options) {
  FT_ASSIGN_OR_RETURN(const ModelName name, ParseModelName(options.name));
  FT_ASSIGN_OR_RETURN(const std::string path, FindHubModel(name, HubQuestion::kAlways));
  fmt::print("{}\n", path);
  return kSucceeded;
}

Json JsonOf(const std::string& repository, const CachedModel& model,
            const CachedRevision& revision) {
  Json files = Json::array();
  for (const CachedFile& file : revision.files) {
    files.push_back({{"path", file.path}, {"bytes", file.size}});
  }
  return {{"name", repository},        {"commit", revision.commit},
          {"refs", revision.refs},     {"path", model.Snapshot(revision.commit).string()},
          {"bytes", revision.bytes()}, {"files", std::move(files)}};
}

// What a revision is called: by its branches and tags, else by its commit.
std::string RevisionText(const CachedRevision& revision) {
  constexpr std::size_t kShortCommit = 12;
  return revision.refs.empty() ? revision.commit.substr(0, kShortCommit)
                               : fmt::format("{}", fmt::join(revision.refs, ", "));
}

Result<int> List(const HubCommandOptions& options) {
  FT_ASSIGN_OR_RETURN(const HubSettings settings, ReadHubSettings(environ));
  TextTable table({"model", "revision", "files", "size"});
  Json listed = Json::array();
  for (const std::string& repository : CachedRepositories(settings.cache)) {
    const CachedModel model(settings.cache, repository);
    for (const CachedRevision& revision : model.Revisions()) {
      listed.push_back(JsonOf(repository, model, revision));
      table.Add({repository, RevisionText(revision), std::to_string(revision.files.size()),
                 FormatBytes(static_cast<double>(revision.bytes()))});
    }
  }
  if (options.json) {
    fmt::print("{}\n", listed.dump(2));
  } else if (listed.empty()) {
    fmt::print("No models in {}\n", settings.cache.string());
  } else {
    fmt::print("{}", table.Render());
  }
  return kSucceeded;
}

// What is to go, and how many bytes it has at most.
struct Plan {
  Removal removal;
  std::uint64_t bytes = 0;
};

Result<Plan> PlanRemoval(const ModelName& name, const CachedModel& model) {
  Plan plan;
  if (name.named_revision) {
    const auto commit = model.CommitOf(*name.named_revision);
    if (!commit) {
      return Invalid("the cache has no {}; `foretoken list` shows what it has", name.Text());
    }
    plan.removal.commit = *commit;
  }
  // Or there is only what an interrupted fetch has left.
  std::error_code ignored;
  bool found =
      !name.named_revision && name.part.empty() && std::filesystem::exists(model.folder(), ignored);
  for (CachedRevision& revision : model.Revisions()) {
    if (name.named_revision && revision.commit != plan.removal.commit) continue;
    if (!name.part.empty()) {
      std::vector<std::string> paths;
      for (const CachedFile& file : revision.files) paths.push_back(file.path);
      const std::vector<std::string> chosen = FilesCalled(paths, name);
      std::erase_if(revision.files, [&](const CachedFile& file) {
        return std::ranges::find(chosen, file.path) == chosen.end();
      });
      plan.removal.paths.insert(plan.removal.paths.end(), chosen.begin(), chosen.end());
      if (chosen.empty()) continue;
    }
    found = true;
    plan.bytes += revision.bytes();
  }
  if (found) return plan;
  return Invalid("the cache has no {}; `foretoken list` shows what it has", name.Text());
}

// Whether somebody at the terminal says so.
Result<bool> Agreed(const std::string& question) {
  if (!IsTerminal(stdin)) {
    return InvalidInput("rm asks before it removes, and nobody can answer: --yes goes without");
  }
  fmt::print(stderr, "{} [y/N] ", question);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

Result<int> Remove(const HubCommandOptions& options) {
  FT_ASSIGN_OR_RETURN(const ModelName name, ParseModelName(options.name));
  FT_ASSIGN_OR_RETURN(const HubSettings settings, ReadHubSettings(environ));
  const CachedModel model(settings.cache, name.repository);
  FT_ASSIGN_OR_RETURN(const Plan plan, PlanRemoval(name, model));
  if (!options.yes) {
    FT_ASSIGN_OR_RETURN(
        const bool agreed,
        Agreed(fmt::format("Remove {}, {}, from {}?", name.Text(),
                           FormatBytes(static_cast<double>(plan.bytes)), settings.cache.string())));
    if (!agreed) return kCheckFailed;
  }
  FT_ASSIGN_OR_RETURN(const std::uint64_t freed,
                      RemoveCached(settings.cache, name.repository, plan.removal));
  fmt::print("{}: {} freed\n", name.Text(), FormatBytes(static_cast<double>(freed)));
  return kSucceeded;
}

constexpr const char* kCacheFooter =
    "Models lie in the cache of Hugging Face's own tools and in its layout: HF_HUB_CACHE, else "
    "HF_HOME/hub, else ~/.cache/huggingface/hub. What these have fetched is used, and the other "
    "way round.";

}  // namespace

void AddPullCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddCommand(
      app, "pull", "Fetch a model from a hub by its name, or bring it up to date; prints its path");
  const OptionGroup add(command);
  auto options = std::make_shared<HubCommandOptions>();
  add("name", &options->name, "NAME",
      "ORG/NAME, ORG/NAME:Q4_K_M, ORG/NAME:FILE.gguf; with @REVISION behind ORG/NAME a branch, tag "
      "or commit")
      ->required();
  SetFooter(command,
            fmt::format("An interrupted fetch goes on where it was; files count once their hashes "
                        "are right. Variables: HF_ENDPOINT (the hub's address), HF_TOKEN (or a "
                        "token that a login has left), HF_HUB_OFFLINE=1 (ask for nothing), "
                        "HF_HUB_DOWNLOAD_TIMEOUT (seconds without a byte, 10).\n{}",
                        kCacheFooter));
  WhenChosen(command, chosen, [options] { return Pull(*options); });
}

void AddListCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddCommand(app, "list", "Show the models that have been fetched by name");
  const OptionGroup add(command);
  auto options = std::make_shared<HubCommandOptions>();
  add("--json", &options->json, "Print a JSON array, with every file");
  SetFooter(command, kCacheFooter);
  WhenChosen(command, chosen, [options] { return List(*options); });
}

void AddRemoveCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddCommand(app, "rm", "Remove a model that has been fetched by name");
  const OptionGroup add(command);
  auto options = std::make_shared<HubCommandOptions>();
  add("name", &options->name, "NAME",
      "ORG/NAME: all of it; ORG/NAME@REVISION: what only that revision has; ORG/NAME:Q4_K_M or "
      "ORG/NAME:FILE.gguf: these files")
      ->required();
  add("-y,--yes", &options->yes, "Do not ask");
  WhenChosen(command, chosen, [options] { return Remove(*options); });
}

}  // namespace foretoken
