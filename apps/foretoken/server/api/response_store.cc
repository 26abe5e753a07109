#include "apps/foretoken/server/api/response_store.h"

namespace foretoken::server {
namespace {

constexpr std::size_t kEntryBytes = 512;  // About what one takes beside its texts.

// A chain that is let go of ends link by link, each within the one before: it must not be long.
constexpr int kMostLinks = 256;

int LinksOf(const KeptResponse* response) {
  int links = 0;
  for (; response != nullptr; response = response->before.get()) ++links;
  return links;
}

std::size_t BytesOf(const KeptResponse* response) {
  std::size_t bytes = 0;
  for (; response != nullptr; response = response->before.get()) {
    bytes += kEntryBytes + response->json.size();
    for (const std::string& item : response->items) bytes += sizeof(item) + item.size();
    for (const ChatMessage& turn : response->turns) {
      bytes += sizeof(turn) + turn.role.size() + turn.content.size() + turn.more.size();
    }
  }
  return bytes;
}

}  // namespace

std::vector<ChatMessage> KeptResponse::Conversation() const {
  std::vector<const KeptResponse*> chain;
  for (const KeptResponse* one = this; one != nullptr; one = one->before.get()) {
    chain.push_back(one);
  }
  std::vector<ChatMessage> all;
  for (auto one = chain.rbegin(); one != chain.rend(); ++one) {
    std::ranges::copy((*one)->turns, std::back_inserter(all));
  }
  return all;
}

void ResponseStore::Keep(const std::string& client, const std::string& id, KeptResponse response,
                         const std::map<std::string, std::string>& items) {
  for (const auto& [item, json] : items) {
    response.items.push_back(item);
    items_.Keep(client, item, std::make_shared<const std::string>(json), kEntryBytes + json.size());
  }
  if (LinksOf(&response) > kMostLinks) {
    response.turns = response.Conversation();
    response.before = nullptr;
  }
  // All of the conversation counts: an earlier response lives as long as a later one.
  const std::size_t bytes = BytesOf(&response);
  responses_.Keep(client, id, std::make_shared<const KeptResponse>(std::move(response)), bytes);
}

std::shared_ptr<const KeptResponse> ResponseStore::Find(const std::string& client,
                                                        const std::string& id) const {
  return responses_.Find(client, id);
}

std::shared_ptr<const std::string> ResponseStore::Item(const std::string& client,
                                                       const std::string& id) {
  return items_.Use(client, id);
}

bool ResponseStore::Remove(const std::string& client, const std::string& id) {
  const auto response = responses_.Find(client, id);
  if (response == nullptr) return false;
  for (const std::string& item : response->items) items_.Remove(client, item);
  return responses_.Remove(client, id);
}

}  // namespace foretoken::server
