#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/foretoken/common/report_output.h"
#include "apps/foretoken/options/options.h"
#include "base/result.h"
#include "core/datastore/datastore_tenant.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {

/// Options of all parts of `foretoken datastore`; each takes some.
struct DatastoreCommandOptions {
  std::string directory;
  std::string name_space = std::string(DatastoreDirectory::kShared);
  ModelOptions model;
  std::vector<std::string> files;
  std::string text;
  std::string html;
  std::string output;
  std::vector<int> lengths = {2, 4, 8, 16, 32};
  std::vector<std::uint64_t> documents;  ///< By number.
  std::string matching;
  int older_than_days = -1;
  double keep_tokens = -1;
  int most = 10;   ///< Documents that search shows.
  int listed = 0;  ///< Documents that info lists, the largest and the newest.
  int speculation_length = 16;
  int threads = 0;
  int prompt_tokens = 32;
  int limit = 0;
  double capacity_millions = 2048;
  bool all = false;
  bool json = false;

  ReportFiles Report() const { return {json ? "-" : "", html}; }
  int Threads() const;
};

Result<std::unique_ptr<Tokenizer>> LoadTokenizer(DatastoreCommandOptions* options);
TokenizerIdentity IdentityOf(const DatastoreCommandOptions& options, const Tokenizer& tokenizer);
DatastoreOptions OptionsFor(const DatastoreCommandOptions& options, TokenizerIdentity tokenizer);

/// The manifest in a namespace's folder; an error where there is none.
Result<Manifest> ManifestOf(const std::filesystem::path& directory);

/// Opens a namespace's folder for reading, whatever its tokenizer. A process that writes to it may
/// go on: what is there now is read.
Result<std::unique_ptr<Datastore>> OpenToRead(const std::filesystem::path& directory);
/// The same of the namespace that the options name, in the tokens of `tokenizer`.
Result<std::unique_ptr<Datastore>> OpenToRead(const DatastoreCommandOptions& options,
                                              const Tokenizer& tokenizer);

/// The namespaces below a directory, by name; an error where there is none.
Result<std::vector<std::string>> Namespaces(const std::string& directory);

/// The text of a document; special tokens have none. Not always valid UTF-8.
std::string TextOf(const Tokenizer& tokenizer, std::span<const Token> tokens);

/// A day (Arrivals) as 2026-11-25.
std::string FormatDay(int day);

}  // namespace foretoken
