#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "foretoken/model.h"
#include "foretoken/result.h"
#include "foretoken/types.h"

namespace foretoken {

class DatastoreDirectory;
class DatastoreTenant;

/// A folder of texts that retrieval looks in beside the prompt, and that finished outputs may
/// enter: a namespace that everybody shares and reads only, and one for each tenant. Outlives the
/// engines whose requests name it. Thread-safe.
class DatastoreFolder {
 public:
  static constexpr std::string_view kDefault =
      "default";  ///< The namespace of those that name none.

  /// Opens the folder for a model's tokenizer. With `learn` outputs may enter it, and it is made
  /// where it is missing, its owner's alone; without it a folder that is not there is refused.
  /// `log` is told when outputs cannot be written, and when they can again, from any thread.
  static Result<std::unique_ptr<DatastoreFolder>> Open(
      const std::string& directory, const LanguageModel& model, bool learn,
      std::function<void(std::string_view)> log = {});
  ~DatastoreFolder();

  /// An error unless a tenant's namespace may have this name.
  static Status CheckNamespace(std::string_view name);

  /// What Request::datastore takes: the namespace of this name, the default one where it is empty.
  /// The folder outlives it. At most 256 are open: those that nobody holds make room for others,
  /// and where 256 are held a further one is refused (kUnavailable).
  Result<std::shared_ptr<DatastoreTenant>> Tenant(std::string_view name);

  /// An output enters the tenant's namespace: what follows the first `prompt_tokens` of `tokens`.
  static void Learn(DatastoreTenant& tenant, std::span<const Token> tokens, int prompt_tokens);

  /// How many outputs could not be kept since the start.
  std::uint64_t LostOutputs() const;
  /// Whether outputs can be kept now; else why not. They are again when writing works again.
  Status Learning() const;

  /// Returns when everything learned is on disk.
  Status Flush();

 private:
  explicit DatastoreFolder(std::unique_ptr<DatastoreDirectory> directory);
  std::unique_ptr<DatastoreDirectory> directory_;
};

}  // namespace foretoken
