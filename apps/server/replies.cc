#include "server/replies.h"

#include <algorithm>
#include <utility>

namespace foretoken::server {
namespace {

using Clock = std::chrono::steady_clock;

// How often a wait looks whether the client is still there.
constexpr auto kClientCheck = std::chrono::milliseconds(200);

RequestOutcome OutcomeOf(AbortReason reason) {
  return reason == AbortReason::kClientGone ? RequestOutcome::kClientGone
         : reason == AbortReason::kTimeout  ? RequestOutcome::kTimeout
                                            : RequestOutcome::kShutdown;
}

// One admitted request on its way out. Ends the engine's work when it is destroyed early, and
// counts how the request ended.
class Exchange {
 public:
  Exchange(Admitted admitted, Service* service, std::atomic<int>* in_flight,
           const httplib::Request& request)
      : admitted_(std::move(admitted)),
        service_(service),
        in_flight_(in_flight),
        client_{.progress = request.progress} {
    ++*in_flight_;
  }
  ~Exchange() {
    if (!outcome_.has_value()) GiveUp(AbortReason::kClientGone);
    service_->Count(*outcome_);
    --*in_flight_;
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const Admitted& admitted() const { return admitted_; }

  // Waits a while for bursts (with `all`, for the end of all choices), until `latest` at most.
  // False where the request is over before its choices are: error() says how to answer.
  bool Wait(bool all, Clock::time_point latest, std::vector<Burst>* bursts) {
    const auto check = Clock::now() + kClientCheck;
    admitted_.live->Take(std::min({check, latest, admitted_.deadline}), all, bursts);
    for (const Burst& burst : *bursts) {
      if (burst.ending) limited_ = limited_ || FinishName(burst.ending->reason) == "length";
    }
    if (admitted_.live->Finished()) {
      const AbortReason reason = admitted_.live->abort_reason();
      outcome_ = reason != AbortReason::kNone ? OutcomeOf(reason)
                 : limited_                   ? RequestOutcome::kLength
                                              : RequestOutcome::kStop;
      if (reason == AbortReason::kNone) return true;
      error_ = AbortError(reason, service_->options().request_seconds);
      return false;
    }
    if (Clock::now() >= admitted_.deadline) {
      GiveUp(AbortReason::kTimeout);
      return false;
    }
    if (HttpServer::ClientGone(client_)) {
      GiveUp(AbortReason::kClientGone);
      return false;
    }
    return true;
  }

  bool finished() const { return outcome_.has_value(); }
  const ApiError& error() const { return error_; }

 private:
  void GiveUp(AbortReason reason) {
    service_->engine().Abort(admitted_.live.get(), reason);
    outcome_ = OutcomeOf(reason);
    error_ = AbortError(reason, service_->options().request_seconds);
  }

  const Admitted admitted_;
  Service* const service_;
  std::atomic<int>* const in_flight_;
  const httplib::Request client_;  // Only to ask whether it is still there.
  bool limited_ = false;
  std::optional<RequestOutcome> outcome_;
  ApiError error_;
};

// A stream of events; httplib calls Next until the stream is done.
class EventStream {
 public:
  EventStream(std::unique_ptr<Exchange> exchange, const Service& service)
      : exchange_(std::move(exchange)),
        interval_(service.options().event_interval),
        writer_(exchange_->admitted().request, exchange_->admitted().head,
                &service.model().tokenizer()) {
    writer_.Start(exchange_->admitted().echoed, &events_);
  }

  // False ends the connection.
  bool Next(httplib::DataSink& sink) {
    const auto now = Clock::now();
    const bool early = now < next_write_;  // Let more come first.
    const bool good =
        exchange_->Wait(early, early ? next_write_ : Clock::time_point::max(), &bursts_);
    for (const Burst& burst : bursts_) writer_.Add(burst, &events_);
    if (exchange_->finished() && good) writer_.End(&events_);
    if (!good) writer_.Fail(exchange_->error(), &events_);
    if (!events_.empty()) {
      if (!sink.write(events_.data(), events_.size())) return false;
      events_.clear();
      next_write_ = Clock::now() + interval_;
    }
    if (exchange_->finished()) sink.done();
    return true;
  }

 private:
  std::unique_ptr<Exchange> exchange_;
  const std::chrono::milliseconds interval_;
  EventWriter writer_;
  std::string events_;
  std::vector<Burst> bursts_;
  Clock::time_point next_write_;
};

void ReplyWhole(Exchange* exchange, const Service& service, httplib::Response* response) {
  ReplyBuilder builder(exchange->admitted().request, exchange->admitted().head,
                       &service.model().tokenizer());
  builder.Start(exchange->admitted().echoed);
  std::vector<Burst> bursts;
  while (!exchange->finished()) {
    const bool good = exchange->Wait(/*all=*/true, Clock::time_point::max(), &bursts);
    if (!good) return ReplyError(exchange->error(), response);
    for (Burst& burst : bursts) builder.Add(std::move(burst));
  }
  response->set_content(builder.Finish(), "application/json");
}

}  // namespace

void ReplyError(const ApiError& error, httplib::Response* response) {
  response->status = error.status;
  if (error.retry_after > 0) {
    response->set_header("Retry-After", std::to_string(error.retry_after));
  }
  response->set_content(ErrorJson(error), "application/json");
}

void ReplyToGeneration(ApiKind kind, Service* service, std::atomic<int>* in_flight,
                       const httplib::Request& request, httplib::Response* response) {
  std::variant<Admitted, ApiError> admitted = service->Admit(kind, request.body);
  if (const auto* error = std::get_if<ApiError>(&admitted)) return ReplyError(*error, response);
  auto exchange = std::make_unique<Exchange>(std::move(std::get<Admitted>(admitted)), service,
                                             in_flight, request);
  if (!exchange->admitted().request.stream) return ReplyWhole(exchange.get(), *service, response);
  // Shared because std::function copies; the last copy goes with the response.
  const auto stream = std::make_shared<EventStream>(std::move(exchange), *service);
  response->set_header("Cache-Control", "no-cache");
  response->set_header("X-Accel-Buffering", "no");  // nginx would hold events back.
  response->set_chunked_content_provider(
      "text/event-stream",
      [stream](std::size_t, httplib::DataSink& sink) { return stream->Next(sink); });
}

}  // namespace foretoken::server
