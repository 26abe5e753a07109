#pragma once

#include "apps/foretoken/common/commands.h"

namespace CLI {
class App;
}  // namespace CLI

namespace foretoken {

/// Adds commands to `app`; parsing sets `chosen` to what the one that the user chose does.
using AddCommands = void (*)(CLI::App* app, CommandBody* chosen);

/// What main() does: runs the command that the arguments choose, and returns the exit code.
/// `add_studies` adds the commands of the studies of the engine; null where foretoken-lab has them.
int Main(int argc, char** argv, AddCommands add_studies);

}  // namespace foretoken
