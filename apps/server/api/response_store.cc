#include "server/api/response_store.h"

#include <algorithm>
#include <iterator>

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

void ResponseStore::Keep(const std::string& client, const std::string& id, KeptResponse response) {
  if (LinksOf(&response) > kMostLinks) {
    response.turns = response.Conversation();
    response.before = nullptr;
  }
  auto kept = std::make_shared<const KeptResponse>(std::move(response));
  const std::size_t bytes = BytesOf(kept.get());
  if (bytes > client_bytes_) return;
  const std::lock_guard lock(mutex_);
  const Name name(client, id);
  if (const auto found = by_name_.find(name); found != by_name_.end()) Drop(found->second);
  entries_.push_back({name, std::move(kept), bytes});
  by_name_[name] = std::prev(entries_.end());
  bytes_ += bytes;
  bytes_of_[client] += bytes;
  while (bytes_of_[client] > client_bytes_) {
    Drop(std::ranges::find(entries_, client, [](const Entry& entry) { return entry.name.first; }));
  }
  while (bytes_ > most_bytes_) Drop(entries_.begin());
}

std::shared_ptr<const KeptResponse> ResponseStore::Find(const std::string& client,
                                                        const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(Name(client, id));
  return found == by_name_.end() ? nullptr : found->second->response;
}

bool ResponseStore::Remove(const std::string& client, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(Name(client, id));
  if (found == by_name_.end()) return false;
  Drop(found->second);
  return true;
}

void ResponseStore::Drop(Entries::iterator entry) {
  const auto of_client = bytes_of_.find(entry->name.first);
  of_client->second -= entry->bytes;
  if (of_client->second == 0) bytes_of_.erase(of_client);
  bytes_ -= entry->bytes;
  by_name_.erase(entry->name);
  entries_.erase(entry);
}

}  // namespace foretoken::server
