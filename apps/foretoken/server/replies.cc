#include "apps/foretoken/server/replies.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <utility>
#include <vector>

#include "apps/foretoken/server/api/door.h"
#include "base/text/utf8.h"

namespace foretoken::server {
namespace {

// An admitted request with what is known of its answer: takes what the engine emits and writes it
// in the form of a door. It keeps the model that it is of. One thread at a time: the HTTP server's
// where there is little to write, one of the work pool's else.
class AnswerText {
 public:
  // `door` outlives it.
  AnswerText(const Door& door, Admitted admitted, ModelRegistry::Lease service);

  const Admitted& admitted() const { return admitted_; }
  const ApiRequest& request() const { return admitted_.request; }
  Service& service() const { return *service_; }
  const Door& door() const { return door_; }

  // About how many bytes bursts become.
  static std::size_t Weight(const std::vector<Burst>& bursts);

  // What comes before the first token.
  void Start(std::string* out) { writer_->Start(admitted_.echoed, out); }
  // Moves from `bursts`. With `last` they are the last ones, and the answer ends as it ought to.
  void Add(std::vector<Burst>* bursts, bool last, std::string* out);
  // In place of its end, where it has begun: an error.
  void Fail(const ApiError& error, std::string* out) const { writer_->Fail(error, out); }

  // What follows is about the choices that have ended.

  // Whether each of them could not follow its grammar further; beside one that ended well, another
  // is only shorter.
  bool stuck() const { return stuck_ == request().choices(); }
  // Whether the model computed for one of them what is not finite: then the others are worth
  // nothing, either.
  bool failed() const { return failed_; }
  // Whether one of them ended because of its length.
  bool limited() const { return limited_; }
  // What the log says of them.
  std::string Summary() const;

 private:
  void ReadParts(Burst* burst);
  void Count(const Ending& ending);

  const Door& door_;
  const ModelRegistry::Lease service_;  // Let go of after all that is of the model.
  const Admitted admitted_;
  std::unique_ptr<ReplyWriter> writer_;
  std::vector<ChatReader> readers_;  // One for each choice of a chat.
  RequestStats stats_;
  Mode mode_ = Mode::kAr;
  bool limited_ = false;
  bool failed_ = false;
  int stuck_ = 0;
};

AnswerText::AnswerText(const Door& door, Admitted admitted, ModelRegistry::Lease service)
    : door_(door),
      service_(std::move(service)),
      admitted_(std::move(admitted)),
      writer_(door.writer(admitted_.request, admitted_.head, &service_->model().tokenizer())) {
  const bool chat = request().kind == ApiKind::kChat;
  for (int i = 0; chat && i < request().choices(); ++i) readers_.emplace_back(admitted_.reading);
}

std::size_t AnswerText::Weight(const std::vector<Burst>& bursts) {
  constexpr std::size_t kOfLogprob = 64;
  constexpr std::size_t kOfFloat = 12;
  const auto weigh = [](const std::vector<TokenPart>& parts) {
    std::size_t logprobs = parts.size();
    for (const TokenPart& part : parts) logprobs += part.logprobs.size();
    return logprobs * kOfLogprob;
  };
  std::size_t bytes = 0;
  for (const Burst& burst : bursts) {
    bytes += burst.text.size() + weigh(burst.prompt) + weigh(burst.tokens) +
             burst.embedding.size() * kOfFloat;
  }
  return bytes;
}

void AnswerText::Add(std::vector<Burst>* bursts, bool last, std::string* out) {
  for (Burst& burst : *bursts) {
    if (!readers_.empty()) ReadParts(&burst);
    if (burst.ending) Count(*burst.ending);
    writer_->Add(std::move(burst), out);
  }
  bursts->clear();
  const bool aborted = admitted_.live->abort_reason() != AbortReason::kNone;
  if (last && !aborted && !stuck() && !failed()) writer_->End(out);
}

void AnswerText::ReadParts(Burst* burst) {
  ChatReader& reader = readers_[burst->choice];
  reader.Push(burst->text, &burst->parts);
  if (burst->ending) reader.Finish(&burst->parts);
}

void AnswerText::Count(const Ending& ending) {
  const bool embeds = request().embedding.has_value();
  limited_ = limited_ || (!embeds && FinishName(ending.reason) == "length");
  stats_.AddCounts(ending.stats);
  mode_ = ending.mode;
  if (ending.reason == FinishReason::kGrammarStuck) ++stuck_;
  failed_ = failed_ || ending.reason == FinishReason::kNotFinite;
}

std::string AnswerText::Summary() const {
  return fmt::format("model={} tokens={}+{} mode={} accepted={}/{}", admitted_.head.model,
                     stats_.prompt_tokens, stats_.output_tokens, ModeName(mode_), stats_.accepted,
                     stats_.proposed);
}

using Clock = std::chrono::steady_clock;

RequestOutcome OutcomeOf(AbortReason reason) {
  return reason == AbortReason::kClientGone ? RequestOutcome::kClientGone
         : reason == AbortReason::kTimeout  ? RequestOutcome::kTimeout
                                            : RequestOutcome::kShutdown;
}

// The field that asks for what an output must match.
std::string GrammarField(const ApiRequest& request) {
  return request.tools.empty() ? request.format.field : "tools";
}

// One admitted request on its way out, on the HTTP server's thread. The connection owns it, by the
// callback for clients that leave; it is gone when the answer has ended.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  Generation(std::shared_ptr<AnswerText> answer, std::string client, WorkPool* pool,
             HttpExchange exchange)
      : answer_(std::move(answer)),
        client_(std::move(client)),
        pool_(pool),
        exchange_(std::move(exchange)),
        timer_(exchange_.executor()) {}

