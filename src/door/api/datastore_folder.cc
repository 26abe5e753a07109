#include <utility>

#include "base/exhaustion.h"
#include "base/result.h"
#include "core/datastore/datastore_tenant.h"
#include "foretoken/datastore.h"
#include "foretoken/engine.h"

namespace foretoken {

DatastoreFolder::DatastoreFolder(std::unique_ptr<DatastoreDirectory> directory)
    : directory_(std::move(directory)) {}
DatastoreFolder::~DatastoreFolder() = default;

Result<std::unique_ptr<DatastoreFolder>> DatastoreFolder::Open(const std::string& directory,
                                                               const LanguageModel& model,
                                                               bool learn, LogSink log) {
  const Tokenizer* tokenizer = model.tokenizer();
  if (tokenizer == nullptr) {
    return InvalidInput("a datastore needs a model with a tokenizer; a synthetic one has none");
  }
  DatastoreOptions options;
  options.tokenizer = {model.source().label(), tokenizer->fingerprint(), tokenizer->vocabulary()};
  options.log = std::move(log);
  FT_ASSIGN_OR_RETURN(auto opened, DatastoreDirectory::Open(directory, options, learn));
  return std::unique_ptr<DatastoreFolder>(new DatastoreFolder(std::move(opened)));
}

Status DatastoreFolder::CheckNamespace(std::string_view name) {
  return DatastoreDirectory::CheckTenantName(name);
}

Result<std::shared_ptr<DatastoreTenant>> DatastoreFolder::Tenant(std::string_view name) {
  return OrExhausted([&] { return directory_->Tenant(name.empty() ? kDefault : name); });
}

void DatastoreFolder::Learn(DatastoreTenant& tenant, std::span<const Token> tokens,
                            int prompt_tokens) {
  tenant.LearnOutput(tokens, prompt_tokens);
}

std::uint64_t DatastoreFolder::LostOutputs() const { return directory_->learning().lost; }

Status DatastoreFolder::Learning() const { return directory_->learning().failure; }

Status DatastoreFolder::Flush() { return directory_->Flush(); }

}  // namespace foretoken
