#include "apps/foretoken/datastore/datastore_removal.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/datastore/datastore_contents.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostLogTokens = std::uint64_t{1} << 27;  // Logs never hold as many.

// Opens a namespace to remove some of it and nothing else: its capacity is as large as what it
// holds, so that none of it has to go for that.
Result<std::unique_ptr<Datastore>> OpenToRemove(const DatastoreCommandOptions& options,
                                                const TokenizerIdentity* tokenizer) {
  FT_ASSIGN_OR_RETURN(const fs::path directory,
                      NamespaceDirectory(options.directory, options.name_space));
  FT_ASSIGN_OR_RETURN(const Manifest manifest, ManifestOf(directory));
  DatastoreOptions store_options =
      OptionsFor(options, tokenizer != nullptr ? *tokenizer : manifest.tokenizer);
  std::uint64_t tokens = kMostLogTokens;
  for (const Manifest::SegmentEntry& entry : manifest.segments) tokens += entry.tokens;
  store_options.limits.capacity_tokens = std::max(store_options.limits.capacity_tokens, tokens);
  return Datastore::Open(directory, store_options);
}

// Removes what is unwanted, the namespace's folder too where nothing is left, and says so.
Result<int> RemoveAndTell(std::unique_ptr<Datastore> datastore, const char* done,
                          const std::function<bool(const StoredDocument&)>& unwanted) {
  const std::string where = datastore->directory().string();
  FT_ASSIGN_OR_RETURN(const RemovedDocuments removed, datastore->Remove(unwanted));
  const auto snapshot = datastore->snapshot();
  if (removed.documents == 0) {
    fmt::print("{}: none of its {} documents is meant; nothing was changed\n", where,
               snapshot->documents());
    return 0;
  }
  const bool empty = snapshot->segments.empty();
  fmt::print("{}: {} {} document{} of {} token{}; {}\n", where, done, removed.documents,
             removed.documents == 1 ? "" : "s", removed.tokens, removed.tokens == 1 ? "" : "s",
             empty ? std::string("nothing is left, and the namespace is gone")
                   : fmt::format("{} documents of {} tokens stay", snapshot->documents(),
                                 snapshot->tokens()));
  if (empty) FT_RETURN_IF_ERROR(Datastore::RemoveEmpty(std::move(datastore)));
  return 0;
}

Result<int> ForgetNumbers(const DatastoreCommandOptions& options) {
  FT_ASSIGN_OR_RETURN(auto datastore, OpenToRemove(options, nullptr));
  const std::set<std::uint64_t> numbers(options.documents.begin(), options.documents.end());
  const std::uint64_t documents = datastore->snapshot()->documents();
  for (const std::uint64_t number : {*numbers.begin(), *numbers.rbegin()}) {
    if (number >= 1 && number <= documents) continue;
    return Invalid("{}: there is no document {}; they are numbered from 1 to {}",
                   datastore->directory().string(), number, documents);
  }
  return RemoveAndTell(std::move(datastore), "forgot", [&](const StoredDocument& document) {
    return numbers.contains(document.number);
  });
}

Result<int> ForgetMatching(DatastoreCommandOptions options) {
  FT_ASSIGN_OR_RETURN(const auto tokenizer, LoadTokenizer(&options));
  const TokenizerIdentity identity = IdentityOf(options, *tokenizer);
  FT_ASSIGN_OR_RETURN(auto datastore, OpenToRemove(options, &identity));
  return RemoveAndTell(std::move(datastore), "forgot", [&](const StoredDocument& document) {
    return CountOccurrences(TextOf(*tokenizer, document.tokens), options.matching) > 0;
  });
}

}  // namespace

Result<int> RunForget(DatastoreCommandOptions options) {
  const bool by_number = !options.documents.empty();
  const bool by_text = !options.matching.empty();
  if (options.all + by_number + by_text != 1) {
    return InvalidInput(
        "what is to be forgotten? say one of --all, --document NUMBER... and --matching TEXT");
  }
  if (by_number) return ForgetNumbers(options);
  if (by_text) return ForgetMatching(std::move(options));
  FT_ASSIGN_OR_RETURN(auto datastore, OpenToRemove(options, nullptr));
  return RemoveAndTell(std::move(datastore), "forgot", [](const auto&) { return true; });
}

Result<int> RunExpire(const DatastoreCommandOptions& options) {
  const bool by_age = options.older_than_days >= 0;
  const bool by_size = options.keep_tokens >= 0;
  if (!by_age && !by_size) {
    return InvalidInput("what is to go? say --older-than DAYS or --keep-tokens N, or both");
  }
  FT_ASSIGN_OR_RETURN(auto datastore, OpenToRemove(options, nullptr));
  const int today =
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()).time_since_epoch() /
      std::chrono::days(1);
  // From each document on, the newest included.
  std::uint64_t left = datastore->snapshot()->tokens();
  return RemoveAndTell(std::move(datastore), "dropped", [&](const StoredDocument& document) {
    const bool too_old = by_age && document.day < today - options.older_than_days;
    const bool too_much = by_size && static_cast<double>(left) > options.keep_tokens;
    left -= document.tokens.size();
    return too_old || too_much;
  });
}

}  // namespace foretoken