  void Start() {
    exchange_.OnGone([self = shared_from_this()] { self->GiveUp(AbortReason::kClientGone); });
    if (over_) return;
    if (streams()) {
      HttpReply head{.content_type = std::string(answer_->door().stream_type),
                     .fields = {{"Cache-Control", "no-cache"},
                                {"X-Accel-Buffering", "no"}}};  // nginx would hold events back.
      NameIgnored(answer_->request().ignored, &head);
      exchange_.Begin(std::move(head));
    }
    answer_->Start(&out_);
    if (!out_.empty()) return Write();
    Await();
  }

 private:
  bool streams() const { return answer_->request().stream; }
  LiveRequest& live() const { return *answer_->admitted().live; }
  Clock::time_point deadline() const { return answer_->admitted().deadline; }

  // Waits for what comes next; of a stream for more than that where it was written to just now.
  void Await() {
    const bool early = streams() && Clock::now() < next_write_;
    timer_.expires_at(early ? std::min(next_write_, deadline()) : deadline());
    timer_.async_wait([self = weak_from_this()](boost::system::error_code cancelled) {
      const auto generation = self.lock();
      if (!cancelled && generation != nullptr) generation->Pump();
    });
    const auto wake = [self = weak_from_this(), exchange = exchange_] {
      exchange.Post([self] {
        if (const auto generation = self.lock()) generation->Pump();
      });
    };
    if (!live().Await(early || !streams(), wake)) wake();
  }

  void Pump() {
    if (over_ || busy_) return;
    live().Take(&bursts_);
    last_ = live().Finished();
    if (Job::TakesLong(AnswerText::Weight(bursts_))) return HaveWritten();
    answer_->Add(&bursts_, last_, &out_);
    Proceed();
  }

  // Has the pool make text of the bursts.
  void HaveWritten() {
    struct Text {
      std::vector<Burst> bursts;
      std::string out;
    };
    busy_ = true;
    const auto text = std::make_shared<Text>();
    text->bursts.swap(bursts_);
    text->out.swap(out_);
    const auto resume = [self = weak_from_this(), exchange = exchange_](auto with) {
      exchange.Post([self, with] {
        const auto generation = self.lock();
        if (generation == nullptr) return;
        generation->busy_ = false;
        with(generation.get());
      });
    };
    pool_->Run(
        {.client = client_,
         .takes_long = true,
         .unwanted = [exchange = exchange_] { return exchange.over(); },
         .work =
             [resume, text, answer = answer_, last = last_] {
               answer->Add(&text->bursts, last, &text->out);
               resume([text](Generation* generation) {
                 generation->out_.swap(text->out);
                 generation->Proceed();
               });
             },
         .failed =
             [resume] { resume([](Generation* generation) { generation->FailForMemory(); }); }});
  }

  // What has come is text in out_.
  void Proceed() {
    if (over_) return;
    if (last_) return Finish(live().abort_reason());
    if (Clock::now() >= deadline()) {
      answer_->service().engine().Abort(&live(), AbortReason::kTimeout);
      return Finish(AbortReason::kTimeout);
    }
    if (out_.empty()) return Await();
    Write();
  }

  void Write() {
    busy_ = true;
    timer_.cancel();
    next_write_ = Clock::now() + answer_->service().options().event_interval;
    exchange_.Write(std::exchange(out_, {}), [self = weak_from_this()] {
      const auto generation = self.lock();
      if (generation == nullptr) return;
      generation->busy_ = false;
      generation->Await();
    });
  }

