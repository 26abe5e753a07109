#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "foretoken/chat.h"

namespace foretoken::server {

/// A response with what was said up to its end, so that a request can go on with it.
struct KeptResponse {
  std::shared_ptr<const KeptResponse> before;  ///< What it went on with; null: nothing.
  std::vector<ChatMessage> turns;              ///< Of its input, then of its answer.
  std::string json;                            ///< As it was answered.

  /// All turns up to its end.
  std::vector<ChatMessage> Conversation() const;
};

/// The latest responses, in memory, each for the client alone that asked for it. The oldest go
/// where a client's come to more than `client_bytes`, or all to more than `bytes`. Thread-safe.
class ResponseStore {
 public:
  explicit ResponseStore(std::size_t client_bytes = std::size_t{16} << 20,
                         std::size_t bytes = std::size_t{256} << 20)
      : client_bytes_(client_bytes), most_bytes_(bytes) {}

  void Keep(const std::string& client, const std::string& id, KeptResponse response);
  /// Null where there is none.
  std::shared_ptr<const KeptResponse> Find(const std::string& client, const std::string& id) const;
  /// Whether there was one.
  bool Remove(const std::string& client, const std::string& id);

 private:
  using Name = std::pair<std::string, std::string>;  // Of a client, and the response's.
  struct Entry {
    Name name;
    std::shared_ptr<const KeptResponse> response;
    std::size_t bytes = 0;  // Of the whole conversation: an earlier one lives as long as a later.
  };
  using Entries = std::list<Entry>;

  void Drop(Entries::iterator entry);

  const std::size_t client_bytes_;
  const std::size_t most_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;  // The oldest first.
  std::map<Name, Entries::iterator> by_name_;
  std::map<std::string, std::size_t> bytes_of_;  // By client.
  std::size_t bytes_ = 0;
};

}  // namespace foretoken::server
