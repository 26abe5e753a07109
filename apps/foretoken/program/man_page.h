#pragma once

#include <string>

#include "apps/foretoken/program/command_tree.h"

namespace foretoken {

/// foretoken(1): every command with all its options, in the language of man(7).
std::string ManPage(const CommandFacts& root, const std::string& version);

}  // namespace foretoken
