#include "apps/foretoken/options/hub_models.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>

#include "apps/foretoken/common/interrupts.h"
#include "apps/foretoken/common/terminal.h"
#include "text/hub/fetch_model.h"
#include "text/hub/hub_settings.h"

namespace foretoken {
namespace {

// Ctrl-C is something to ask about while this lives.
struct CaughtInterrupts {
  CaughtInterrupts() { CatchInterrupts(); }
  ~CaughtInterrupts() { LetInterruptsEnd(); }
  CaughtInterrupts(const CaughtInterrupts&) = delete;
  CaughtInterrupts& operator=(const CaughtInterrupts&) = delete;
};

}  // namespace

Result<std::string> FindHubModel(const ModelName& name, HubQuestion question) {
  const std::string text = name.Text();
  FT_ASSIGN_OR_RETURN(const HubSettings settings, ReadHubSettings(environ));
  const CaughtInterrupts caught;
  ProgressBar bar(text, 0);
  const FetchHooks hooks{
      .cancelled = Interrupted,
      .progress =
          [&bar](std::string_view doing, std::uint64_t done, std::uint64_t all) {
            bar.SetLabel(fmt::format(
                "{}{}", doing,
                all == 0 ? "" : fmt::format(", {} in all", FormatBytes(static_cast<double>(all)))));
            bar.Show(done, all);
          },
      .warn = [](const std::string& warning) { PrintWarning(warning); }};
  const Result<std::filesystem::path> path = question == HubQuestion::kAlways
                                                 ? PullModel(name, settings, hooks)
                                                 : FindModel(name, settings, hooks);
  if (path.ok()) return path->string();
  if (path.error().code != ErrorCode::kCancelled) return path.error();
  return Error{ErrorCode::kCancelled,
               fmt::format("interrupted while fetching {}: what has come stays, and the same "
                           "command goes on from there",
                           text)};
}

Result<std::string> FetchHubModel(const std::string& name, const FetchListener& listener) {
  FT_ASSIGN_OR_RETURN(const ModelName parsed, ParseModelName(name));
  FT_ASSIGN_OR_RETURN(const HubSettings settings, ReadHubSettings(environ));
  const FetchHooks hooks{
      .cancelled = listener.cancelled,
      .progress = [&listener](std::string_view, std::uint64_t done,
                              std::uint64_t all) { listener.progress(done, all); },
      .warn = [](const std::string& warning) { PrintWarning(warning); }};
  FT_ASSIGN_OR_RETURN(const std::filesystem::path path, PullModel(parsed, settings, hooks));
  return path.string();
}

}  // namespace foretoken
