#include "server/queries.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "server/doors/anthropic.h"
#include "server/doors/llama_cpp.h"
#include "server/doors/ollama.h"
#include "server/doors/tokenize.h"

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

OrderedJson Details(const ServedModel& served) {
  return {{"parent_model", ""},
          {"format", "safetensors"},
          {"family", "llama"},
          {"families", {"llama"}},
          {"parameter_size", ShortCount(served.model->facts().parameters)},
          {"quantization_level", "unknown"}};
}

}  // namespace

QueryAnswer CountTokens(const Service& service, const HttpRequest& request) {
  const Result<ApiRequest> chat = ReadCountTokens(request.body, service.options().defaults);
  if (!chat.ok()) return Refusal(chat.error());
  if (auto error = CheckLength(*chat)) return *error;
  const auto tokens = service.model().tokenizer().EncodeChat(chat->ChatNow());
  if (!tokens.ok()) return ApiError{.message = tokens.error().message, .param = "messages"};
  return QueryReply{OrderedJson::object({{"input_tokens", tokens->size()}}), chat->ignored};
}

QueryAnswer ApplyTemplate(const Service& service, const HttpRequest& request) {
  const Result<ApiRequest> chat = ReadApplyTemplate(request.body, service.options().defaults);
  if (!chat.ok()) return Refusal(chat.error());
  const Result<std::string> text = service.model().tokenizer().ChatText(chat->ChatNow());
  if (!text.ok()) return ApiError{.message = text.error().message, .param = "messages"};
  return QueryReply{OrderedJson::object({{"prompt", *text}}), chat->ignored};
}

QueryAnswer Slots(const Service& service, const HttpRequest& request) {
  const Engine& engine = *service.model().engine;
  const int running = service.engine().stats().Published().running;
  const EngineLimits limits = engine.limits();
  if (running >= limits.batch && request.head.query == "fail_on_no_slot=1") {
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
  return QueryReply{std::move(slots), {}};
}

QueryAnswer OllamaTags(const Service& service, const HttpRequest&) {
  const ServedModel& served = service.model();
  const OrderedJson model = {{"name", served.id},
                             {"model", served.id},
                             {"modified_at", OllamaTime(served.loaded)},
                             {"size", served.model->facts().weight_bytes},
                             {"digest", served.tokenizer().fingerprint()},
                             {"details", Details(served)}};
  return QueryReply{OrderedJson::object({{"models", OrderedJson::array({model})}}), {}};
}

QueryAnswer OllamaShow(const Service& service, const HttpRequest& request) {
  const ServedModel& served = service.model();
  const Result<ApiRequest> asked = ReadOllamaShow(request.body, service.options().defaults);
  if (!asked.ok()) return Refusal(asked.error());
  if (WithoutTag(asked->model) != served.id) return UnknownModel(asked->model, served.id);
  const SamplingParams& sampling = service.options().defaults.sampling;
  OrderedJson shown = {
      {"modelfile", ""},
      {"parameters", fmt::format("temperature {}\ntop_k {}\ntop_p {}\nmin_p {}\n"
                                 "repeat_penalty {}",
                                 sampling.temperature, sampling.top_k, sampling.top_p,
                                 sampling.min_p, sampling.repetition_penalty)},
      {"template", ""},
      {"details", Details(served)},
      {"model_info",
       {{"general.architecture", "llama"},
        {"general.parameter_count", served.model->facts().parameters},
        {"llama.context_length", served.engine->limits().context}}},
      {"capabilities", OrderedJson::array({"completion"})},
      {"modified_at", OllamaTime(served.loaded)}};
  return QueryReply{std::move(shown), asked->ignored};
}

}  // namespace foretoken::server
