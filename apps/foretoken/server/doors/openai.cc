#include "apps/foretoken/server/doors/doors.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "apps/foretoken/server/api/request_fields.h"
#include "apps/foretoken/server/api/tool_fields.h"

namespace foretoken::server {
namespace {

constexpr int kDefaultCompletionTokens = 16;  // As OpenAI has it.

// What a message of a chat may have besides its role and content.
void ReadMoreOfOpenAiMessage(FieldReader* message, ChatMessage* turn) {
  ReadToolsOfMessage(message, turn);
  // An assistant's message may be sent back as it was returned, also by another server.
  SkipFields(message, {"refusal", "annotations", "audio"});
  bool prefix =
      false;  // DeepSeek's and Mistral's mark of a turn that is gone on with: the last is.
  message->Bool("prefix", &prefix);
}

// `prediction`, which says what the answer may be: {"type": "content", "content": ...}
void ReadPrediction(FieldReader* body, ApiRequest* request) {
  const Json* field = body->Find("prediction");
  if (field == nullptr) return;
  FieldReader fields = body->Inner("prediction", *field);
  std::string type;
  fields.String("type", &type);
  if (type != "content") fields.Refuse("type", "content");
  if (!ReadTextField(&fields, "content", kTextParts, &request->prediction)) {
    fields.Refuse("content", "a string");
  }
  fields.Close();
}

// `logprobs` is a boolean with `top_logprobs` beside it in chats, a count in completions.
void ReadOpenAiLogprobs(FieldReader* body, ApiKind kind, int* top_logprobs) {
  *top_logprobs = -1;
  if (kind == ApiKind::kCompletion) {
    body->Int("logprobs", 0, kMaxTopLogprobs, top_logprobs);
    return;
  }
  bool wanted = false;
  body->Bool("logprobs", &wanted);
  if (wanted) *top_logprobs = 0;
  int top = 0;
  if (body->Int("top_logprobs", 0, kMaxTopLogprobs, &top)) {
    if (!wanted) return body->Fail("top_logprobs", "'top_logprobs' needs 'logprobs' to be true");
    *top_logprobs = top;
  }
}

void ReadStreaming(FieldReader* body, ApiRequest* request) {
  body->Bool("stream", &request->stream);
  if (const Json* field = body->Find("stream_options"); field != nullptr) {
    FieldReader options = body->Inner("stream_options", *field);
    options.Bool("include_usage", &request->include_usage);
    SkipFields(&options, {"include_obfuscation"});
    options.Close();
    if (!request->stream) {
      body->Fail("stream_options", "'stream_options' needs 'stream' to be true");
    }
  }
  body->Bool("speculation_trace", &request->trace);
  if (request->trace && !request->stream) {
    body->Fail("speculation_trace", "'speculation_trace' needs 'stream' to be true");
  }
}

// Fields of OpenAI's that a server which keeps nothing and serves one model honours by doing
// nothing: who asks, for which account, at which price. What it does not honour it leaves out.
void ReadHarmlessOpenAi(FieldReader* body, ApiKind kind) {
  SkipFields(body, {"user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"});
  LeaveOutUnless(body, "service_tier", {"auto", "default"});
  LeaveOutUnless(body, "verbosity", {"medium"});
  if (body->Has("web_search_options")) body->LeaveOut("web_search_options", "a search");
  bool store = false;
  if (body->Bool("store", &store) && store) body->LeaveOut("store", "true");
  if (const Json* field = body->Find("metadata"); field != nullptr && !field->is_object()) {
    body->Refuse("metadata", "an object");
  }
  if (kind == ApiKind::kCompletion) {
    int best_of = 1;
    if (body->Int("best_of", 1, kMaxChoices, &best_of) && best_of != 1) {
      body->Refuse("best_of", "1: this server returns every choice that it makes");
    }
    return;
  }
  if (const Json* field = body->Find("modalities"); field != nullptr) {
    if (*field != Json::array({"text"})) body->Refuse("modalities", "[\"text\"]");
  }
}

// After 'echo' and 'logprobs'.
void ReadTokenLimit(FieldReader* body, ApiRequest* request) {
  int* const max_tokens = &request->stop.max_tokens;
  if (request->kind == ApiKind::kCompletion) {
    if (*max_tokens == 0) *max_tokens = kDefaultCompletionTokens;
    const Json* field = body->Find("max_tokens");
    request->prompt_only = field != nullptr && *field == Json(0);
    if (!request->prompt_only) {
      ReadMaxTokens(body, "max_tokens", max_tokens);
    } else if (request->scores_prompts()) {
      *max_tokens = 0;
    } else {
      body->Refuse("max_tokens",
                   "-1 (what the context holds), from 1, or 0 beside 'echo' and 'logprobs'");
    }
    return;
  }
  const bool given = ReadMaxTokens(body, "max_tokens", max_tokens);
  const int old = *max_tokens;
  if (ReadMaxTokens(body, "max_completion_tokens", max_tokens) && given && *max_tokens != old) {
    body->Fail("max_tokens", "'max_tokens' and 'max_completion_tokens' differ; give one of them");
  }
}

template <ApiKind kind>
Result<ApiRequest> ReadOpenAiGeneration(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [&](FieldReader* fields, ApiRequest* request) {
    request->kind = kind;
    if (kind == ApiKind::kChat) {
      ReadMessages(fields, "messages",
                   {.types = kTextParts, .tools = true, .more = ReadMoreOfOpenAiMessage},
                   &request->chat.messages);
      NameToolAnswers(&request->chat.messages);
      ReadContinuation(fields, "messages", request);
      ReadPrediction(fields, request);
      ReadTools(body, fields, request);
      ReadReasoning(fields, request);
      ReadTemplateVariables(fields, request);
    } else {
      fields->Has("reasoning_effort");
      ReadPrompts(fields, "prompt", &request->prompts);
      fields->Bool("echo", &request->echo);
    }
    fields->Int("n", 1, kMaxChoices, &request->n);
    ReadSampling(fields, request);
    ReadOpenAiLogprobs(fields, kind, &request->sampling.top_logprobs);
    ReadStopStrings(fields, "stop", &request->stop);
    ReadStopTokens(fields, &request->stop);
    ReadTokenLimit(fields, request);
    ReadStreaming(fields, request);
    fields->Bool("receipt", &request->receipt);
    ReadSpeculation(fields, request);
    ReadOutputFormat(body, fields, &request->format);
    ReadFormatsOfOthers(body, fields, &request->format);
    ReadHarmlessOpenAi(fields, kind);
    if (request->choices() > kMaxChoices) {
      fields->Fail("n", fmt::format("{} prompts times 'n' of {} are more than {} choices",
                                    request->prompts.size(), request->n, kMaxChoices));
    }
  });
}

}  // namespace

