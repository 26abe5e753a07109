#pragma once

#include <string>

#include "apps/foretoken/program/command_tree.h"

namespace foretoken {

/// Scripts that let a shell complete commands, options and their values.
std::string BashCompletions(const CommandFacts& root);
std::string ZshCompletions(const CommandFacts& root);
std::string FishCompletions(const CommandFacts& root);

/// foretoken(1): every command with all its options, in the language of man(7).
std::string ManPage(const CommandFacts& root, const std::string& version);

}  // namespace foretoken
