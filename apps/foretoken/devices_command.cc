#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "options.h"
#include "terminal.h"

namespace foretoken {
void AddDevicesCommand(CLI::App* app, CommandBody* chosen) {
  (void)app;
  (void)chosen;
}
}  // namespace foretoken
