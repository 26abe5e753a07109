#include "apps/foretoken/serve/served_models.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "apps/foretoken/options/options.h"
#include "apps/foretoken/program/arguments.h"
#include "apps/foretoken/program/near_miss.h"
#include "apps/foretoken/program/settings.h"
#include "base/files/read_text.h"
#include "foretoken/chat.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFileInFolder = "models.toml";

// "NAME=REST"; the name is empty where there is none. A path with '=' in a folder's name has a
// slash before it.
std::pair<std::string, std::string> SplitName(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || text.find('/') < equals) return {{}, text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// The options of one model that a file may set.
struct SectionOptions {
  explicit SectionOptions(ServedOptions* options) {
    const OptionGroup add(&app, "Models");
    AddTargetOptions(add, "--target,--model", &options->model, "");
    add("--alias", &options->aliases, "NAME", "");
    AddServedOptions(&app, options);
  }

  CLI::App app;
};

// What a file says of all models (the section "") and of each, in the order of the file.
struct ModelsFile {
  struct Section {
    std::string name;
    std::vector<CLI::ConfigItem> items;
  };
  std::string path;
  std::vector<Section> sections;

  const Section* Find(std::string_view name) const {
    const auto found = std::ranges::find(sections, name, &Section::name);
    return found == sections.end() ? nullptr : &*found;
  }
};

Result<ModelsFile> ReadModelsFile(const std::string& path) {
  const Result<std::string> text = ReadText(path);
  if (!text.ok()) {
    return Invalid("cannot read the models in '{}': {}", path, text.error().message);
  }
  std::vector<CLI::ConfigItem> items;
  try {
    CLI::ConfigTOML reader;
    reader.parentSeparator('\n');  // Dots are part of names.
    std::istringstream stream(*text);
    items = reader.from_config(stream);
  } catch (const std::exception& error) {
    return Invalid("{}: {}", path, error.what());
  }
  ModelsFile file{.path = path, .sections = {}};
  for (const CLI::ConfigItem& item : items) {
    const std::string name = item.parents.empty() ? std::string() : item.parents.front();
    if (file.Find(name) == nullptr) file.sections.push_back({name, {}});
    const bool mark = item.name == "++" || item.name == "--";  // Where a section begins or ends.
    const auto section = std::ranges::find(file.sections, name, &ModelsFile::Section::name);
    if (!mark) section->items.push_back(item);
  }
  return file;
}

Status AddSettings(const ModelsFile& file, const ModelsFile::Section* section,
                   SectionOptions* options, std::vector<SettingsLevel>* levels) {
  if (section == nullptr) return {};
  const std::string place =
      section->name.empty() ? file.path : fmt::format("{} [{}]", file.path, section->name);
  SettingsLevel& level = levels->emplace_back();
  for (const CLI::ConfigItem& item : section->items) {
    CLI::Option* const option = options->app.get_option_no_throw("--" + item.name);
    if (option == nullptr || item.name == "help") {
      return Invalid("{}: a model has no option '{}'{}", place, item.name,
                     Suggestion(item.name, OptionNames(&options->app)));
    }
    level.push_back({option, item.name, item.inputs, place});
  }
  return {};
}

// A path that the file has, as seen from where the program runs.
void Rebase(const fs::path& folder, const std::string& unset, std::string* path) {
  if (*path == unset || path->empty() || path->starts_with(kSelf)) return;
  *path = (folder / *path).lexically_normal().string();
}

// The options of the model of that name: those of all, and what the file says.
Result<ServedOptions> OptionsOf(const ModelsFile& file, const std::string& name,
                                const ServedOptions& common) {
  ServedOptions options = common;
  SectionOptions section(&options);
  std::vector<SettingsLevel> levels;
  FT_RETURN_IF_ERROR(AddSettings(file, file.Find(name), &section, &levels));
  FT_RETURN_IF_ERROR(AddSettings(file, file.Find(""), &section, &levels));
  FT_RETURN_IF_ERROR(ApplySettings(levels));
  NoteGiven(&section.app, &options);
  const fs::path folder = fs::path(file.path).parent_path();
  Rebase(folder, common.model.target, &options.model.target);
  Rebase(folder, common.model.draft, &options.model.draft);
  if (options.model.further_drafts != common.model.further_drafts) {
    for (std::string& further : options.model.further_drafts) Rebase(folder, "", &further);
  }
  Rebase(folder, common.datastore.directory, &options.datastore.directory);
  if (!BuiltInChatTemplate(options.chat_template.source).has_value()) {
    Rebase(folder, common.chat_template.source, &options.chat_template.source);
  }
  return options;
}

// The name of a model in a folder of models, where the path is one: a folder with a configuration,
// or a GGUF file, of a split one the first part.
std::string NameOfModel(const fs::path& path) {
  constexpr std::string_view kPart = "-of-";
  constexpr std::string_view kFirst = "-00001";
  std::error_code ignored;
  if (fs::exists(path / "config.json", ignored)) return path.filename().string();
  if (path.extension() != ".gguf" || !fs::is_regular_file(path, ignored)) return {};
  std::string name = path.stem().string();
  const std::size_t part = name.rfind(kPart);
  if (part == name.npos || part < kFirst.size()) return name;
  const std::size_t number = part - kFirst.size();
  return name.substr(number, kFirst.size()) == kFirst ? name.substr(0, number) : std::string();
}

Result<std::map<std::string, std::string>> FindModels(const std::string& folder) {
  std::map<std::string, std::string> models;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = NameOfModel(at->path());
    if (!name.empty()) models.emplace(name, at->path().string());
  }
  if (error) {
    return Invalid("cannot read the folder '{}': {}", folder, error.message());
  }
  return models;
}