const Door& ChatDoor() {
  static constexpr Door kDoor = {.path = "/v1/chat/completions",
                                 .id_prefix = "chatcmpl-",
                                 .prompt = "messages",
                                 .limit = "max_tokens",
                                 .read = ReadOpenAiGeneration<ApiKind::kChat>,
                                 .writer = OpenAiWriter,
                                 .error = OpenAiError};
  return kDoor;
}

const Door& CompletionDoor() {
  static constexpr Door kDoor = {.path = "/v1/completions",
                                 .id_prefix = "cmpl-",
                                 .prompt = "prompt",
                                 .limit = "max_tokens",
                                 .read = ReadOpenAiGeneration<ApiKind::kCompletion>,
                                 .writer = OpenAiWriter,
                                 .error = OpenAiError};
  return kDoor;
}

std::string OpenAiError(const ApiError& error) {
  if (!error.too_long.has_value()) return ErrorJson(error);
  const PromptTooLong& prompt = *error.too_long;
  ApiError in_its_words = error;
  in_its_words.message = fmt::format(
      "This model's maximum context length is {} tokens. However, your {} resulted in {} tokens, "
      "and a prompt may have {} at most. Please reduce the length of the {}.",
      prompt.context, error.param, prompt.Count(), prompt.most, error.param);
  return ErrorJson(in_its_words);
}

}  // namespace foretoken::server
