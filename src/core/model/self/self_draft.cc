#include "core/model/self/self_draft.h"

#include <filesystem>
#include <string>

#include "base/text/parse_number.h"
#include "core/model/self/skip_set.h"
#include "core/model/self/trained_exit.h"

namespace foretoken {
namespace {

constexpr std::string_view kSkip = "skip=";

Result<SkippedSublayers> ReadExitLayers(std::string_view text, int layers) {
  int exit = 0;
  if (!ParseNumber(text, &exit)) {
    return InvalidInput(
        "write exit=E, E being the number of first layers that are run, or exit=FOLDER with the "
        "folder of a trained exit");
  }
  return SkippedByExit(exit, layers);
}

// A file where one is called so, since a list is an unlikely name.
Result<SkippedSublayers> ReadSkip(std::string_view text, int layers, std::string_view fingerprint) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(text, ignored)) {
    if (text.find_first_of("./") == std::string_view::npos) {
      return ParseSkippedSublayers(text, layers);
    }
    return Invalid("there is no file {}", text);
  }
  FT_ASSIGN_OR_RETURN(const SkipSet set, ReadSkipSet(std::string(text)));
  if (set.model != fingerprint) {
    return Invalid(
        "{} was searched for another model, or for other weights of it: search again with "
        "`foretoken skip-search`",
        text);
  }
  return set.skipped;
}

}  // namespace

bool IsSelfDraft(std::string_view own) {
  return own.starts_with(kExitDrafter) || own.starts_with(kSkip);
}

Result<SkippedSublayers> ReadSelfDraft(std::string_view own, int layers,
                                       std::string_view fingerprint) {
  const bool exits = own.starts_with(kExitDrafter);
  const std::string_view text = own.substr(exits ? kExitDrafter.size() : kSkip.size());
  Result<SkippedSublayers> read =
      exits ? ReadExitLayers(text, layers) : ReadSkip(text, layers, fingerprint);
  if (!read.ok()) return Invalid("self:{}: {}", own, read.error().message);
  return read;
}

}  // namespace foretoken
