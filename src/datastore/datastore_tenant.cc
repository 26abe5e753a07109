#include "datastore/datastore_tenant.h"

#include <fmt/core.h>

#include <algorithm>

namespace foretoken {

DatastoreTenant::DatastoreTenant(const Datastore* shared, std::unique_ptr<Datastore> own,
                                 bool learns)
    : own_(std::move(own)),
      learns_(learns && own_ != nullptr),
      readers_{SnapshotReader(shared), SnapshotReader(own_.get())} {}

SegmentList DatastoreTenant::Segments() {
  bool changed = false;
  for (SnapshotReader& reader : readers_) changed |= reader.Refresh();
  if (!changed) return segments_;
  segments_.clear();
  for (SnapshotReader& reader : readers_) {
    const auto& segments = reader.Latest().segments;
    segments_.insert(segments_.end(), segments.begin(), segments.end());
  }
  return segments_;
}

void DatastoreTenant::Learn(std::span<const Token> document) {
  if (!learns_) return;
  // A model may have more tokens than its tokenizer; a document with such a one is not kept.
  const Status ignored = own_->Learn(document);
  (void)ignored;
}

void DatastoreTenant::LearnOutput(std::span<const Token> tokens, int prompt_tokens) {
  constexpr int kContextTokens = 4;
  Learn(tokens.subspan(static_cast<std::size_t>(std::max(prompt_tokens - kContextTokens, 0))));
}

Result<std::unique_ptr<DatastoreDirectory>> DatastoreDirectory::Open(
    const std::filesystem::path& directory, DatastoreOptions options, bool learn) {
  std::error_code error;
  if (!learn && !std::filesystem::is_directory(directory, error)) {
    return InvalidInput(fmt::format(
        "{}: is no datastore; `foretoken datastore build` makes one, or --learn fills it",
        directory.string()));
  }
  std::unique_ptr<DatastoreDirectory> opened(
      new DatastoreDirectory(directory, std::move(options), learn));
  const std::filesystem::path shared = directory / kShared;
  if (std::filesystem::exists(ManifestPath(shared), error)) {
    DatastoreOptions reading = opened->options_;
    reading.read_only = true;
    FT_ASSIGN_OR_RETURN(opened->shared_, Datastore::Open(shared, reading));
  }
  return opened;
}

Status DatastoreDirectory::CheckTenantName(std::string_view name) {
  FT_RETURN_IF_ERROR(NamespaceDirectory({}, name));
  if (name != kShared) return {};
  return InvalidInput("the datastore's namespace 'shared' is everybody's: choose another name");
}

Result<DatastoreTenant*> DatastoreDirectory::Tenant(std::string_view name) {
  FT_RETURN_IF_ERROR(CheckTenantName(name));
  FT_ASSIGN_OR_RETURN(const std::filesystem::path path, NamespaceDirectory(directory_, name));
  const std::scoped_lock lock(mutex_);
  if (const auto found = tenants_.find(name); found != tenants_.end()) {
    return found->second.get();
  }
  if (tenants_.size() == kMaxTenants) {
    return InvalidInput(
        fmt::format("{} namespaces of the datastore are open, and no more can be: use one of them",
                    kMaxTenants));
  }
  std::unique_ptr<Datastore> own;
  DatastoreOptions options = options_;
  options.read_only = !learn_;
  std::error_code error;
  if (learn_ || std::filesystem::exists(ManifestPath(path), error)) {
    FT_ASSIGN_OR_RETURN(own, Datastore::Open(path, options));
  }
  auto tenant = std::make_unique<DatastoreTenant>(shared_.get(), std::move(own), learn_);
  return tenants_.emplace(name, std::move(tenant)).first->second.get();
}

Status DatastoreDirectory::Flush() {
  const std::scoped_lock lock(mutex_);
  for (const auto& [name, tenant] : tenants_) FT_RETURN_IF_ERROR(tenant->Flush());
  return {};
}

LearningState DatastoreDirectory::learning() {
  LearningState all;
  const std::scoped_lock lock(mutex_);
  for (const auto& [name, tenant] : tenants_) {
    const LearningState one = tenant->learning();
    if (all.failure.ok()) all.failure = one.failure;
    all.lost += one.lost;
  }
  return all;
}

}  // namespace foretoken
