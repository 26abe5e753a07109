#pragma once

#include <string>
#include <vector>

namespace foretoken {

/// Runs the command that the arguments behind the program's name choose, and returns the exit code.
int RunProgram(std::vector<std::string> arguments);

}  // namespace foretoken
