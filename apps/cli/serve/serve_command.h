#pragma once

#include "cli/common/commands.h"
#include "cli/serve/served_model.h"

namespace foretoken {

/// AddServeCommand, with what opens the engines.
void AddServeCommand(CLI::App* app, CommandBody* chosen, EngineOpener open);

}  // namespace foretoken
