#pragma once

#include "apps/foretoken/common/command_line.h"

namespace foretoken {

inline constexpr int kSucceeded = 0;
inline constexpr int kCheckFailed = 1;
inline constexpr int kBadInput = 2;

// Each adds one subcommand to `app`; when the user chose it, parsing sets `chosen`.
void AddRunCommand(CLI::App* app, CommandBody* chosen);
void AddChatCommand(CLI::App* app, CommandBody* chosen);
void AddDemoCommand(CLI::App* app, CommandBody* chosen);
void AddServeCommand(CLI::App* app, CommandBody* chosen);
void AddInspectCommand(CLI::App* app, CommandBody* chosen);
void AddQuantizeCommand(CLI::App* app, CommandBody* chosen);
void AddPullCommand(CLI::App* app, CommandBody* chosen);
void AddListCommand(CLI::App* app, CommandBody* chosen);
void AddRemoveCommand(CLI::App* app, CommandBody* chosen);
void AddDevicesCommand(CLI::App* app, CommandBody* chosen);
void AddDatastoreCommand(CLI::App* app, CommandBody* chosen);
void AddTokenizeCommand(CLI::App* app, CommandBody* chosen);
void AddDetokenizeCommand(CLI::App* app, CommandBody* chosen);
void AddSpeculatorCommand(CLI::App* app, CommandBody* chosen);
void AddCompletionsCommand(CLI::App* app, CommandBody* chosen);
void AddManCommand(CLI::App* app, CommandBody* chosen);

}  // namespace foretoken
