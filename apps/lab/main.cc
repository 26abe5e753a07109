#include "apps/foretoken/program/program.h"
#include "apps/lab/common/study_commands.h"

namespace foretoken {
namespace {

// In the order of studies.inc.
void AddStudyCommands(CLI::App* app, CommandBody* chosen) {
  for (const auto add : {AddBenchCommand, AddVerifyCommand, AddCheckCommand, AddAuditCommand,
                         AddPerplexityCommand, AddCaptureCommand, AddRolloutCommand,
                         AddCalibrateCommand, AddPlanCommand, AddSkipSearchCommand}) {
    add(app, chosen);
  }
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) { return foretoken::Main(argc, argv, foretoken::AddStudyCommands); }
