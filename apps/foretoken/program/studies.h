#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}  // namespace CLI

namespace foretoken {

/// Adds the command of a study that studies.inc names, with its text and nothing else.
CLI::App* AddStudy(CLI::App* app, std::string_view name);

/// Adds the commands of all studies as they are where another program does them: they take any
/// argument, and nothing happens here.
void AddStudiesElsewhere(CLI::App* app);

/// Whether AddStudiesElsewhere added the command.
bool IsElsewhere(const CLI::App& command);

/// Replaces this program by foretoken-lab, which lies beside it and knows every command, with the
/// same arguments. Returns only where that cannot be started: why.
Status ContinueInLab(const std::vector<std::string>& arguments);

}  // namespace foretoken
