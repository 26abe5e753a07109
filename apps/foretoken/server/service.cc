#include "apps/foretoken/server/service.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <iterator>
#include <utility>

#include "apps/foretoken/server/api/gap_prompt.h"
#include "apps/foretoken/server/api/tool_fields.h"
#include "apps/foretoken/server/doors/doors.h"
#include "apps/foretoken/server/models/adapters.h"
#include "apps/foretoken/server/request_checks.h"
#include "base/exhaustion.h"
#include "base/numbers/integers.h"
#include "base/text/utf8.h"
#include "foretoken/receipt.h"

namespace foretoken::server {
namespace {

// Requests are refused where less could be had: a step of the engine for those under way cannot.
constexpr std::size_t kKeptForSteps = std::size_t{16} << 20;

// The name that the API has for a field of the public headers.
std::string FieldOf(const Door& door, const std::string& field) {
  if (field == "prompt") return std::string(door.prompt);
  if (field == "stop_strings") return "stop";
  if (field == "max_tokens") return std::string(door.limit);
  constexpr std::string_view kOfPlans[] = {
      "mode",   "lookahead", "tree_width",       "lookahead_window",
      "fanout", "fallback",  "lookahead_guesses"};
  if (std::ranges::find(kOfPlans, field) != std::end(kOfPlans)) return "speculative." + field;
  // The server's own option, which does not go with the mode or fallback that was asked for.
  if (field == "speculation_length") return "speculative";
  return field;
}

// Adds the tokens of the prompts of a completion, and to `stop` those that end what fills a gap.
std::optional<ApiError> EncodePrompts(const Door& door, const ApiRequest& api,
                                      const Tokenizer& tokenizer, int limit,
                                      std::vector<std::vector<Token>>* prompts, StopRules* stop) {
  for (const ApiPrompt& prompt : api.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    if (text != nullptr && api.rank.has_value()) {
      prompts->push_back(RankTokens(tokenizer, *text));
    } else if (text != nullptr) {
      prompts->push_back(tokenizer.Encode(*text, true, api.parse_special));
    } else if (const auto* gap = std::get_if<ApiGap>(&prompt)) {
      const FillMarks marks = FindFillMarks(tokenizer);
      if (!marks.complete()) {
        return ApiError{.message =
                            "the model does not support infill (Ollama's 'insert'): its "
                            "vocabulary has no tokens that stand before the text in front "
                            "of a gap, behind it and in it",
                        .param = std::string(door.prompt),
                        .code = "no_infill"};
      }
      prompts->push_back(GapPrompt(*gap, tokenizer, marks, limit));
      std::ranges::copy(GapEnds(marks), std::back_inserter(stop->stop_tokens));
    } else {
      prompts->push_back(std::get<std::vector<Token>>(prompt));
      if (auto error = CheckVocabulary(door, prompts->back(), tokenizer.vocabulary())) return error;
    }
  }
  return std::nullopt;
}

// Sets the namespace of the served datastore that a wish names; else the key's first, or without
// keys the default one (null where there is no datastore).
std::optional<ApiError> FindTenant(const DatastoreWish& wish, const Caller& caller,
                                   const ServedModel& served,
                                   std::shared_ptr<DatastoreTenant>* tenant) {
  if (served.datastore == nullptr) {
    // Where only a draft learns, it is that which is asked to leave the output out.
    const bool about_draft = wish.tenant.empty() && served.engine->learning_report().has_value();
    if (!wish.given || about_draft) return std::nullopt;
    return ApiError{.message =
                        "this server has no datastore; it has one where it is started with "
                        "--datastore DIR",
                    .param = "datastore"};
  }
  std::string name = wish.tenant;
  if (caller.key != nullptr) {
    const std::vector<std::string>& own = caller.key->namespaces;
    if (name.empty()) name = own.front();
    if (std::ranges::find(own, name) == own.end()) {
      return ApiError{.status = 403,
                      .message = fmt::format("the namespace '{}' does not belong to this API key; "
                                             "those that do: {}",
                                             Shortened(name), fmt::join(own, ", ")),
                      .param = "datastore.namespace",
                      .code = "namespace_not_owned"};
    }
  }
  if (name.empty()) {
    *tenant = served.tenant;
    return std::nullopt;
  }
  if (const Status named = DatastoreFolder::CheckNamespace(name); !named.ok()) {
    return ApiError{.message = named.error().message, .param = "datastore.namespace"};
  }
  const Result<std::shared_ptr<DatastoreTenant>> found = served.datastore->Tenant(name);
  if (!found.ok()) {
    // Why is the operator's: it may name files of the server.
    fmt::print(stderr, "foretoken: warning: the namespace '{}' could not be opened: {}\n", name,
               found.error().message);
    ApiError error{.message = fmt::format("the namespace '{}' could not be opened; the server's "
                                          "standard error says why",
                                          name),
                   .param = "datastore.namespace"};
    if (found.error().code == ErrorCode::kUnavailable) {
      error.status = 503;
      error.type = "server_error";
      error.retry_after = 1;
    }
    return error;
  }
  *tenant = *found;
  return std::nullopt;
}

// Whether thoughts that a text begins go on behind it.
bool LeavesOpen(std::string_view text, const ChatFormat& format) {
  const ReasoningForm& reasoning = format.reasoning;
  if (reasoning.open.empty()) return false;
  const std::size_t open = text.rfind(reasoning.open);
  return open != text.npos && text.find(reasoning.close, open) == text.npos;
}

// How a request is speculated for: a prediction is drafted from where the request does not say
// otherwise, by what copies from it alone or among others.
std::optional<PlanOptions> PlanFor(const ApiRequest& api, const Engine& engine) {
  std::optional<PlanOptions> plan = api.speculation;
  if (api.prediction.empty() || (plan && plan->mode)) return plan;
  for (const DrafterId drafter : {DrafterId::kProtocol, DrafterId::kEnsemble}) {
    const Mode mode{Schedule::kBefore, drafter};
    if (!engine.Offers(mode)) continue;
    if (!plan) plan.emplace();
    plan->mode = mode;
    break;
  }
  return plan;
}

// Puts what was said up to the end of the response that a request goes on with before its own
// turns; `kept` gets what is known so far of the request's own.
std::optional<ApiError> Recall(const Caller& caller, const ResponseStore* store,
                               ApiRequest* request, KeptResponse* kept) {
  const KeepWish& wish = request->keep;
  std::vector<ChatMessage>& turns = request->chat.messages;
  const auto own = turns.begin() + wish.first_turn;
  if (wish.store) kept->turns.assign(own, turns.end());
  if (wish.previous.empty()) return std::nullopt;
  if (store != nullptr) kept->before = store->Find(caller.client, wish.previous);
  if (kept->before == nullptr) {
    return ApiError{.message = fmt::format("Previous response with id '{}' not found. This server "
                                           "keeps the latest ones only; send the whole "
                                           "conversation in 'input'.",
                                           Shortened(wish.previous)),
                    .param = "previous_response_id",
                    .code = "previous_response_not_found"};
  }
  std::vector<ChatMessage> earlier = kept->before->Conversation();
  turns.insert(own, std::make_move_iterator(earlier.begin()),
               std::make_move_iterator(earlier.end()));
  NameToolAnswers(&turns);
  return std::nullopt;
}

// Sets what the outputs must match.
std::optional<ApiError> Constrain(const ApiRequest& api, const ChatReading& reading,
                                  const LanguageModel& model, SamplingParams* sampling) {
  if (!api.tools.empty() && reading.format.calls == nullptr) {
    // Ollama's clients know by the first words that they must do without.
    return ApiError{.message =
                        "the model does not support tools: its chat template writes no calls of "
                        "them in a form that this server knows; the form can be given with "
                        "--tool-format, or another template with --chat-template",
                    .param = "tools"};
  }
  Result<std::string> grammar = api.format.grammar;
  std::string field = api.format.field;
  if (api.kind == ApiKind::kChat) {
    grammar = AnswerGrammar({.reading = reading,
                             .must_call = api.must_call,
                             .one_call = api.one_call,
                             .content_grammar = api.format.grammar,
                             .budget = api.budget});
    if (!api.tools.empty()) field = "tools";
    if (field.empty()) field = "thinking_budget_tokens";
  }
  if (!grammar.ok()) return ApiError{.message = grammar.error().message, .param = field};
  if (grammar->empty()) return std::nullopt;
  Result<std::shared_ptr<TokenConstraint>> constraint = model.CompileGrammar(*grammar);
  if (!constraint.ok()) return ApiError{.message = constraint.error().message, .param = field};
  sampling->constraint = std::move(*constraint);
  return std::nullopt;
}

}  // namespace

std::string_view RequestOutcomeName(RequestOutcome outcome) {
  constexpr std::array<std::string_view, kRequestOutcomes> kNames = {
      "stop",    "length", "client_gone", "timeout", "shutdown",
      "invalid", "busy",   "unavailable", "failed"};
  return kNames[static_cast<std::size_t>(outcome)];
}

std::vector<Mode> OfferedModes(const Engine& engine) {
  std::vector<Mode> modes;
  for (const Mode mode : kModes) {
    if (engine.Offers(mode)) modes.push_back(mode);
  }
  return modes;
}

ApiError MemoryError() {
  return {.status = 503,
          .message = "there is not enough memory for this request",
          .type = "server_error",
          .code = "out_of_memory",
          .retry_after = 1};
}

ApiError AbortError(AbortReason reason, double request_seconds) {
  if (reason == AbortReason::kTimeout) {
    return {.status = 504,
            .message = fmt::format("the request took longer than {} seconds and was ended; ask "
                                   "for fewer tokens",
                                   request_seconds),
            .type = "timeout_error",
            .code = "request_timeout"};
  }
  return {.status = 503,
          .message = "the server is shutting down, so the request was ended; send it again",
          .type = "server_error",
          .code = "shutting_down"};
}

ApiError GrammarError(const std::string& field) {
  return {.message =
              "the grammar is too ambiguous: the text generated so far can be read in too many "
              "ways to go on; write it with fewer alternatives and optional parts that begin alike",
          .param = field,
          .code = "grammar_too_ambiguous"};
}

ApiError NotFiniteError(std::string_view model) {
  return {.status = 500,
          .message = NotFiniteMessage(model),
          .type = "server_error",
          .code = "model_not_finite"};
}

SlotKeeper* Service::slots() const {
  if (options().slot_folder.empty()) return nullptr;
  std::call_once(slots_made_, [this] {
    slots_ = std::make_unique<SlotKeeper>(options().slot_folder, model().engine->limits().batch);
  });
  return slots_.get();
}

// What notes the texts of a request when they end; nothing where nobody keeps them.
LiveRequest::Output Service::NotingTexts(const Caller& caller, const ApiRequest& api,
                                         std::span<const Request> requests) const {
  SlotKeeper* const keeper = slots();
  if (keeper == nullptr || api.in_bits()) return nullptr;
  std::vector<CachedText> texts;
  for (const Request& request : requests) {
    texts.push_back({.tokens = request.prompt,
                     .adapter = request.adapter,
                     .scope = request.prefix_scope,
                     .owner = caller.key != nullptr ? caller.key->name : std::string()});
  }
  return [keeper, slot = api.slot, texts = std::move(texts)](int choice,
                                                             std::vector<Token> output) mutable {
    CachedText& text = texts[choice];
    text.tokens.insert(text.tokens.end(), output.begin(), output.end());
    keeper->Note(slot, std::move(text));
  };
}

std::uint64_t Service::Random() {
  const std::lock_guard lock(random_mutex_);
  return random_();
}

int Service::RetryAfterSeconds() {
  // About when a place falls free: a request's time, divided by those that run at once.
  const ServerTotals totals = engine_.stats().Published();
  const DurationBuckets& times = totals.request_time;
  if (times.count == 0 || totals.running == 0) return 1;
  return std::clamp(static_cast<int>(std::ceil(times.sum / times.count / totals.running)), 1, 60);
}

ApiError Service::Busy(std::string message, std::string code) {
  return {.status = 429,
          .message = std::move(message),
          .type = "rate_limit_error",
          .code = std::move(code),
          .retry_after = RetryAfterSeconds()};
}

int Service::ClientShare() const {
  const EngineLimits limits = model().engine->limits();
  const int places = limits.batch + limits.queue;
  if (options().client_limit) return std::min(*options().client_limit, places);
  return options().clients_are_one ? places : std::max(1, places / 2);
}

int Service::LimitOf(const Caller& caller) const {
  return caller.key != nullptr && caller.key->limit ? *caller.key->limit : ClientShare();
}

// How many of a request's sequences are under way together: texts for embeddings, of which there
// may be thousands, go in as others of them end.
int Service::AtOnce(const ApiRequest& request, int limit) const {
  const int choices = request.choices();
  if (!request.in_bits()) return choices;
  // A document's prompt is found in the prefix cache when it is read the second time.
  const int most = request.rank.has_value() ? choices / 2 : choices;
  return std::min({most, limit, model().engine->limits().batch});
}

std::optional<ApiError> Service::MakeRequests(const Door& door, const Caller& caller,
                                              std::vector<Request>* requests, Admitted* admitted) {
  const ApiRequest& api = admitted->request;
  const ServedModel& served = model();
  const Tokenizer& tokenizer = served.tokenizer();
  const bool chat = api.kind == ApiKind::kChat;
  const std::string prompt_field(door.prompt);
  const int context = served.engine->limits().context;
  const int limit = std::min(options().max_prompt_tokens.value_or(context - 1), context - 1);
  const PromptTooLong bounds{.most = limit, .context = context};
  if (auto error = CheckLengths(door, api, bounds, served.longest_token)) return error;
  std::vector<std::vector<Token>> prompts;
  ChatReading reading;  // What outputs must be does not depend on how they are shown.
  if (chat) {
    Result<std::vector<Token>> tokens = tokenizer.EncodeChat(api.ChatNow());
    if (!tokens.ok()) {
      return ApiError{.message = tokens.error().message, .param = prompt_field};
    }
    prompts.push_back(std::move(*tokens));
    reading = ReadingAfter(tokenizer, prompts.front());
    if (api.chat.continues_last) {
      reading.in_reasoning =
          reading.in_reasoning || LeavesOpen(api.chat.messages.back().content, reading.format);
    }
    reading.tools = api.tools;
    admitted->reading = reading;
    if (!api.parts_reasoning) {
      admitted->reading.format.reasoning = {};
      admitted->reading.in_reasoning = false;
    }
  }
  StopRules stop = api.stop;
  if (auto error = EncodePrompts(door, api, tokenizer, limit, &prompts, &stop)) return error;
  if (auto error = CheckEmbeddings(door, api, served.model->facts().hidden)) return error;
  if (auto error = CheckMode(api.speculation, *served.engine)) return error;
  SamplingParams sampling = api.sampling;
  if (auto error = Constrain(api, reading, *served.model, &sampling)) return error;
  const auto adapter = AdapterFor(api, *served.model);
  if (const auto* error = std::get_if<ApiError>(&adapter)) return *error;
  std::shared_ptr<DatastoreTenant> tenant;
  if (auto error = FindTenant(api.datastore, caller, served, &tenant)) return error;
  const std::optional<PlanOptions> plan = PlanFor(api, *served.engine);
  if (auto error = CheckPrediction(api, context, served.longest_token)) return error;
  std::vector<Token> prediction = tokenizer.Encode(api.prediction, false, false);
  prediction.resize(std::min(prediction.size(), Size(context)));
  const std::uint64_t seed =
      api.seeded || !options().random_seed ? api.sampling.seed : Random() >> 11;
  const std::uint64_t group = (Random() >> 1) | 1;  // A request's choices share its places.
  const auto answers = api.rank.has_value() ? FindYesAndNo(tokenizer) : std::nullopt;
  if (api.rank.has_value() && !answers.has_value()) {
    return ApiError{.status = 501,
                    .message =
                        "the model does not support reranking: its vocabulary has no tokens "
                        "that say yes and no",
                    .code = "no_rerank"};
  }
  Totals totals;
  for (const std::vector<Token>& prompt : prompts) {
    if (std::ssize(prompt) > limit) {
      PromptTooLong too_long = bounds;
      too_long.tokens = std::ssize(prompt);
      return Refusal(too_long, prompt_field);
    }
    for (int i = 0; i < api.n; ++i) {
      Request request;
      request.prompt = prompt;
      request.sampling = sampling;
      request.sampling.seed = seed + static_cast<std::uint64_t>(i);
      if (api.rank.has_value()) {
        const bool first = requests->size() < api.rank->documents.size();
        request.sampling.logit_bias = {{first ? answers->yes : answers->no, kMustCome}};
      }
      request.stop = stop;
      if (request.stop.max_tokens == 0 && !api.prompt_only) request.stop.max_tokens = context;
      if (api.scores_prompts()) {
        request.prompt_logprobs = sampling.top_logprobs;
        totals.prompt_logprobs += std::ssize(prompt) * (1 + sampling.top_logprobs);
      }
      if (api.embedding.has_value()) request.embedding = api.embedding->pooling;
      request.plan = plan;
      request.adapter = std::get<AdapterUse>(adapter);
      request.continues_text = !chat || api.chat.continues_last;
      request.prediction = prediction;
      request.group = group;
      request.datastore = tenant;
      request.learn = api.datastore.learn;
      if (caller.key != nullptr) request.prefix_scope = caller.key->prefix_scope;
      const int room = context - prompt.size();
      const int outputs = std::min(request.stop.max_tokens, room);
      totals.tokens += Int(prompt.size()) + outputs;
      totals.output_logprobs += std::int64_t{outputs} * (1 + sampling.top_logprobs);
      requests->push_back(std::move(request));
    }
  }
  if (auto error = CheckTotals(door, api, totals, options().max_request_tokens)) return error;
  for (std::size_t i = 0; (api.echo || api.return_prompts) && i < prompts.size(); ++i) {
    const auto* text = std::get_if<std::string>(&api.prompts[i]);
    admitted->echoed.push_back(text != nullptr ? *text : DecodeTokens(tokenizer, prompts[i]));
  }
  return std::nullopt;
}

ApiError Service::Invalid(ApiError error) {
  Count(RequestOutcome::kInvalid);
  return error;
}

std::variant<ApiRequest, ApiError> Service::Read(const Door& door, const Caller& caller,
                                                 const std::string& body) {
  if (!MemoryLeft(kKeptForSteps)) {
    Count(RequestOutcome::kUnavailable);
    return MemoryError();
  }
  ApiDefaults defaults = options().defaults;
  if (ResponseStore* const store = options().responses.get(); store != nullptr) {
    defaults.kept_item = [store, &caller](const std::string& id) {
      return store->Item(caller.client, id);
    };
  }
  Result<ApiRequest> read = door.read(body, defaults);
  if (!read.ok()) return Invalid(Refusal(read.error()));
  return std::move(*read);
}

std::variant<Admitted, ApiError> Service::Admit(const Door& door, const Caller& caller,
                                                ApiRequest asked,
                                                std::chrono::steady_clock::time_point arrived) {
  const auto deadline = arrived + std::chrono::milliseconds(
                                      static_cast<std::int64_t>(options().request_seconds * 1000));
  if (std::chrono::steady_clock::now() >= deadline) {  // It waited for the model all the time.
    Count(RequestOutcome::kTimeout);
    return AbortError(AbortReason::kTimeout, options().request_seconds);
  }
  if (!MemoryLeft(kKeptForSteps)) {
    Count(RequestOutcome::kUnavailable);
    return MemoryError();
  }
  Admitted admitted{.request = std::move(asked)};
  const ApiRequest& request = admitted.request;
  KeptResponse kept;
  if (auto error = Recall(caller, options().responses.get(), &admitted.request, &kept)) {
    return Invalid(*error);
  }
  if (request.receipt && options().lossy) {
    return Invalid({.message = "a receipt says that the model wrote the text, and this server "
                               "verifies by a lossy rule: leave receipt out",
                    .param = "receipt"});
  }
  std::vector<Request> requests;
  if (auto error = MakeRequests(door, caller, &requests, &admitted)) return Invalid(*error);
  const int limit = LimitOf(caller);
  const int at_once = AtOnce(request, limit);
  if (at_once > limit) {
    return Invalid({.message = fmt::format("the request asks for {} sequences, but one client may "
                                           "have {} at most; {}",
                                           at_once, limit, FewerWith(door, request)),
                    .param = "n"});
  }
  std::shared_ptr<void> places = places_->Take(caller.client, at_once, limit);
  if (places == nullptr) {
    Count(RequestOutcome::kBusy);
    return Busy(fmt::format("one client may have {} sequences under way, and with the {} of this "
                            "request you would have more; wait for yours to end, or {}",
                            limit, at_once, FewerWith(door, request)),
                "client_limit");
  }

  const bool tokens =
      request.sampling.top_logprobs >= 0 || request.return_tokens || request.receipt;
  const Detail detail = request.trace ? Detail::kRounds : tokens ? Detail::kTokens : Detail::kText;
  admitted.live = std::make_shared<LiveRequest>(request.choices(), detail, &engine_.stats());
  admitted.live->Hold(std::move(places));
  admitted.live->TellOutputs(NotingTexts(caller, request, requests));
  admitted.head = {
      .id = fmt::format("{}{:016x}", door.id_prefix, Random()),
      .created = std::time(nullptr),
      .model = AdaptedName(id(), *model().model, requests.front().adapter),
      .seed = requests.front().sampling.seed,
      .prompt_tokens = Int(requests.front().prompt.size()),
      .shows_retrieved = caller.key != nullptr || requests.front().datastore == nullptr};
  if (request.receipt) {
    admitted.head.receipt = [target = model().model, asked = requests](
                                int choice, std::span<const Token> output, FinishReason finish) {
      std::string receipt = FormatReceipt(MakeReceipt(*target, asked[choice], output, finish));
      receipt.pop_back();  // The end of the line.
      return receipt;
    };
  }
  if (request.keep.store && options().responses != nullptr) {
    admitted.head.keep = [store = options().responses, client = caller.client,
                          id = admitted.head.id, kept](WholeReply reply) {
      KeptResponse whole = kept;
      std::ranges::move(reply.turns, std::back_inserter(whole.turns));
      whole.json = std::move(reply.json);
      store->Keep(client, id, std::move(whole), reply.items);
    };
  }
  admitted.deadline = deadline;
  const Status submitted = engine_.Submit(admitted.live, std::move(requests), at_once);
  if (submitted.ok()) return admitted;
  const std::string& message = submitted.error().message;
  if (submitted.error().code == ErrorCode::kUnavailable) {
    Count(RequestOutcome::kBusy);
    return Busy(message, "queue_full");
  }
  return Invalid({.message = message, .param = FieldOf(door, submitted.error().field)});
}

}  // namespace foretoken::server
