#include "server/queries.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "server/doors/anthropic.h"
#include "server/doors/llama_cpp.h"
#include "server/doors/ollama.h"
#include "server/doors/tokenize.h"
#include "server/metrics.h"

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

OrderedJson SamplingJson(const SamplingParams& sampling) {
  return {{"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"repetition_penalty", sampling.repetition_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"presence_penalty", sampling.presence_penalty}};
}

OrderedJson PlanJson(const PlanOptions& plan) {
  return {{"mode", ModeName(*plan.mode)},
          {"lookahead", *plan.lookahead},
          {"fanout", plan.fanout->counts},
          {"fallback", FallbackName(*plan.fallback)},
          {"tree_width", *plan.tree_width}};
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

// `served` is null where the model is not loaded.
OrderedJson Details(const Service* served) {
  return {{"parent_model", ""},
          {"format", "safetensors"},
          {"family", "llama"},
          {"families", {"llama"}},
          {"parameter_size",
           served == nullptr ? "" : ShortCount(served->model().model->facts().parameters)},
          {"quantization_level", "unknown"}};
}

}  // namespace

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
  OrderedJson slots = OrderedJson::array();
  for (int i = 0; i < limits.batch; ++i) {
    slots.push_back({{"id", i},
                     {"n_ctx", limits.context},
                     {"speculative", engine.plan().mode != Mode::kAr},
                     {"is_processing", i < running}});
  }
  return QueryReply{Dump(slots), {}};
}

QueryAnswer LoraAdapters(const Service& service, const HttpRequest&) {
  OrderedJson list = OrderedJson::array();
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
OrderedJson DraftsJson(const Engine& engine, const std::vector<std::string>& drafts) {
  OrderedJson by_mode = OrderedJson::object();
  for (const Mode mode : OfferedModes(engine)) {
    if (!NeedsDraft(mode)) continue;
    const std::size_t draft = DraftIndex(mode.drafter);
    if (draft < drafts.size()) by_mode[std::string(ModeName(mode))] = drafts[draft];
  }
  return by_mode;
}

OrderedJson PropsJson(const Service& service) {
  const ServedModel& served = service.model();
  const EngineLimits limits = served.engine->limits();
  const Tokenizer& tokenizer = served.tokenizer();
  const CallForm* calls = tokenizer.chat_format().calls;
  const std::vector<std::string>& drafts = served.drafts;
  std::vector<std::string> modes;
  for (const Mode mode : OfferedModes(*served.engine)) modes.emplace_back(ModeName(mode));
  return {{"model", service.id()},
          {"draft", drafts.empty() ? OrderedJson(nullptr) : OrderedJson(drafts.front())},
          {"drafts", DraftsJson(*served.engine, drafts)},
          {"context", limits.context},
          {"vocabulary", tokenizer.vocabulary()},
          {"tokenizer_fingerprint", tokenizer.fingerprint()},
          {"chat", tokenizer.has_chat_template()},
          {"tool_format", calls == nullptr ? OrderedJson(nullptr) : OrderedJson(calls->name)},
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
            {"request_seconds", service.options().request_seconds}}}};
}

OrderedJson ModelJson(const ModelRegistry& models, ModelRegistry::Index model, std::int64_t since) {
  const ModelSpec& spec = models.spec(model);
  const ModelStatus status = models.status(model);
  OrderedJson json = {{"id", spec.id},           {"object", "model"},
                      {"created", since},        {"owned_by", "foretoken"},
                      {"aliases", spec.aliases}, {"status", {{"value", StateName(status.state)}}}};
  if (!status.failure.empty()) {
    json["status"]["failure"] = "could not be loaded; the server's standard error says why";
  }
  json["max_model_len"] = status.context > 0 ? OrderedJson(status.context) : OrderedJson(nullptr);
  return json;
}

OrderedJson OllamaTags(const ModelRegistry& models, std::int64_t since) {
  OrderedJson list = OrderedJson::array();
  for (ModelRegistry::Index i = 0; i < models.size(); ++i) {
    const ModelSpec& spec = models.spec(i);
    const ModelRegistry::Lease served = models.Peek(i);
    list.push_back({{"name", spec.id},
                    {"model", spec.id},
                    {"modified_at", OllamaTime(since)},
                    {"size", spec.bytes},
                    {"digest", served == nullptr ? "" : served->model().tokenizer().fingerprint()},
                    {"details", Details(served.get())}});
  }
  return {{"models", std::move(list)}};
}

QueryAnswer OllamaShow(const ModelRegistry& models, std::int64_t since,
                       const HttpRequest& request) {
  const Result<ApiRequest> asked = ReadOllamaShow(request.body, models.spec(0).options.defaults);
  if (!asked.ok()) return Refusal(asked.error());
  const ModelRegistry::Index found = models.Find(asked->model);
  if (found == ModelRegistry::kNone) return models.UnknownModel(asked->model);
  const ModelRegistry::Lease served = models.Peek(found);
  const SamplingParams& sampling = models.spec(found).options.defaults.sampling;
  OrderedJson info = {{"general.architecture", "llama"}};
  if (served != nullptr) {
    info["general.parameter_count"] = served->model().model->facts().parameters;
    info["llama.context_length"] = served->model().engine->limits().context;
  }
  const OrderedJson shown = {
      {"modelfile", ""},
      {"parameters", fmt::format("temperature {}\ntop_k {}\ntop_p {}\nmin_p {}\n"
                                 "repeat_penalty {}",
                                 sampling.temperature, sampling.top_k, sampling.top_p,
                                 sampling.min_p, sampling.repetition_penalty)},
      {"template", ""},
      {"details", Details(served.get())},
      {"model_info", std::move(info)},
      {"capabilities", OrderedJson::array({"completion"})},
      {"modified_at", OllamaTime(since)}};
  return QueryReply{Dump(shown), asked->ignored};
}

}  // namespace foretoken::server
