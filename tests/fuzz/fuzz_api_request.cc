// Request bodies of the server: whatever comes is parsed or refused in one sentence.
#include <cstdint>
#include <string>
#include <string_view>

#include "apps/foretoken/server/api/request_fields.h"
#include "apps/foretoken/server/doors/doors.h"
#include "apps/foretoken/server/doors/ollama_models.h"
#include "apps/foretoken/server/doors/tokenize.h"
#include "base/check.h"

namespace {

using namespace foretoken::server;  // NOLINT: a program of its own.

// What later code relies on.
void CheckParsed(const foretoken::Result<ApiRequest>& parsed) {
  if (!parsed.ok()) {
    const std::string& message = parsed.error().message;
    FT_CHECK(!message.empty() && message.find('\n') == std::string::npos);
    return;
  }
  const ApiRequest& request = parsed.value();
  FT_CHECK(request.n >= 1 && request.choices() >= 1 && request.choices() <= kMaxChoices);
  FT_CHECK(request.kind == ApiKind::kChat ? !request.chat.messages.empty()
                                          : !request.prompts.empty());
  FT_CHECK(request.stop.max_tokens >= 0);
  FT_CHECK(!request.prompt_only || request.kind == ApiKind::kCompletion);
  FT_CHECK(!request.prompt_only || request.scores_prompts() || request.embedding.has_value());
  FT_CHECK(request.sampling.temperature >= 0 && request.sampling.top_p <= 1);
  FT_CHECK(!request.trace || request.stream);
  FT_CHECK(request.format.grammar.empty() == request.format.field.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const Door* door :
       {&ChatDoor(), &CompletionDoor(), &AnthropicDoor(), &ResponsesDoor(), &OllamaChatDoor(),
        &OllamaGenerateDoor(), &LlamaCppDoor(), &LlamaCppInfillDoor(), &EmbeddingsDoor(),
        &OllamaEmbedDoor(), &OllamaEmbeddingsDoor(), &LlamaCppEmbeddingDoor()}) {
    const auto parsed = door->read(body, {});
    CheckParsed(parsed);
    // Who is to read a body is found before it is read.
    FT_CHECK(!parsed.ok() || parsed->model == ModelNamed(body));
  }
  CheckParsed(ReadCountTokens(body, {}));
  CheckParsed(ReadApplyTemplate(body, {}));
  (void)ReadOllamaModel(body, {});
  (void)ReadOllamaKeeping(body);
  (void)ParseTokenizeRequest(body);
  (void)ParseDetokenizeRequest(body, 1000);
  return 0;
}
