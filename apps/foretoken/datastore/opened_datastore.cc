#include "apps/foretoken/datastore/opened_datastore.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "base/numbers/integers.h"
#include "base/threads/cores.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

Error NoDatastore(const std::string& directory) {
  return Invalid("{}: holds no datastore; `foretoken datastore build` makes one", directory);
}

}  // namespace

int DatastoreCommandOptions::Threads() const {
  return threads > 0 ? threads : Int(AvailableCores().size());
}

Result<std::unique_ptr<Tokenizer>> LoadTokenizer(DatastoreCommandOptions* options) {
  FT_RETURN_IF_ERROR(options->model.ResolveDefaults());
  return Tokenizer::Load(options->model.target);
}

TokenizerIdentity IdentityOf(const DatastoreCommandOptions& options, const Tokenizer& tokenizer) {
  return {options.model.TargetSource().label(), tokenizer.fingerprint(), tokenizer.vocabulary()};
}

DatastoreOptions OptionsFor(const DatastoreCommandOptions& options, TokenizerIdentity tokenizer) {
  DatastoreOptions result;
  result.tokenizer = std::move(tokenizer);
  result.limits.capacity_tokens = static_cast<std::uint64_t>(options.capacity_millions * 1e6);
  result.threads = options.Threads();
  return result;
}

Result<Manifest> ManifestOf(const fs::path& directory) {
  std::error_code error;
  if (!fs::exists(ManifestPath(directory), error)) return NoDatastore(directory.string());
  return ReadManifest(directory);
}

Result<std::unique_ptr<Datastore>> OpenToRead(const fs::path& directory) {
  FT_ASSIGN_OR_RETURN(const Manifest manifest, ManifestOf(directory));
  DatastoreOptions options;
  options.tokenizer = manifest.tokenizer;
  options.read_only = true;
  return Datastore::Open(directory, options);
}

Result<std::unique_ptr<Datastore>> OpenToRead(const DatastoreCommandOptions& options,
                                              const Tokenizer& tokenizer) {
  FT_ASSIGN_OR_RETURN(const fs::path directory,
                      NamespaceDirectory(options.directory, options.name_space));
  DatastoreOptions store_options = OptionsFor(options, IdentityOf(options, tokenizer));
  store_options.read_only = true;
  return Datastore::Open(directory, store_options);
}

Result<std::vector<std::string>> Namespaces(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (fs::exists(ManifestPath(at->path()), ignored)) {
      names.push_back(at->path().filename().string());
    }
  }
  if (names.empty()) return NoDatastore(directory);
  std::ranges::sort(names);
  return names;
}

std::string TextOf(const Tokenizer& tokenizer, std::span<const Token> tokens) {
  std::string text;
  for (const Token token : tokens) text += tokenizer.TokenBytes(token);
  if (tokenizer.DropsLeadingSpace() && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::string FormatDay(int day) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

}  // namespace foretoken
