#include "apps/foretoken/server/access/client_places.h"

namespace foretoken::server {

std::shared_ptr<void> ClientPlaces::Take(const std::string& client, int places, int limit) {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(client);
  const int before = found == taken_.end() ? 0 : found->second;
  if (places > limit - before) return nullptr;
  taken_[client] = before + places;
  return {this,
          [own = shared_from_this(), client, places](void*) { own->GiveBack(client, places); }};
}

void ClientPlaces::GiveBack(const std::string& client, int places) {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(client);
  found->second -= places;
  if (found->second == 0) taken_.erase(found);
}

}  // namespace foretoken::server
