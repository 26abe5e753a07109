#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/foretoken/server/api/client_cache.h"
#include "foretoken/chat.h"

namespace foretoken::server {

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
