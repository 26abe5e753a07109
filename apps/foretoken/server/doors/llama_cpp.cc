#include "apps/foretoken/server/doors/doors.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "apps/foretoken/server/api/request_fields.h"
#include "apps/foretoken/server/api/tool_fields.h"

namespace foretoken::server {
namespace {

// What completions and gaps have in common.
void ReadLlamaCppCommon(std::string_view body, FieldReader* fields, ApiRequest* request) {
  request->kind = ApiKind::kCompletion;
  request->return_prompts = true;
  ReadMaxTokens(fields, "n_predict", &request->stop.max_tokens);
  ReadLlamaSampling(fields, request);
  ReadStopStrings(fields, "stop", &request->stop);
  ReadStopTokens(fields, &request->stop);
  fields->Bool("stream", &request->stream);
  fields->Bool("return_tokens", &request->return_tokens);
  request->return_tokens = request->return_tokens || request->stream;  // As llama.cpp does.
  int top = 0;
  if (fields->Int("n_probs", 0, kMaxTopLogprobs, &top) && top > 0) {
    request->sampling.top_logprobs = top;
  }
  ReadOutputFormat(body, fields, &request->format);
  if (fields->Has("json_schema")) {
    if (!request->format.field.empty()) {
      fields->Fail("grammar", "'json_schema' contradicts another field; give one of them");
    }
    constexpr std::string_view kPath[] = {"json_schema"};
    ReadSchemaField(body, kPath, fields, &request->format);
  }
  ReadSpeculation(fields, request);
  MustBeEmpty(fields, "post_sampling_probs", "probabilities are those before sampling");
  // What the cache does changes no token, and nothing is kept or thrown away of a long text.
  SkipFields(fields, {"cache_prompt", "n_keep", "n_discard", "n_cache_reuse", "timings_per_token"});
}

Result<ApiRequest> ReadLlamaCppCompletion(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [body](FieldReader* fields, ApiRequest* request) {
    request->parse_special = true;
    ReadPrompts(fields, "prompt", &request->prompts);
    ReadLlamaCppCommon(body, fields, request);
  });
}

Result<ApiRequest> ReadInfill(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [body](FieldReader* fields, ApiRequest* request) {
    ApiGap gap;
    std::string begun;  // The beginning of what fills the gap.
    const bool before = fields->String("input_prefix", &gap.before);
    if (!before) fields->Refuse("input_prefix", "a string: the text in front of the gap");
    const bool behind = fields->String("input_suffix", &gap.behind);
    if (!behind) fields->Refuse("input_suffix", "a string: the text behind the gap");
    fields->String("prompt", &begun);
    gap.before += begun;
    const Json* extra = fields->Find("input_extra");
    if (extra != nullptr && !extra->is_array()) {
      fields->Refuse("input_extra", "an array of {\"filename\": ..., \"text\": ...}");
    }
    for (std::size_t i = 0; extra != nullptr && i < extra->size() && fields->ok(); ++i) {
      FieldReader file = fields->Inner(fmt::format("input_extra[{}]", i), (*extra)[i]);
      ApiGap::File& read = gap.files.emplace_back();
      read.name = "tmp";
      file.String("filename", &read.name);
      if (!file.String("text", &read.text)) file.Refuse("text", "a string");
      SkipFields(&file, {"time"});
      file.Close();
    }
    request->prompts.emplace_back(std::move(gap));
    ReadLlamaCppCommon(body, fields, request);
  });
}

struct Stop {
  std::string_view type;
  std::string word;
};

Stop StopOf(const ApiRequest& request, const Ending& ending) {
  const int string = ending.stats.stop_string;
  if (string >= 0) return {"word", request.stop.stop_strings[string]};
  if (FinishName(ending.reason) == "length") return {"limit", ""};
  return {"eos", ""};
}

class ContentWriter final : public ReplyWriter {
 public:
  ContentWriter(const ApiRequest& request, ReplyHead head, const Tokenizer* tokenizer)
      : request_(request),
        head_(std::move(head)),
        tokenizer_(tokenizer),
        choices_(request.choices()) {}

  void Start(std::span<const std::string> echoed, std::string*) override {
    for (std::size_t i = 0; i < choices_.size(); ++i) choices_[i].prompt = echoed[i];
  }

  void Add(Burst burst, std::string* out) override {
    Choice& choice = choices_[burst.choice];
    choice.has_new_line = choice.has_new_line || burst.text.find('\n') != std::string::npos;
    if (!request_.stream) {
      choice.text += burst.text;
      std::move(burst.tokens.begin(), burst.tokens.end(), std::back_inserter(choice.tokens));
    } else if (!burst.tokens.empty()) {
      AppendData(
          WithProbabilities(Part(burst.choice, burst.text, burst.tokens, false), burst.tokens),
          out);
    }
    if (!burst.ending.has_value()) return;
    choice.ending = *burst.ending;
    if (request_.stream && !FinishName(choice.ending.reason).empty()) {
      AppendData(Final(burst.choice), out);
    }
  }

  void End(std::string* out) override {
    if (request_.stream) return;
    const int choices = request_.choices();
    for (int i = 0; i < choices; ++i) {
      if (choices > 1) *out += i == 0 ? '[' : ',';
      *out += Final(i);
    }
    if (choices > 1) *out += ']';
  }

  void Fail(const ApiError& error, std::string* out) const override {
    *out += "data: " + LlamaCppDoor().error(error) + "\n\n";
  }

