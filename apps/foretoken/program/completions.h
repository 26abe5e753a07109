#pragma once

#include <string>

#include "apps/foretoken/program/command_tree.h"

namespace foretoken {

/// Scripts that let a shell complete commands, options and their values.
std::string BashCompletions(const CommandFacts& root);
std::string ZshCompletions(const CommandFacts& root);
std::string FishCompletions(const CommandFacts& root);

}  // namespace foretoken
