#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/foretoken/server/api/api_request.h"
#include "apps/foretoken/server/api/content_parts.h"

namespace foretoken::server {

// Fields of requests that mean the same through every door, whatever it calls them.

/// Reads a body, one JSON object, by `read`; fields that it does not ask for are noted or refused,
/// as `defaults` say.
Result<ApiRequest> ReadBody(std::string_view body, const ApiDefaults& defaults,
                            const std::function<void(FieldReader*, ApiRequest*)>& read);

/// The `model` that a body names, before it is read as a whole; empty where it names none or is no
/// JSON object.
std::string ModelNamed(std::string_view body);

/// What the turns of a chat may be.
struct MessageFields {
  /// The types that a content's text parts may have.
  std::span<const std::string_view> types;
  bool tools = false;                                    ///< There are turns of the role "tool".
  std::function<void(FieldReader*, ChatMessage*)> more;  ///< Reads what else a turn has.
};
/// Reads each element of the field `name`, a list of turns, by `read(FieldReader*, index)`, which
/// closes it.
void ForEachMessage(FieldReader* body, std::string_view name,
                    const std::function<void(FieldReader*, std::size_t)>& read);
/// Reads a turn: its `role` and its `content`, which an assistant's may lack.
void ReadTurn(FieldReader* message, const MessageFields& fields, ChatMessage* turn);
/// Reads the field `name`, the turns of a chat.
void ReadMessages(FieldReader* body, std::string_view name, const MessageFields& fields,
                  std::vector<ChatMessage>* messages);
/// Whether an assistant's turn calls functions.
bool HasCalls(const ChatMessage& turn);
/// Lets the answer go on with the last turn where that is the assistant's, as llama.cpp does,
/// unless `continue_final_message` or `add_generation_prompt` (vLLM's) say otherwise. `messages` is
/// the field with the turns, which have been read.
void ReadContinuation(FieldReader* body, std::string_view messages, ApiRequest* request);
/// Tells the chat template how much a model should think, by the names that templates have for it.
void SetReasoning(std::string_view effort, ApiRequest* request);
/// Reads how many tokens of thoughts there may be, by the names that other servers have for it, and
/// `reasoning_budget_message`.
void ReadReasoningBudget(FieldReader* body, ApiRequest* request);
/// Reads these, `reasoning_effort` and `reasoning_format`.
void ReadReasoning(FieldReader* body, ApiRequest* request);
/// Reads `chat_template_kwargs`, which go before the server's own.
void ReadTemplateVariables(FieldReader* body, ApiRequest* request);
/// Reads the field `name`: a string, an array of tokens, or an array of either, `most` at most.
void ReadPrompts(FieldReader* body, std::string_view name, std::vector<ApiPrompt>* prompts,
                 std::size_t most = kMaxChoices);

/// Reads `temperature`, `top_k`, `top_p`, `min_p`, the penalties, `logit_bias` and `seed`.
void ReadSampling(FieldReader* fields, ApiRequest* request);
/// The same as llama.cpp and Ollama have it: `repeat_penalty`, a random seed where it is -1, and
/// samplers that this server lacks, which must be off.
void ReadLlamaSampling(FieldReader* fields, ApiRequest* request);
/// Reads the field `name`, a limit of tokens; -1 asks for what the context holds.
bool ReadMaxTokens(FieldReader* fields, std::string_view name, int* max_tokens);
/// Reads the field `name`, up to 16 strings that end the output: a string or an array.
void ReadStopStrings(FieldReader* fields, std::string_view name, StopRules* stop);
/// Reads `stop_token_ids` and `ignore_eos`.
void ReadStopTokens(FieldReader* fields, StopRules* stop);
/// Reads `speculative` and `datastore`.
void ReadSpeculation(FieldReader* body, ApiRequest* request);

/// Takes fields that such a server honours by doing nothing: who asks, for which account, at which
/// price.
void SkipFields(FieldReader* fields, std::initializer_list<std::string_view> names);
/// Reads a field that says `usual` where nothing more is asked for than what this server does; what
/// else it says is left out.
void LeaveOutUnless(FieldReader* fields, std::string_view name,
                    std::initializer_list<std::string_view> usual);
/// Refuses a field that asks for something: "'NAME' must be empty: WHY". Null, false, "", [] and {}
/// ask for nothing.
void MustBeEmpty(FieldReader* fields, std::string_view name, std::string_view why);

}  // namespace foretoken::server
