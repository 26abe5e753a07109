#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace foretoken::server {

/// How many sequences each client has under way, so that one cannot take the places of all.
/// Thread-safe.
class ClientPlaces : public std::enable_shared_from_this<ClientPlaces> {
 public:
  /// Takes places for a client, given back when what is returned goes. Null, taking none, where it
  /// would have more than `limit`.
  std::shared_ptr<void> Take(const std::string& client, int places, int limit);

 private:
  void GiveBack(const std::string& client, int places);

  std::mutex mutex_;
  std::map<std::string, int> taken_;  // By client, where it has any.
};

}  // namespace foretoken::server
