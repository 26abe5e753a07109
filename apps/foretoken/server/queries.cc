#include "apps/foretoken/server/queries.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "apps/foretoken/server/doors/doors.h"
#include "apps/foretoken/server/doors/ollama_models.h"
#include "apps/foretoken/server/doors/tokenize.h"
#include "apps/foretoken/server/metrics.h"
#include "apps/foretoken/server/replies.h"
#include "apps/foretoken/server/slots/slot_requests.h"
#include "base/text/utf8.h"
#include "door/api/plan_json.h"

namespace foretoken::server {
namespace {

// Refuses a chat that is too long to be tokenised in a second.
std::optional<ApiError> CheckLength(const ApiRequest& request) {
  std::size_t bytes = request.chat.variables.size();
  for (const ChatMessage& message : request.chat.messages) bytes += message.content.size();
  if (bytes <= kMaxTokenizeBytes) return std::nullopt;
  return ApiError{.message = fmt::format("'messages' hold {} bytes of text; at most {} are allowed",
                                         bytes, kMaxTokenizeBytes),
                  .param = "messages"};
}

// A count as names of models have it: 135M, 7.6B.
std::string ShortCount(std::int64_t count) {
  const auto number = static_cast<double>(count);
  if (count >= 1'000'000'000) return fmt::format("{:.1f}B", number / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.0f}M", number / 1e6);
  return fmt::format("{:.0f}K", number / 1e3);
}

Json SamplingJson(const SamplingParams& sampling) {
  Json json = Json::object();
  ForEachSamplingField([&](const auto& field) {
    if (field.has_flag()) json[field.name] = sampling.*field.member;
  });
  return json;
}

std::string_view StateName(ModelState state) {
  switch (state) {
    case ModelState::kUnloaded:
      return "unloaded";
    case ModelState::kLoading:
      return "loading";
    case ModelState::kLoaded:
      return "loaded";
  }
  return "";
}

// What is not known of a model whose files cannot be read is empty.
Json Details(const ModelCard& card) {
  const bool known = !card.architecture.empty();
  return {{"parent_model", ""},
          {"format", !known      ? ""
                     : card.gguf ? "gguf"
                                 : "safetensors"},
          {"family", card.architecture},
          {"families", known ? Json::array({card.architecture}) : Json(nullptr)},
          {"parameter_size", known ? ShortCount(card.parameters) : ""},
          {"quantization_level", card.stored_as}};
}

// Tokens of a sequence at most, whether the model is loaded or not.
int ContextOf(const ModelSpec& spec, const ModelCard& card) {
  return std::min(spec.context.value_or(card.max_context), card.max_context);
}

// What clients may ask of a model, as Ollama names it.
Json CapabilitiesOf(const ModelCard& card) {
  Json capabilities = Json::array({card.embeds ? "embedding" : "completion"});
  if (card.calls_tools) capabilities.push_back("tools");
  if (card.fills_gaps) capabilities.push_back("insert");
  if (card.thinks) capabilities.push_back("thinking");
  return capabilities;
}

// A model's figures by the names that GGUF files have for them.
Json ModelInfo(const ModelSpec& spec, const ModelCard& card) {
  Json info = {{"general.architecture", card.architecture},
               {"general.basename", spec.id},
               {"general.parameter_count", card.parameters}};
  if (!card.name.empty()) info["general.name"] = card.name;
  const std::pair<std::string_view, int> figures[] = {{"context_length", ContextOf(spec, card)},
                                                      {"embedding_length", card.hidden},
                                                      {"block_count", card.layers},
                                                      {"feed_forward_length", card.intermediate},
                                                      {"attention.head_count", card.heads},
                                                      {"attention.head_count_kv", card.kv_heads},
                                                      {"vocab_size", card.vocabulary}};
  for (const auto& [name, figure] : figures) {
    info[fmt::format("{}.{}", card.architecture, name)] = figure;
  }
  return info;
}

ApiError UnreadModel(const std::string& model, const Error& error) {
  return {.status = 500,
          .message = fmt::format("the files of '{}' cannot be read: {}", model, error.message),
          .type = "server_error",
          .code = "model_not_loaded"};
}

SlotUser UserOf(const HttpHead& head) {
  const auto key = std::static_pointer_cast<const ApiKey>(head.client);
  if (key == nullptr) return {};
  return {.name = key->name, .scope = key->prefix_scope};
}

// One of Ollama's lists of models.
Json OllamaEntry(const ModelSpec& spec, const ModelCard& card) {
  return {{"name", spec.id},
          {"model", spec.id},
          {"size", spec.bytes},
          {"digest", card.fingerprint},
          {"details", Details(card)}};
}

}  // namespace

HttpReply ReplyOf(const QueryAnswer& answer, const Door& door) {
  if (const auto* error = std::get_if<ApiError>(&answer)) return ErrorReply(*error, door);
  const auto& found = std::get<QueryReply>(answer);
  HttpReply reply{.content_type = "application/json", .body = found.body};
  NameIgnored(found.ignored, &reply);
  return reply;
}

QueryAnswer Tokenize(const Service& service, const HttpRequest& request) {
  const Result<TokenizeRequest> parsed = ParseTokenizeRequest(request.body);
  if (!parsed.ok()) return Refusal(parsed.error());
  const Tokenizer& tokenizer = service.model().tokenizer();
  const std::vector<Token> tokens =
      tokenizer.Encode(parsed->content, parsed->add_special, parsed->parse_special);
  // Written as it goes: a JSON value would take ten times the memory of its text.
  std::string text = "{\"tokens\":[";
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += ',';
    if (parsed->with_pieces) {
      text += Dump({{"id", tokens[i]}, {"piece", TokenText(tokenizer, tokens[i])}});
    } else {
      text += std::to_string(tokens[i]);
    }
  }
  text += fmt::format("],\"count\":{}}}", tokens.size());
  return QueryReply{std::move(text), {}};
}

QueryAnswer Detokenize(const Service& service, const HttpRequest& request) {
  const Tokenizer& tokenizer = service.model().tokenizer();
  const Result<std::vector<Token>> tokens =
      ParseDetokenizeRequest(request.body, tokenizer.vocabulary());
  if (!tokens.ok()) return Refusal(tokens.error());
  return QueryReply{Dump({{"content", DecodeTokens(tokenizer, *tokens)}}), {}};
}

QueryAnswer CountTokens(const Service& service, const HttpRequest& request) {
  const Result<ApiRequest> chat = ReadCountTokens(request.body, service.options().defaults);
  if (!chat.ok()) return Refusal(chat.error());
  if (auto error = CheckLength(*chat)) return *error;
  const auto tokens = service.model().tokenizer().EncodeChat(chat->ChatNow());
  if (!tokens.ok()) return ApiError{.message = tokens.error().message, .param = "messages"};
  return QueryReply{Dump({{"input_tokens", tokens->size()}}), chat->ignored};
}

QueryAnswer ApplyTemplate(const Service& service, const HttpRequest& request) {
  const Result<ApiRequest> chat = ReadApplyTemplate(request.body, service.options().defaults);
  if (!chat.ok()) return Refusal(chat.error());
  const Result<std::string> text = service.model().tokenizer().ChatText(chat->ChatNow());
  if (!text.ok()) return ApiError{.message = text.error().message, .param = "messages"};
  return QueryReply{Dump({{"prompt", *text}}), chat->ignored};
}

QueryAnswer Slots(const Service& service, const HttpRequest& request) {
  const Engine& engine = *service.model().engine;
  const int running = service.engine().stats().Published().running;
  const EngineLimits limits = engine.limits();
  if (running >= limits.batch && request.head.QueryValue("fail_on_no_slot") == "1") {
    return ApiError{.status = 503,
                    .message = fmt::format("all {} places are taken", limits.batch),
                    .type = "server_error",
                    .code = "no_slot"};
  }
  Json slots = Json::array();
  for (int i = 0; i < limits.batch; ++i) {
    slots.push_back({{"id", i},
                     {"n_ctx", limits.context},
                     {"speculative", engine.plan().mode != Mode::kAr},
                     {"is_processing", i < running}});
    const SlotKeeper* const keeper = service.slots();
    if (keeper != nullptr) slots.back()["n_tokens"] = keeper->TokensIn(i, UserOf(request.head));
  }
  return QueryReply{Dump(slots), {}};
}

QueryAnswer ActOnSlot(Service& service, const HttpHead& head, const SlotAction& action) {
  const Result<SlotOutcome> outcome = service.slots()->Do(
      action, UserOf(head),
      {.model = service.model().model.get(),
       .engine = service.model().engine.get(),
       .on_engine = [&service](const std::function<void()>& work) { service.engine().Do(work); }});
  if (!outcome.ok()) return SlotError(outcome.error());
  return QueryReply{Dump(SlotOutcomeJson(action, *outcome)), {}};
}

QueryAnswer LoraAdapters(const Service& service, const HttpRequest&) {
  Json list = Json::array();
  for (const AdapterSource& adapter : service.model().model->adapters()) {
    list.push_back({{"id", list.size()},
                    {"name", adapter.name},
                    // Without the folders of this machine, which are its operator's.
                    {"path", std::filesystem::path(adapter.path).filename().string()},
                    {"scale", adapter.scale}});
  }
  return QueryReply{Dump(list), {}};
}

// Which draft drafts in each mode that has one.
Json DraftsJson(const Engine& engine, const std::vector<std::string>& drafts) {
  Json by_mode = Json::object();
  for (const Mode mode : OfferedModes(engine)) {
    if (!NeedsDraft(mode)) continue;
    const std::size_t draft = DraftIndex(mode.drafter);
    if (draft < drafts.size()) by_mode[std::string(ModeName(mode))] = drafts[draft];
  }
  return by_mode;
}

// What llama.cpp's clients read.
Json LlamaProps(const Service& service) {
  const ServedModel& served = service.model();
  const EngineLimits limits = served.engine->limits();
  const Tokenizer& tokenizer = served.tokenizer();
  const CallForm* calls = tokenizer.chat_format().calls;
  const auto name = [&tokenizer](std::optional<Token> token) {
    return token.has_value() ? std::string(tokenizer.TokenName(*token)) : std::string();
  };
  const std::vector<Token> ends = tokenizer.eos();
  Json params = SamplingJson(service.options().defaults.sampling);
  params["repeat_penalty"] = params["repetition_penalty"];
  params["n_predict"] = -1;
  return {{"default_generation_settings",
           {{"n_ctx", limits.context},
            {"speculative", served.engine->plan().mode != Mode::kAr},
            {"params", std::move(params)}}},
          {"total_slots", limits.batch},
          {"model_alias", service.id()},
          {"model_path", std::filesystem::path(served.model->source().path).filename().string()},
          {"modalities", {{"vision", false}, {"audio", false}}},
          {"chat_template_caps",
           {{"supports_tools", calls != nullptr},
            {"supports_tool_calls", calls != nullptr},
            {"supports_parallel_tool_calls", calls != nullptr && calls->several}}},
          {"bos_token", name(tokenizer.bos())},
          {"eos_token", name(ends.empty() ? std::nullopt : std::optional(ends.front()))}};
}

Json PropsJson(const Service& service) {
  const ServedModel& served = service.model();
  const EngineLimits limits = served.engine->limits();
  const Tokenizer& tokenizer = served.tokenizer();
  const CallForm* calls = tokenizer.chat_format().calls;
  const std::vector<std::string>& drafts = served.drafts;
  std::vector<std::string> modes;
  for (const Mode mode : OfferedModes(*served.engine)) modes.emplace_back(ModeName(mode));
  Json props = {{"model", service.id()},
                {"draft", drafts.empty() ? Json(nullptr) : Json(drafts.front())},
                {"drafts", DraftsJson(*served.engine, drafts)},
                {"context", limits.context},
                {"vocabulary", tokenizer.vocabulary()},
                {"tokenizer_fingerprint", tokenizer.fingerprint()},
                {"chat", tokenizer.has_chat_template()},
                {"tool_format", calls == nullptr ? Json(nullptr) : Json(calls->name)},
                {"not_used", served.model->facts().not_used},
                {"modes", modes},
                {"speculation", PlanJson(served.engine->plan())},
                {"recent_kv", KvJson(service.engine().stats().Published().recent_kv)},
                {"sampling", SamplingJson(service.options().defaults.sampling)},
                {"limits",
                 {{"batch", limits.batch},
                  {"queue", limits.queue},
                  {"client_sequences", service.ClientShare()},
                  {"lookahead", limits.lookahead},
                  {"cache_budget", limits.cache_budget},
                  {"choices", kMaxChoices},
                  {"texts", kMaxTexts},
                  {"request_seconds", service.options().request_seconds}}}};
  props.update(LlamaProps(service));
  return props;
}

Json ModelJson(const ModelRegistry& models, ModelRegistry::Index model, std::int64_t since) {
  const ModelSpec& spec = models.spec(model);
  const ModelStatus status = models.status(model);
  Json json = {{"id", spec.id},           {"object", "model"},
               {"created", since},        {"owned_by", "foretoken"},
               {"aliases", spec.aliases}, {"status", {{"value", StateName(status.state)}}}};
  // As Anthropic's clients read it.
  json.update({{"type", "model"}, {"display_name", spec.id}, {"created_at", OllamaTime(since)}});
  if (!status.failure.empty()) {
    json["status"]["failure"] = "could not be loaded; the server's standard error says why";
  }
  json["max_model_len"] = status.context ? Json(*status.context) : Json(nullptr);
  return json;
}

// OpenAI's list, and Anthropic's, which is all there is.
Json ModelsJson(const ModelRegistry& models, std::int64_t since) {
  Json list = Json::array();
  for (ModelRegistry::Index i = 0; i < models.size(); ++i) {
    list.push_back(ModelJson(models, i, since));
  }
  return {{"object", "list"},
          {"data", std::move(list)},
          {"has_more", false},
          {"first_id", models.spec(0).id},
          {"last_id", models.spec(models.size() - 1).id}};
}

Json OllamaTags(const ModelRegistry& models, ModelCards* cards, std::int64_t since) {
  Json list = Json::array();
  for (ModelRegistry::Index i = 0; i < models.size(); ++i) {
    list.push_back(OllamaEntry(models.spec(i), *cards->Known(i)));
    list.back()["modified_at"] = OllamaTime(since);
  }
  return {{"models", std::move(list)}};
}

Json OllamaRunning(const ModelRegistry& models, ModelCards* cards) {
  using std::chrono::steady_clock;
  using std::chrono::system_clock;
  Json list = Json::array();
  for (ModelRegistry::Index i = 0; i < models.size(); ++i) {
    const ModelStatus status = models.status(i);
    if (status.state != ModelState::kLoaded) continue;
    Json entry = OllamaEntry(models.spec(i), *cards->Known(i));
    entry["size"] = status.bytes;
    entry["size_vram"] = 0;
    entry["context_length"] = *status.context;
    entry["expires_at"] = "9999-12-31T23:59:59Z";
    if (status.leaves.has_value()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::seconds>(*status.leaves - steady_clock::now());
      entry["expires_at"] = OllamaTime(system_clock::to_time_t(system_clock::now() + left));
    }
    list.push_back(std::move(entry));
  }
  return {{"models", std::move(list)}};
}

QueryAnswer OllamaShow(const ModelRegistry& models, ModelCards* cards, std::int64_t since,
                       const HttpRequest& request) {
  const Result<ApiRequest> asked = ReadOllamaModel(request.body, models.spec(0).options.defaults);
  if (!asked.ok()) return Refusal(asked.error());
  const auto found = models.Resolve(asked->model);
  if (const auto* error = std::get_if<ApiError>(&found)) return *error;
  const auto index = std::get<ModelRegistry::Index>(found);
  const ModelSpec& spec = models.spec(index);
  const Result<ModelCards::Card> read = cards->Of(index);
  if (!read.ok()) return UnreadModel(spec.id, read.error());
  const ModelCard& card = **read;
  const SamplingParams& sampling = spec.options.defaults.sampling;
  const Json shown = {
      {"license", card.license},
      {"modelfile", ""},
      {"parameters", fmt::format("num_ctx {}\ntemperature {}\ntop_k {}\ntop_p {}\nmin_p {}\n"
                                 "repeat_penalty {}",
                                 ContextOf(spec, card), sampling.temperature, sampling.top_k,
                                 sampling.top_p, sampling.min_p, sampling.repetition_penalty)},
      {"template", card.chat_template},
      {"details", Details(card)},
      {"model_info", ModelInfo(spec, card)},
      {"capabilities", CapabilitiesOf(card)},
      {"modified_at", OllamaTime(since)}};
  return QueryReply{Dump(shown), asked->ignored};
}

HttpReply OllamaPulled(bool stream) {
  const std::string success = Dump({{"status", "success"}});
  if (!stream) return {.content_type = "application/json", .body = success};
  return {.content_type = std::string(OllamaChatDoor().stream_type),
          .body = Dump({{"status", "pulling manifest"}}) + "\n" + success + "\n"};
}

ApiError PullsForbidden(const std::string& model) {
  return {.status = 403,
          .message = fmt::format("this server fetches no models for its clients, and '{}' is none "
                                 "of those that it serves: its operator can fetch it with "
                                 "'foretoken pull' and start the server with it, or let clients "
                                 "fetch models with --allow-pull",
                                 Shortened(model)),
          .param = "model",
          .code = "models_fixed"};
}

}  // namespace foretoken::server
