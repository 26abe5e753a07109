#include "server/api/api_request.h"

#include <fmt/core.h>

#include <utility>

#include "server/api/request_fields.h"

namespace foretoken::server {
namespace {

using Json = nlohmann::json;

constexpr int kDefaultCompletionTokens = 16;  // As OpenAI has it.

// What a message of a chat may have besides its role and content.
void ReadMoreOfMessage(FieldReader* message) {
  std::string name;  // Of who speaks; templates show roles only.
  message->String("name", &name);
  // An assistant's message as this server returned it may be sent back as it is.
  message->Has("refusal");
  MustBeEmpty(message, "tool_calls", "this server calls no tools");
  MustBeEmpty(message, "annotations", "this server makes none");
}

// `logprobs` is a boolean with `top_logprobs` beside it in chats, a count in completions.
void ReadLogprobs(FieldReader* body, ApiKind kind, int* top_logprobs) {
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
    if (!wanted) {
      return body->Fail("top_logprobs", "'top_logprobs' needs 'logprobs' to be true");
    }
    *top_logprobs = top;
  }
}

void ReadStreaming(FieldReader* body, ApiRequest* request) {
  body->Bool("stream", &request->stream);
  if (const Json* field = body->Find("stream_options"); field != nullptr) {
    FieldReader options = body->Inner("stream_options", *field);
    options.Bool("include_usage", &request->include_usage);
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
// nothing: who asks, for which account, at which price.
void ReadHarmless(FieldReader* body, ApiKind kind) {
  std::string text;
  bool flag = false;
  for (const char* name : {"user", "safety_identifier", "prompt_cache_key", "service_tier",
                           "reasoning_effort", "verbosity"}) {
    body->String(name, &text);
  }
  body->Bool("store", &flag);
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
  if (const Json* tools = body->Find("tools"); tools != nullptr && !tools->empty()) {
    body->Fail("tools", "'tools' are not supported by this server; leave them out");
  }
  body->Bool("parallel_tool_calls", &flag);
  if (const Json* choice = body->Find("tool_choice");
      choice != nullptr && *choice != Json("none") && *choice != Json("auto")) {
    body->Refuse("tool_choice", "none or auto: this server calls no tools");
  }
}

// After 'echo' and 'logprobs'.
void ReadLimit(FieldReader* body, ApiRequest* request) {
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

}  // namespace

Result<ApiRequest> ParseApiRequest(ApiKind kind, std::string_view body,
                                   const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [&](FieldReader* fields, ApiRequest* request) {
    request->kind = kind;
    if (kind == ApiKind::kChat) {
      constexpr std::string_view kTypes[] = {"text"};
      ReadMessages(fields, "messages", kTypes, ReadMoreOfMessage, &request->messages);
    } else {
      ReadPrompts(fields, &request->prompts);
      fields->Bool("echo", &request->echo);
    }
    fields->Int("n", 1, kMaxChoices, &request->n);
    ReadSampling(fields, request);
    ReadLogprobs(fields, kind, &request->sampling.top_logprobs);
    ReadStopStrings(fields, "stop", &request->stop);
    ReadStopTokens(fields, &request->stop);
    ReadLimit(fields, request);
    ReadStreaming(fields, request);
    ReadSpeculation(fields, request);
    ReadOutputFormat(body, fields, &request->format);
    ReadHarmless(fields, kind);
    if (request->choices() > kMaxChoices) {
      fields->Fail("n", fmt::format("{} prompts times 'n' of {} are more than {} choices",
                                    request->prompts.size(), request->n, kMaxChoices));
    }
  });
}

Result<TokenizeRequest> ParseTokenizeRequest(std::string_view body) {
  const auto read = [](FieldReader* fields, TokenizeRequest* request) {
    if (!fields->String("content", &request->content)) fields->Refuse("content", "a string");
    if (request->content.size() > kMaxTokenizeBytes) {
      fields->Refuse("content", fmt::format("of {} bytes at most; send a longer text in parts",
                                            kMaxTokenizeBytes));
    }
    fields->Bool("add_special", &request->add_special);
    fields->Bool("parse_special", &request->parse_special);
    fields->Bool("with_pieces", &request->with_pieces);
  };
  return ParseFields<TokenizeRequest>(body, nullptr, read);
}

Result<std::vector<Token>> ParseDetokenizeRequest(std::string_view body, int vocabulary) {
  const auto read = [vocabulary](FieldReader* fields, std::vector<Token>* tokens) {
    const Json* list = fields->Find("tokens");
    if (list == nullptr || !list->is_array()) return fields->Refuse("tokens", "an array of tokens");
    for (const Json& item : *list) {
      if (!item.is_number_unsigned() ||
          item.get<std::uint64_t>() >= static_cast<std::uint64_t>(vocabulary)) {
        return fields->Refuse("tokens", fmt::format("tokens from 0 to {}", vocabulary - 1));
      }
      tokens->push_back(item.get<Token>());
    }
  };
  return ParseFields<std::vector<Token>>(body, nullptr, read);
}

}  // namespace foretoken::server
