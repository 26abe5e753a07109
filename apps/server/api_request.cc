#include "server/api_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/parse_number.h"

namespace foretoken::server {
namespace {

using Json = nlohmann::json;

constexpr int kMaxInt = std::numeric_limits<int>::max();
constexpr int kDefaultCompletionTokens = 16;  // As OpenAI has it.
constexpr std::size_t kMaxStops = 16;

// A message's text: a string, or an array of parts of type "text"; an assistant's may be missing.
void ReadContent(FieldReader* message, const ChatMessage& turn, std::string* content) {
  const Json* field = message->Find("content");
  if (field == nullptr && turn.role == "assistant") return;
  if (field == nullptr) return message->Refuse("content", "a string");
  if (field->is_string()) {
    *content = field->get_ref<const std::string&>();
    return;
  }
  if (!field->is_array()) return message->Refuse("content", "a string or an array of text parts");
  for (const Json& part : *field) {
    const bool text = part.is_object() && part.value("type", Json()) == Json("text") &&
                      part.contains("text") && part["text"].is_string();
    if (!text) {
      return message->Refuse("content",
                             "a string or an array of {\"type\": \"text\", \"text\": ...}: this "
                             "server reads text only");
    }
    *content += part["text"].get_ref<const std::string&>();
  }
}

void ReadMessages(FieldReader* body, std::vector<ChatMessage>* messages) {
  const Json* field = body->Find("messages");
  if (field == nullptr || !field->is_array() || field->empty()) {
    return body->Refuse("messages", "an array of at least one {\"role\": ..., \"content\": ...}");
  }
  for (std::size_t i = 0; i < field->size() && body->ok(); ++i) {
    FieldReader message = body->Inner(fmt::format("messages[{}]", i), (*field)[i]);
    ChatMessage turn;
    if (!message.String("role", &turn.role)) message.Refuse("role", "a string");
    if (turn.role == "developer") turn.role = "system";
    if (turn.role != "system" && turn.role != "user" && turn.role != "assistant") {
      message.Refuse("role", "system, developer, user or assistant");
    }
    ReadContent(&message, turn, &turn.content);
    std::string name;  // Of who speaks; templates show roles only.
    message.String("name", &name);
    message.Has("refusal");
    if (const Json* calls = message.Find("tool_calls"); calls != nullptr && !calls->empty()) {
      message.Refuse("tool_calls", "empty: this server calls no tools");
    }
    // An assistant's message as this server returned it may be sent back as it is.
    if (const Json* extra = message.Find("annotations"); extra != nullptr && !extra->empty()) {
      message.Refuse("annotations", "empty: this server makes none");
    }
    message.Close();
    messages->push_back(std::move(turn));
  }
}

bool IsTokenArray(const Json& json) {
  if (!json.is_array() || json.empty()) return false;
  for (const Json& item : json) {
    if (!item.is_number_integer()) return false;
  }
  return true;
}

bool ReadPrompt(const Json& json, std::vector<ApiPrompt>* prompts) {
  if (json.is_string()) {
    prompts->emplace_back(json.get<std::string>());
    return true;
  }
  if (!IsTokenArray(json)) return false;
  std::vector<Token> tokens;
  for (const Json& item : json) {
    // What no token can be stays so; the engine names it.
    const auto id = item.get<std::int64_t>();
    tokens.push_back(id < 0 || id > kMaxInt ? Token{-1} : static_cast<Token>(id));
  }
  prompts->emplace_back(std::move(tokens));
  return true;
}

void ReadPrompts(FieldReader* body, std::vector<ApiPrompt>* prompts) {
  const Json* field = body->Find("prompt");
  const char* const expected = "a string, an array of tokens, or an array of either";
  if (field == nullptr) return body->Refuse("prompt", expected);
  if (ReadPrompt(*field, prompts)) return;
  if (!field->is_array() || field->empty()) return body->Refuse("prompt", expected);
  if (field->size() > kMaxChoices) {
    return body->Refuse("prompt", fmt::format("at most {} prompts", kMaxChoices));
  }
  for (const Json& item : *field) {
    if (!ReadPrompt(item, prompts)) return body->Refuse("prompt", expected);
  }
}

void ReadLogitBias(FieldReader* body, std::vector<std::pair<Token, float>>* biases) {
  const Json* field = body->Find("logit_bias");
  if (field == nullptr) return;
  const char* const expected = "an object of token ids and numbers, as in {\"42\": -1.5}";
  if (!field->is_object()) return body->Refuse("logit_bias", expected);
  biases->clear();
  for (const auto& [name, value] : field->items()) {
    Token token = -1;
    constexpr double kLargest = 1e6;
    if (!ParseNumber(name, &token) || !value.is_number() ||
        !(std::abs(value.get<double>()) <= kLargest)) {
      return body->Refuse("logit_bias", expected);
    }
    biases->emplace_back(token, value.get<float>());
  }
}

void ReadStop(FieldReader* body, StopRules* stop) {
  body->Bool("ignore_eos", &stop->ignore_eos);
  if (const Json* field = body->Find("stop"); field != nullptr) {
    const Json list = field->is_array() ? *field : Json::array({*field});
    if (list.size() > kMaxStops) {
      return body->Refuse("stop", fmt::format("at most {} strings", kMaxStops));
    }
    for (const Json& item : list) {
      if (!item.is_string() || item.get_ref<const std::string&>().empty()) {
        return body->Refuse("stop", "a string or an array of strings, none of them empty");
      }
      stop->stop_strings.push_back(item.get<std::string>());
    }
  }
  if (const Json* field = body->Find("stop_token_ids"); field != nullptr) {
    if (!field->empty() && !IsTokenArray(*field)) {
      return body->Refuse("stop_token_ids", "an array of tokens");
    }
    for (const Json& item : *field) {
      const auto id = item.get<std::int64_t>();
      if (id < 0 || id > kMaxInt) {
        return body->Refuse("stop_token_ids", "an array of tokens");
      }
      stop->stop_tokens.push_back(static_cast<Token>(id));
    }
  }
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

void ReadSampling(FieldReader* body, ApiRequest* request) {
  SamplingParams* sampling = &request->sampling;
  body->Number("temperature", 0, 100, &sampling->temperature);
  body->Number("top_p", 0, 1, &sampling->top_p);
  body->Number("min_p", 0, 1, &sampling->min_p);
  body->Number("repetition_penalty", 0.01F, 100, &sampling->repetition_penalty);
  body->Number("frequency_penalty", -100, 100, &sampling->frequency_penalty);
  body->Number("presence_penalty", -100, 100, &sampling->presence_penalty);
  if (body->Int("top_k", -1, kMaxInt, &sampling->top_k) && sampling->top_k < 0) sampling->top_k = 0;
  request->seeded = body->Seed("seed", &sampling->seed);
  ReadLogitBias(body, &sampling->logit_bias);
  ReadLogprobs(body, request->kind, &sampling->top_logprobs);
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

void ReadFanout(FieldReader* fields, std::optional<Fanout>* fanout) {
  const Json* field = fields->Find("fanout");
  if (field == nullptr) return;
  Fanout given{.rule = FanoutRule::kGiven, .counts = {}};
  const Json list = field->is_array() ? *field : Json::array({*field});
  bool good = !list.empty() && list.size() <= kMaxProposal + 1;
  for (const Json& item : list) {
    good = good && item.is_number_unsigned() && item.get<std::uint64_t>() <= kMaxFanout;
    if (good) given.counts.push_back(item.get<int>());
  }
  *fanout = std::move(given);
  if (good) return;
  fields->Refuse("fanout", fmt::format("an integer from 0 to {}, or an array of them for the "
                                       "outcomes k = 0, 1, ...",
                                       kMaxFanout));
}

void ReadSpeculation(FieldReader* body, std::optional<PlanOptions>* wish) {
  const Json* field = body->Find("speculative");
  if (field == nullptr) return;
  PlanOptions plan;
  FieldReader fields = body->InnerStrict("speculative", *field);
  std::string name;
  if (fields.String("mode", &name)) {
    const Result<Mode> mode = ParseMode(name);
    if (mode.ok()) plan.mode = *mode;
    if (!mode.ok()) fields.Fail("mode", mode.error().message);
  }
  if (fields.String("fallback", &name)) {
    const Result<Fallback> fallback = ParseFallback(name);
    if (fallback.ok()) plan.fallback = *fallback;
    if (!fallback.ok()) fields.Fail("fallback", fallback.error().message);
  }
  int number = 0;
  if (fields.Int("lookahead", 1, kMaxProposal, &number)) plan.lookahead = number;
  if (fields.Int("tree_width", 1, kMaxTreeWidth, &number)) plan.tree_width = number;
  ReadFanout(&fields, &plan.fanout);
  bool off = false;
  if (fields.Bool("off", &off) && off) {
    if (plan.mode && *plan.mode != Mode::kAr) {
      fields.Fail("off", "'speculative.off' contradicts 'speculative.mode'; give one of them");
    }
    plan.mode = Mode::kAr;
  }
  fields.Close();
  if (!field->empty()) *wish = std::move(plan);
}

void ReadDatastore(FieldReader* body, DatastoreWish* wish) {
  const Json* field = body->Find("datastore");
  if (field == nullptr) return;
  wish->given = true;
  FieldReader fields = body->InnerStrict("datastore", *field);
  if (fields.String("namespace", &wish->tenant) && wish->tenant.empty()) {
    fields.Refuse("namespace", "a name, or absent");
  }
  fields.Bool("learn", &wish->learn);
  fields.Close();
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
void ReadMaxTokens(FieldReader* body, const ApiDefaults& defaults, ApiRequest* request) {
  const bool completion = request->kind == ApiKind::kCompletion;
  int* const max_tokens = &request->stop.max_tokens;
  *max_tokens = defaults.max_tokens;
  if (*max_tokens == 0 && completion) *max_tokens = kDefaultCompletionTokens;
  // -1 is llama.cpp's way to ask for what the context holds.
  const auto read = [&](std::string_view name) {
    int given = 0;
    if (!body->Int(name, -1, kMaxInt, &given)) return false;
    request->prompt_only = given == 0;
    if (given == 0 && !request->scores_prompts()) {
      body->Refuse(name, completion ? "-1 (what the context holds), from 1, or 0 beside 'echo' and "
                                      "'logprobs'"
                                    : "-1 (what the context holds) or from 1");
    }
    *max_tokens = std::max(given, 0);
    return true;
  };
  const bool given = read("max_tokens");
  if (completion) return;
  const int old = *max_tokens;
  if (read("max_completion_tokens") && given && *max_tokens != old) {
    body->Fail("max_tokens", "'max_tokens' and 'max_completion_tokens' differ; give one of them");
  }
}

// Reads a body that is one JSON object by `read(&fields, &value)`.
template <typename Value, typename Read>
Result<Value> ParseFields(std::string_view body, std::vector<std::string>* unknown,
                          const Read& read) {
  FT_ASSIGN_OR_RETURN(const Json json, ParseJson(body));
  Status error;
  FieldReader fields(json, "", &error, unknown);
  Value value;
  read(&fields, &value);
  fields.Close();
  FT_RETURN_IF_ERROR(error);
  return value;
}

}  // namespace

Result<ApiRequest> ParseApiRequest(ApiKind kind, std::string_view body,
                                   const ApiDefaults& defaults) {
  const auto read = [&](FieldReader* fields, ApiRequest* request) {
    request->kind = kind;
    request->sampling = defaults.sampling;
    if (kind == ApiKind::kChat) {
      ReadMessages(fields, &request->messages);
    } else {
      ReadPrompts(fields, &request->prompts);
      fields->Bool("echo", &request->echo);
    }
    fields->String("model", &request->model);
    fields->Int("n", 1, kMaxChoices, &request->n);
    ReadSampling(fields, request);
    ReadStop(fields, &request->stop);
    ReadMaxTokens(fields, defaults, request);
    ReadStreaming(fields, request);
    ReadSpeculation(fields, &request->speculation);
    ReadOutputFormat(body, fields, &request->format);
    ReadDatastore(fields, &request->datastore);
    ReadHarmless(fields, kind);
    if (request->choices() > kMaxChoices) {
      fields->Fail("n", fmt::format("{} prompts times 'n' of {} are more than {} choices",
                                    request->prompts.size(), request->n, kMaxChoices));
    }
  };
  std::vector<std::string> unknown;
  FT_ASSIGN_OR_RETURN(
      ApiRequest request,
      ParseFields<ApiRequest>(body, defaults.strict_fields ? nullptr : &unknown, read));
  request.ignored = std::move(unknown);
  return request;
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