 private:
  struct Choice {
    std::string prompt;
    std::string text;               // The text of a reply that does not stream.
    std::vector<TokenPart> tokens;  // The tokens of a reply that does not stream.
    bool has_new_line = false;
    Ending ending;
  };

  static void AppendData(const std::string& json, std::string* out) {
    *out += "data: " + json + "\n\n";
  }

  Json Part(int index, const std::string& text, std::span<const TokenPart> parts, bool stop) const {
    Json tokens = Json::array();
    for (const TokenPart& part : parts) {
      if (request_.return_tokens) tokens.push_back(part.token);
    }
    return {{"index", index}, {"content", text}, {"tokens", std::move(tokens)}, {"stop", stop}};
  }

  // The text of a part, with the log-probabilities of its tokens where these are wanted.
  std::string WithProbabilities(const Json& json, std::span<const TokenPart> parts) const {
    std::string text = Dump(json);
    if (request_.sampling.top_logprobs >= 0 && !parts.empty()) {
      AppendMember("completion_probabilities", TokenLogprobs(*tokenizer_, parts, /*ids=*/true),
                   &text);
    }
    return text;
  }

  Json Settings() const {
    const SamplingParams& sampling = request_.sampling;
    const int most = request_.stop.max_tokens;
    Json json = {{"n_predict", most == 0 ? -1 : most}, {"seed", head_.seed}};
    ForEachSamplingField([&](const auto& field) {
      if (!field.has_flag()) return;
      const bool renamed = std::string_view(field.name) == "repetition_penalty";
      json[renamed ? "repeat_penalty" : field.name] = ShortestNumber(sampling.*field.member);
    });
    json.update({{"stop", request_.stop.stop_strings},
                 {"ignore_eos", request_.stop.ignore_eos},
                 {"stream", request_.stream},
                 {"n_probs", std::max(0, sampling.top_logprobs)},
                 {"grammar", request_.format.grammar}});
    return json;
  }

  std::string Final(int index) const {
    const Choice& choice = choices_[index];
    const std::span<const Ending> endings(&choice.ending, 1);
    const RequestStats& stats = choice.ending.stats;
    const Stop stop = StopOf(request_, choice.ending);
    Json json = Part(index, choice.text, choice.tokens, true);
    json.update({{"model", head_.model},
                 {"tokens_predicted", stats.output_tokens},
                 {"tokens_evaluated", stats.prompt_tokens},
                 {"tokens_cached", stats.cached_prompt_tokens},
                 {"generation_settings", Settings()},
                 {"prompt", choice.prompt},
                 {"has_new_line", choice.has_new_line},
                 {"truncated", false},
                 {"stop_type", stop.type},
                 {"stopping_word", stop.word},
                 {"timings", TimingsJson(endings)},
                 {"speculation", SpeculationJson(endings, head_.seed)}});
    return WithProbabilities(json, choice.tokens);
  }

  const ApiRequest& request_;
  const ReplyHead head_;
  const Tokenizer* const tokenizer_;
  std::vector<Choice> choices_;
};

std::unique_ptr<ReplyWriter> LlamaCppWriter(const ApiRequest& request, ReplyHead head,
                                            const Tokenizer* tokenizer) {
  return std::make_unique<ContentWriter>(request, std::move(head), tokenizer);
}

std::string_view LlamaCppErrorType(const ApiError& error) {
  if (error.too_long.has_value()) return "exceed_context_size_error";
  switch (error.status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
    case 503:
      return "unavailable_error";
    case 501:
      return "not_supported_error";
    default:
      return error.status < 500 ? "invalid_request_error" : "server_error";
  }
}

// A prompt that is too long is said in llama.cpp's words, and with its members.
std::string LlamaCppErrorBody(const ApiError& error) {
  Json inner = {{"code", error.status},
                {"message", BoundedMessage(error)},
                {"type", LlamaCppErrorType(error)}};
  if (error.too_long.has_value()) {
    inner["message"] = fmt::format(
        "the request ({} tokens) exceeds the available context size ({} tokens, of which a prompt "
        "may have {}), try increasing it",
        error.too_long->Count(), error.too_long->context, error.too_long->most);
    inner["n_prompt_tokens"] = error.too_long->tokens;
    inner["n_ctx"] = error.too_long->context;
  }
  return Dump({{"error", inner}});
}

}  // namespace

const Door& LlamaCppDoor() {
  static constexpr Door kDoor = {.path = "/completion",
                                 .id_prefix = "",
                                 .prompt = "prompt",
                                 .limit = "n_predict",
                                 .read = ReadLlamaCppCompletion,
                                 .writer = LlamaCppWriter,
                                 .error = LlamaCppErrorBody};
  return kDoor;
}

const Door& LlamaCppInfillDoor() {
  static constexpr Door kDoor = {.path = "/infill",
                                 .id_prefix = "",
                                 .prompt = "input_prefix",
                                 .limit = "n_predict",
                                 .read = ReadInfill,
                                 .writer = LlamaCppWriter,
                                 .error = LlamaCppErrorBody};
  return kDoor;
}

Result<ApiRequest> ReadApplyTemplate(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [body](FieldReader* fields, ApiRequest* request) {
    constexpr std::string_view kTypes[] = {"text"};
    ReadMessages(fields, "messages", {.types = kTypes, .tools = true, .more = ReadToolsOfMessage},
                 &request->chat.messages);
    NameToolAnswers(&request->chat.messages);
    ReadContinuation(fields, "messages", request);
    ReadTools(body, fields, request);
    ReadReasoning(fields, request);
    ReadTemplateVariables(fields, request);
  });
}

}  // namespace foretoken::server