// What `--models` names: the models that lie in a folder, and those that its file names.
Status AddModels(const std::string& path, const ServedOptions& common,
                 std::vector<NamedModel>* models) {
  std::error_code ignored;
  const bool folder = fs::is_directory(path, ignored);
  std::map<std::string, std::string> found;
  ModelsFile file{.path = path, .sections = {}};
  if (folder) {
    FT_ASSIGN_OR_RETURN(found, FindModels(path));
    file.path = (fs::path(path) / kFileInFolder).string();
  }
  if (!folder || fs::exists(file.path, ignored)) {
    FT_ASSIGN_OR_RETURN(file, ReadModelsFile(file.path));
  }
  for (const auto& [name, model] : found) {
    FT_ASSIGN_OR_RETURN(ServedOptions options, OptionsOf(file, name, common));
    options.model.target = model;
    models->push_back({name, std::move(options)});
  }
  for (const ModelsFile::Section& section : file.sections) {
    if (section.name.empty() || found.contains(section.name)) continue;
    FT_ASSIGN_OR_RETURN(ServedOptions options, OptionsOf(file, section.name, common));
    if (options.model.target.empty() && options.model.hub_target.empty()) {
      return Invalid("{} [{}]: there is no model of that name; say which with target or hf-repo",
                     file.path, section.name);
    }
    models->push_back({section.name, std::move(options)});
  }
  return {};
}

// Gives "ALIAS=NAME" to the model of that name.
Status AddAliases(const std::vector<std::string>& aliases, std::vector<NamedModel>* models) {
  for (const std::string& text : aliases) {
    const std::size_t equals = text.find('=');
    const std::string name = equals == text.npos ? std::string() : text.substr(equals + 1);
    const auto model = std::ranges::find(*models, name, &NamedModel::id);
    if (name.empty() || model == models->end()) {
      return Invalid(
          "--alias '{}': with several models write ALIAS=NAME, with the name of one of them", text);
    }
    model->options.aliases.push_back(text.substr(0, equals));
  }
  return {};
}

}  // namespace

Result<std::vector<NamedModel>> ChooseModels(const ModelChoice& choice,
                                             const ServedOptions& common) {
  ServedOptions each = common;
  each.aliases.clear();
  std::vector<NamedModel> models;
  const auto add = [&](const std::string& text, std::string ModelOptions::*source) {
    auto [name, path] = SplitName(text);
    NamedModel& model = models.emplace_back(NamedModel{std::move(name), each});
    model.options.model.*source = path;
    if (model.id.empty()) model.id = ModelSource{.path = path, .synthetic = {}}.label();
  };
  for (const std::string& text : choice.targets) add(text, &ModelOptions::target);
  for (const std::string& text : choice.hub_targets) {
    add(text, &ModelOptions::hub_target);
    if (SplitName(text).first.empty()) models.back().id = text;
  }
  if (!choice.models.empty()) {
    FT_RETURN_IF_ERROR(AddModels(choice.models, each, &models));
    if (models.empty()) {
      return Invalid(
          "there is no model in '{}': no folder with a config.json, no GGUF file and no section of "
          "a {}",
          choice.models, kFileInFolder);
    }
  }
  if (choice.several()) {
    FT_RETURN_IF_ERROR(AddAliases(common.aliases, &models));
    return models;
  }
  if (models.empty()) models.push_back({{}, each});
  NamedModel& only = models.front();
  for (const auto* texts : {&choice.targets, &choice.hub_targets}) {
    if (!texts->empty()) only.id = SplitName(texts->front()).first;
  }
  for (const std::string& alias : common.aliases) {
    if (&alias == &common.aliases.front()) {
      only.id = alias;
    } else {
      only.options.aliases.push_back(alias);
    }
  }
  return models;
}

Status CheckDiffer(const std::vector<NamedModel>& models,
                   const std::vector<server::ModelSpec>& specs) {
  std::map<std::string, std::string> owners;
  const auto claim = [&owners](const std::string& name, const std::string& model) -> Status {
    if (owners.emplace(name, model).second) return {};
    return Invalid("two models are called '{}': give one of them another name, as in -m NAME=PATH",
                   name);
  };
  std::map<std::string, std::string> stores;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    FT_RETURN_IF_ERROR(claim(specs[i].id, specs[i].id));
    for (const std::string& alias : specs[i].aliases) {
      FT_RETURN_IF_ERROR(claim(alias, specs[i].id));
    }
    const std::string& store = models[i].options.datastore.directory;
    if (store.empty()) continue;
    const auto [other, added] = stores.emplace(fs::absolute(store).lexically_normal(), specs[i].id);
    if (added) continue;
    return Invalid(
        "the models '{}' and '{}' cannot share the datastore '{}': give each one of its own, in "
        "its section of the file that --models names",
        other->second, specs[i].id, store);
  }
  return {};
}

}  // namespace foretoken
