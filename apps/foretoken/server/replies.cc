#include "apps/foretoken/server/replies.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "apps/foretoken/server/answer_text.h"
#include "base/text/utf8.h"

namespace foretoken::server {
namespace {

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
    if (aborted) {
      return FailWith(AbortError(reason, answer_->service().options().request_seconds));
    }
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
