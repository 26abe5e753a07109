#pragma once

#include "apps/foretoken/common/commands.h"

namespace foretoken {

// Each adds the command of one study to `app`; when the user chose it, parsing sets `chosen`.
void AddBenchCommand(CLI::App* app, CommandBody* chosen);
void AddVerifyCommand(CLI::App* app, CommandBody* chosen);
void AddCheckCommand(CLI::App* app, CommandBody* chosen);
void AddAuditCommand(CLI::App* app, CommandBody* chosen);
void AddPerplexityCommand(CLI::App* app, CommandBody* chosen);
void AddCaptureCommand(CLI::App* app, CommandBody* chosen);
void AddRolloutCommand(CLI::App* app, CommandBody* chosen);
void AddCalibrateCommand(CLI::App* app, CommandBody* chosen);
void AddPlanCommand(CLI::App* app, CommandBody* chosen);
void AddSkipSearchCommand(CLI::App* app, CommandBody* chosen);

}  // namespace foretoken
