#pragma once

#include <string>
#include <vector>

#include "apps/foretoken/common/commands.h"

namespace CLI {
class App;
}  // namespace CLI

namespace foretoken {

/// Adds commands to `app`; parsing sets `chosen` to what the one that the user chose does.
using AddCommands = void (*)(CLI::App* app, CommandBody* chosen);

/// Runs the command that the arguments behind the program's name choose, and returns the exit code.
/// `add_studies` adds those of the studies of the engine; null where foretoken-lab has them.
int RunProgram(std::vector<std::string> arguments, AddCommands add_studies);

/// What main() does: the same, with what a program needs around it.
int Main(int argc, char** argv, AddCommands add_studies);

}  // namespace foretoken
