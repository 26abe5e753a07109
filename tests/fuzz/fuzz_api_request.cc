// Request bodies of the server: whatever comes is parsed or refused in one sentence.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "server/api_request.h"

namespace {

using foretoken::server::ApiKind;
using foretoken::server::ApiRequest;

// What later code relies on.
void CheckParsed(ApiKind kind, const foretoken::Result<ApiRequest>& parsed) {
  if (!parsed.ok()) {
    const std::string& message = parsed.error().message;
    FT_CHECK(!message.empty() && message.find('\n') == std::string::npos);
    return;
  }
  const ApiRequest& request = parsed.value();
  FT_CHECK(request.n >= 1 && request.choices() >= 1 &&
           request.choices() <= foretoken::server::kMaxChoices);
  FT_CHECK(kind == ApiKind::kChat ? !request.messages.empty() : !request.prompts.empty());
  FT_CHECK(request.stop.max_tokens >= 0);
  FT_CHECK(!request.prompt_only || (request.scores_prompts() && kind == ApiKind::kCompletion));
  FT_CHECK(request.sampling.temperature >= 0 && request.sampling.top_p <= 1);
  FT_CHECK(!request.trace || request.stream);
  FT_CHECK(request.format.grammar.empty() == request.format.field.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const ApiKind kind : {ApiKind::kChat, ApiKind::kCompletion}) {
    CheckParsed(kind, foretoken::server::ParseApiRequest(kind, body, {}));
  }
  (void)foretoken::server::ParseTokenizeRequest(body);
  (void)foretoken::server::ParseDetokenizeRequest(body, 1000);
  return 0;
}
