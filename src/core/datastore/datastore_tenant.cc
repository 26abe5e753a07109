#include "core/datastore/datastore_tenant.h"

#include <algorithm>
#include <utility>

namespace foretoken {

DatastoreTenant::DatastoreTenant(const Datastore* shared, std::unique_ptr<Datastore> own,
                                 bool learns)
    : own_(std::move(own)),
      learns_(learns && own_ != nullptr),
      readers_{SnapshotReader(shared), SnapshotReader(own_.get())} {}

SegmentList DatastoreTenant::Segments() {
  bool changed = false;
  for (SnapshotReader& reader : readers_) changed |= reader.Refresh();
  if (changed) {
    segments_.clear();
    for (SnapshotReader& reader : readers_) {
      const auto& segments = reader.Latest().segments;
      segments_.insert(segments_.end(), segments.begin(), segments.end());
    }
  }
  std::erase_if(segments_, [](const auto& segment) { return segment->lost(); });
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
  Learn(tokens.subspan(std::max(prompt_tokens - kContextTokens, 0)));
}

void DatastoreTenant::RemoveIfEmpty() {
  if (!learns_ || !own_->empty()) return;
  learns_ = false;
  const Status ignored = Datastore::RemoveEmpty(std::move(own_));  // What stays is in nobody's way.
  (void)ignored;
}

Result<std::unique_ptr<DatastoreDirectory>> DatastoreDirectory::Open(
    const std::filesystem::path& directory, DatastoreOptions options, bool learn) {
  std::error_code error;
  if (!learn && !std::filesystem::is_directory(directory, error)) {
    return Invalid(
        "{}: is no datastore; `foretoken datastore build` makes one, or --learn fills it",
        directory.string());
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

Result<std::shared_ptr<DatastoreTenant>> DatastoreDirectory::Tenant(std::string_view name) {
  FT_RETURN_IF_ERROR(CheckTenantName(name));
  FT_ASSIGN_OR_RETURN(const std::filesystem::path path, NamespaceDirectory(directory_, name));
  const std::scoped_lock lock(mutex_);
  ++calls_;
  if (const auto found = tenants_.find(name); found != tenants_.end()) {
    found->second.asked = calls_;
    return found->second.tenant;
  }
  if (tenants_.size() == kMaxTenants) FT_RETURN_IF_ERROR(MakeRoom());
  std::unique_ptr<Datastore> own;
  DatastoreOptions options = options_;
  options.read_only = !learn_;
  std::error_code error;
  if (learn_ || std::filesystem::exists(ManifestPath(path), error)) {
    FT_ASSIGN_OR_RETURN(own, Datastore::Open(path, options));
  }
  auto tenant = std::make_shared<DatastoreTenant>(shared_.get(), std::move(own), learn_);
  tenants_.emplace(name, OpenTenant{tenant, calls_});
  return tenant;
}

// Closes a tenant that nobody else holds: who does not hold it already can only get it from here.
Status DatastoreDirectory::MakeRoom() {
  auto chosen = tenants_.end();
  for (auto at = tenants_.begin(); at != tenants_.end(); ++at) {
    if (at->second.tenant.use_count() > 1) continue;
    const auto rank = [](const OpenTenant& open) {
      return std::pair(!open.tenant->empty(), open.asked);
    };
    if (chosen == tenants_.end() || rank(at->second) < rank(chosen->second)) chosen = at;
  }
  if (chosen == tenants_.end()) {
    return Unavailable(
        "requests under way use {} namespaces of the datastore, and no more can be open: use one "
        "of them, or try again later",
        kMaxTenants);
  }
  closed_lost_ += chosen->second.tenant->learning().lost;
  chosen->second.tenant->RemoveIfEmpty();
  tenants_.erase(chosen);
  return {};
}

Status DatastoreDirectory::Flush() {
  const std::scoped_lock lock(mutex_);
  for (const auto& [name, open] : tenants_) FT_RETURN_IF_ERROR(open.tenant->Flush());
  return {};
}

LearningState DatastoreDirectory::learning() {
  LearningState all;
  const std::scoped_lock lock(mutex_);
  if (shared_ != nullptr) all.failure = shared_->learning().failure;
  all.lost = closed_lost_;
  for (const auto& [name, open] : tenants_) {
    const LearningState one = open.tenant->learning();
    if (all.failure.ok()) all.failure = one.failure;
    all.lost += one.lost;
  }
  return all;
}

}  // namespace foretoken
