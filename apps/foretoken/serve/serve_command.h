#pragma once

#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/serve/served_model.h"

namespace foretoken {

/// AddServeCommand, with what opens the engines.
void AddServeCommand(CLI::App* app, CommandBody* chosen, EngineOpener open);

}  // namespace foretoken
