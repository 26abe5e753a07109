#include "server/api/door.h"

#include <utility>

namespace foretoken::server {
namespace {

template <ApiKind kind>
Result<ApiRequest> Read(std::string_view body, const ApiDefaults& defaults) {
  return ParseApiRequest(kind, body, defaults);
}

std::unique_ptr<ReplyWriter> Writer(const ApiRequest& request, ReplyHead head,
                                    const Tokenizer* tokenizer) {
  if (request.stream) return std::make_unique<EventWriter>(request, std::move(head), tokenizer);
  return std::make_unique<ReplyBuilder>(request, std::move(head), tokenizer);
}

}  // namespace

const Door& ChatDoor() {
  static constexpr Door kDoor = {.path = "/v1/chat/completions",
                                 .id_prefix = "chatcmpl-",
                                 .prompt = "messages",
                                 .limit = "max_tokens",
                                 .read = Read<ApiKind::kChat>,
                                 .writer = Writer,
                                 .error = ErrorJson};
  return kDoor;
}

const Door& CompletionDoor() {
  static constexpr Door kDoor = {.path = "/v1/completions",
                                 .id_prefix = "cmpl-",
                                 .prompt = "prompt",
                                 .limit = "max_tokens",
                                 .read = Read<ApiKind::kCompletion>,
                                 .writer = Writer,
                                 .error = ErrorJson};
  return kDoor;
}

}  // namespace foretoken::server
