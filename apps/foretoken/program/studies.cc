#include "apps/foretoken/program/studies.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "apps/foretoken/options/options.h"
#include "base/check.h"

namespace foretoken {
namespace {

struct StudyText {
  std::string_view name;
  const char* text;
};

constexpr StudyText kStudies[] = {
#define STUDY(name, text) {#name, text},
#include "apps/foretoken/program/studies.inc"
#undef STUDY
};

}  // namespace

CLI::App* AddStudy(CLI::App* app, std::string_view name) {
  const auto* const study = std::ranges::find(kStudies, name, &StudyText::name);
  FT_CHECK(study != std::end(kStudies), "studies.inc has no {}", name);
  return app->add_subcommand(std::string(name), study->text);
}

void AddStudiesElsewhere(CLI::App* app) {
  for (const StudyText& study : kStudies) {
    CLI::App* const command = AddStudy(app, study.name);
    command->set_help_flag();
    command->prefix_command();
  }
}

bool IsElsewhere(const CLI::App& command) { return command.get_prefix_command(); }

Status ContinueInLab(const std::vector<std::string>& arguments) {
  const std::filesystem::path self = ExecutablePath();
  const std::string lab = (self.parent_path() / "foretoken-lab").string();
  std::vector<char*> argv = {const_cast<char*>("foretoken")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::fflush(nullptr);
  execv(lab.c_str(), argv.data());
  return Invalid(
      "this is a command of foretoken-lab, the studies of the engine, which cannot be started from "
      "'{}' ({}); ./run builds it when such a command is given, as does the target foretoken-lab",
      lab, std::strerror(errno));
}

}  // namespace foretoken
