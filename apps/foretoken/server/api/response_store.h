#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "foretoken/chat.h"

namespace foretoken::server {

/// The latest values, in memory, each for the client alone whose it is. The oldest go where a
/// client's come to more than `client_bytes`, or all to more than `bytes`. Thread-safe.
template <typename Value>
class ClientCache {
 public:
  ClientCache(std::size_t client_bytes, std::size_t bytes)
      : client_bytes_(client_bytes), most_bytes_(bytes) {}

  /// Keeps a value that counts as so many `bytes`, in place of one of the same id.
  void Keep(const std::string& client, const std::string& id, std::shared_ptr<const Value> value,
            std::size_t bytes) {
    if (bytes > client_bytes_) return;
    const std::lock_guard lock(mutex_);
    const Name name(client, id);
    if (const auto found = by_name_.find(name); found != by_name_.end()) Drop(found->second);
    entries_.push_back({name, std::move(value), bytes});
    by_name_[name] = std::prev(entries_.end());
    bytes_ += bytes;
    bytes_of_[client] += bytes;
    while (bytes_of_[client] > client_bytes_) {
      Drop(
          std::ranges::find(entries_, client, [](const Entry& entry) { return entry.name.first; }));
    }
    while (bytes_ > most_bytes_) Drop(entries_.begin());
  }

  /// Null where there is none.
  std::shared_ptr<const Value> Find(const std::string& client, const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = by_name_.find(Name(client, id));
    return found == by_name_.end() ? nullptr : found->second->value;
  }

  /// The same; what is used counts as the latest.
  std::shared_ptr<const Value> Use(const std::string& client, const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto found = by_name_.find(Name(client, id));
    if (found == by_name_.end()) return nullptr;
    entries_.splice(entries_.end(), entries_, found->second);
    return found->second->value;
  }

  /// Whether there was one.
  bool Remove(const std::string& client, const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto found = by_name_.find(Name(client, id));
    if (found == by_name_.end()) return false;
    Drop(found->second);
    return true;
  }

 private:
  using Name = std::pair<std::string, std::string>;  // A client's name, and a value's id.
  struct Entry {
    Name name;
    std::shared_ptr<const Value> value;
    std::size_t bytes = 0;
  };
  using Entries = std::list<Entry>;

  void Drop(typename Entries::iterator entry) {
    const auto of_client = bytes_of_.find(entry->name.first);
    of_client->second -= entry->bytes;
    if (of_client->second == 0) bytes_of_.erase(of_client);
    bytes_ -= entry->bytes;
    by_name_.erase(entry->name);
    entries_.erase(entry);
  }

  const std::size_t client_bytes_;
  const std::size_t most_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;  // The oldest first.
  std::map<Name, typename Entries::iterator> by_name_;
  std::map<std::string, std::size_t> bytes_of_;  // By client.
  std::size_t bytes_ = 0;
};

/// A response with what was said up to its end, so that a request can go on with it.
struct KeptResponse {
  std::shared_ptr<const KeptResponse> before;  ///< What it went on with; null: nothing.
  /// The turns of its input, then those of its answer.
  std::vector<ChatMessage> turns;
  std::vector<std::string> items;  ///< The ids of its answer's parts.
  std::string json;                ///< As it was answered.

  /// All turns up to its end.
  std::vector<ChatMessage> Conversation() const;
};

/// The latest responses, in memory, each for the client alone that asked for it, up to a limit for
/// a client and one for all. Thread-safe.
class ResponseStore {
 public:
  struct Limits {
    std::size_t client_bytes = std::size_t{16} << 20;  ///< What one client's conversations take.
    std::size_t bytes = std::size_t{256} << 20;        ///< What all take.
    std::size_t client_item_bytes = std::size_t{8} << 20;
    std::size_t item_bytes = std::size_t{128} << 20;
  };
  ResponseStore() : ResponseStore(Limits{}) {}
  explicit ResponseStore(const Limits& limits)
      : responses_(limits.client_bytes, limits.bytes),
        items_(limits.client_item_bytes, limits.item_bytes) {}

  /// Keeps a response, and the parts of its answer (JSON, by their ids) by themselves: those that
  /// were used last. An agent that names the parts of its conversation in each request so keeps
  /// them, however many responses there have been since.
  void Keep(const std::string& client, const std::string& id, KeptResponse response,
            const std::map<std::string, std::string>& items);
  /// Null where there is none.
  std::shared_ptr<const KeptResponse> Find(const std::string& client, const std::string& id) const;
  /// A part of an answer, by its id. Null where there is none.
  std::shared_ptr<const std::string> Item(const std::string& client, const std::string& id);
  /// Forgets a response and the parts of its answer. Whether there was one.
  bool Remove(const std::string& client, const std::string& id);

 private:
  ClientCache<KeptResponse> responses_;
  ClientCache<std::string> items_;
};

}  // namespace foretoken::server