  void Finish(AbortReason reason) {
    const auto self = shared_from_this();  // The connection lets go of it below.
    const bool aborted = reason != AbortReason::kNone;
    exchange_.Note(answer_->Summary());
    End(aborted              ? OutcomeOf(reason)
        : answer_->failed()  ? RequestOutcome::kFailed
        : answer_->stuck()   ? RequestOutcome::kInvalid
        : answer_->limited() ? RequestOutcome::kLength
                             : RequestOutcome::kStop);
    if (aborted) return FailWith(AbortError(reason, answer_->service().options().request_seconds));
    if (answer_->failed()) return FailWith(NotFiniteError(answer_->admitted().head.model));
    if (answer_->stuck()) return FailWith(GrammarError(GrammarField(answer_->request())));
    if (!streams()) {
      HttpReply reply{.content_type = "application/json", .body = std::move(out_)};
      NameIgnored(answer_->request().ignored, &reply);
      return exchange_.Reply(std::move(reply));
    }
    exchange_.Write(std::move(out_), nullptr);
    exchange_.End();
  }

  void FailWith(const ApiError& error) {
    if (!streams()) return exchange_.Reply(ErrorReply(error, answer_->door()));
    answer_->Fail(error, &out_);
    exchange_.Write(std::move(out_), nullptr);
    exchange_.End();
  }

  void FailForMemory() {
    if (over_) return;
    const auto self = shared_from_this();
    answer_->service().engine().Abort(&live(), AbortReason::kClientGone);
    End(RequestOutcome::kUnavailable);
    FailWith(MemoryError());
  }

  void GiveUp(AbortReason reason) {
    if (over_) return;
    answer_->service().engine().Abort(&live(), reason);
    End(OutcomeOf(reason));
  }

  void End(RequestOutcome outcome) {
    over_ = true;
    timer_.cancel();
    answer_->service().Count(outcome);
  }

  const std::shared_ptr<AnswerText> answer_;  // Where it is busy, the pool's perhaps.
  const std::string client_;
  WorkPool* const pool_;
  const HttpExchange exchange_;
  boost::asio::steady_timer timer_;
  std::vector<Burst> bursts_;
  std::string out_;
  Clock::time_point next_write_;
  bool busy_ = false;  // It is being written, by the pool or to the client.
  bool last_ = false;  // Nothing more comes of the engine.
  bool over_ = false;
};

}  // namespace

void NameIgnored(std::span<const std::string> ignored, HttpReply* reply) {
  constexpr std::size_t kMostNamed = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(ignored.size(), kMostNamed); ++i) {
    std::string name = Shortened(ignored[i], 40);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c <= ' ' || c >= '\x7f' || c == ','; }, '?');
    names += (names.empty() ? "" : ", ") + name;
  }
  if (!names.empty()) reply->fields.emplace_back("X-Foretoken-Ignored", names);
}

HttpReply JsonReply(const Json& json) {
  return {.content_type = "application/json", .body = Dump(json)};
}

HttpReply ErrorReply(const ApiError& error, const Door& door) {
  HttpReply reply{
      .status = error.status, .content_type = "application/json", .body = door.error(error)};
  if (error.retry_after > 0) {
    reply.fields.emplace_back("Retry-After", std::to_string(error.retry_after));
  }
  return reply;
}

void ReplyToGeneration(const Door& door, const ModelRegistry::Lease& service, const Caller& caller,
                       const std::shared_ptr<const HttpRequest>& request,
                       std::chrono::steady_clock::time_point arrived, WorkPool* pool,
                       const HttpExchange& exchange) {
  std::variant<ApiRequest, ApiError> read = service->Read(door, caller, request->body);
  if (const auto* error = std::get_if<ApiError>(&read)) {
    return exchange.Reply(ErrorReply(*error, door));
  }
  const auto asked = std::make_shared<ApiRequest>(std::move(std::get<ApiRequest>(read)));
  // The request is kept, and counts, while it waits.
  const auto admit = [&door, service, caller, request, asked, arrived, pool, exchange] {
    std::variant<Admitted, ApiError> admitted =
        service->Admit(door, caller, std::move(*asked), arrived);
    if (const auto* error = std::get_if<ApiError>(&admitted)) {
      return exchange.Reply(ErrorReply(*error, door));
    }
    const auto answer =
        std::make_shared<AnswerText>(door, std::move(std::get<Admitted>(admitted)), service);
    // Made where it will live: a client may leave at any time.
    exchange.Post([answer, client = caller.client, pool, exchange] {
      std::make_shared<Generation>(answer, client, pool, exchange)->Start();
    });
  };
  if (!asked->constrained()) return admit();
  // How long a grammar takes to compile is not to be seen from its length.
  pool->Run({.client = caller.client,
             .takes_long = true,
             .unwanted = [exchange] { return exchange.over(); },
             .work = admit,
             .failed = [&door, exchange] { exchange.Reply(ErrorReply(MemoryError(), door)); }});
}

}  // namespace foretoken::server
