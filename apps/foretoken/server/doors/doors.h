#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/foretoken/server/api/door.h"

namespace foretoken::server {

/// OpenAI's chats and completions.
const Door& ChatDoor();
const Door& CompletionDoor();

/// The body of an error, as all doors of OpenAI's have it.
std::string OpenAiError(const ApiError& error);

/// OpenAI's responses, whole or streamed.
const Door& ResponsesDoor();

/// The turns of a chat that items of an output are.
std::vector<ChatMessage> TurnsOfOutput(const Json& output);

/// Anthropic's messages, whole or streamed.
const Door& AnthropicDoor();

/// The body of /v1/messages/count_tokens: the chat whose tokens are to be counted.
Result<ApiRequest> ReadCountTokens(std::string_view body, const ApiDefaults& defaults);

/// The completions of llama.cpp's own server.
const Door& LlamaCppDoor();

/// The infill of llama.cpp's server: a gap in a text is filled.
const Door& LlamaCppInfillDoor();

/// The body of /apply-template: the chat to be written out.
Result<ApiRequest> ReadApplyTemplate(std::string_view body, const ApiDefaults& defaults);

/// Ollama's chats and generations, streamed as lines of JSON unless a request says otherwise.
const Door& OllamaChatDoor();
const Door& OllamaGenerateDoor();

/// The name without the tag ":latest", which is no part of the names here.
std::string_view WithoutTag(std::string_view model);

/// A time as Ollama writes it: 2026-11-24T07:05:00Z.
std::string OllamaTime(std::int64_t seconds);

// Where clients ask for the embeddings of texts. Each takes `pooling` beside its API's fields.

/// OpenAI's.
const Door& EmbeddingsDoor();

/// Ollama's, and its older one for a single text.
const Door& OllamaEmbedDoor();
const Door& OllamaEmbeddingsDoor();

/// llama.cpp's.
const Door& LlamaCppEmbeddingDoor();

/// Little-endian float32 in base64.
std::string Base64Floats(std::span<const float> values);

/// Where clients ask how well documents answer a query, as Jina, Cohere and llama.cpp have it, of
/// models that were trained to say yes or no to that (Qwen3-Reranker).
const Door& RerankDoor();

/// How such a model is asked about a text, as Qwen3-Reranker's makers document it: special tokens
/// count in what stands before and behind the text, and none of the text's own.
std::vector<Token> RankTokens(const Tokenizer& tokenizer, const std::string& text);

/// The tokens by which it says yes and no; none where the vocabulary has none for either.
struct YesAndNo {
  Token yes = -1;
  Token no = -1;
};
std::optional<YesAndNo> FindYesAndNo(const Tokenizer& tokenizer);

/// What a token's logit is raised by that must come: no other is then more likely.
inline constexpr float kMustCome = 1e5F;

/// Replies of OpenAI's chats and completions, of its responses and of Anthropic's messages, whole
/// or as events, as the request wants them.
std::unique_ptr<ReplyWriter> OpenAiWriter(const ApiRequest& request, ReplyHead head,
                                          const Tokenizer* tokenizer);
std::unique_ptr<ReplyWriter> ResponseItemsWriter(const ApiRequest& request, ReplyHead head,
                                                 const Tokenizer* tokenizer);
std::unique_ptr<ReplyWriter> AnthropicWriter(const ApiRequest& request, ReplyHead head,
                                             const Tokenizer* tokenizer);

}  // namespace foretoken::server
