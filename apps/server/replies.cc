#include "server/replies.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "base/utf8.h"

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

// One admitted request on its way out, on the HTTP server's thread. The exchange owns it, by the
// callback for clients that leave; it is gone when the answer has ended.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  Generation(const Door& door, Admitted admitted, ModelRegistry::Lease service,
             HttpExchange exchange)
      : door_(door),
        service_(std::move(service)),
        admitted_(std::move(admitted)),
        exchange_(std::move(exchange)),
        timer_(exchange_.executor()),
        writer_(door.writer(admitted_.request, admitted_.head, &service_->model().tokenizer())) {
    const bool chat = admitted_.request.kind == ApiKind::kChat;
    for (int i = 0; chat && i < admitted_.request.choices(); ++i) {
      readers_.emplace_back(admitted_.reading);
    }
  }

  void Start() {
    exchange_.OnGone([self = shared_from_this()] { self->GiveUp(AbortReason::kClientGone); });
    if (over_) return;
    if (streams()) {
      HttpReply head{.content_type = std::string(door_.stream_type),
                     .fields = {{"Cache-Control", "no-cache"},
                                {"X-Accel-Buffering", "no"}}};  // nginx would hold events back.
      NameIgnored(admitted_.request.ignored, &head);
      exchange_.Begin(std::move(head));
    }
    writer_->Start(admitted_.echoed, &out_);
    if (!out_.empty()) return Write();
    Await();
  }

 private:
  bool streams() const { return admitted_.request.stream; }

  // Waits for what comes next; of a stream for more than that where it was written to just now.
  void Await() {
    const bool early = streams() && Clock::now() < next_write_;
    const auto until = early ? std::min(next_write_, admitted_.deadline) : admitted_.deadline;
    timer_.expires_at(until);
    timer_.async_wait([self = weak_from_this()](boost::system::error_code cancelled) {
      const auto generation = self.lock();
      if (!cancelled && generation != nullptr) generation->Pump();
    });
    const auto wake = [self = weak_from_this(), exchange = exchange_] {
      exchange.Post([self] {
        if (const auto generation = self.lock()) generation->Pump();
      });
    };
    if (!admitted_.live->Await(early || !streams(), wake)) wake();
  }

  void Pump() {
    if (over_ || writing_) return;
    admitted_.live->Take(&bursts_);
    for (Burst& burst : bursts_) {
      if (!readers_.empty()) ReadParts(&burst);
      if (burst.ending) {
        const bool embeds = admitted_.request.embedding.has_value();
        limited_ = limited_ || (!embeds && FinishName(burst.ending->reason) == "length");
        stats_.AddCounts(burst.ending->stats);
        mode_ = burst.ending->mode;
        if (burst.ending->reason == FinishReason::kGrammarStuck) ++stuck_;
      }
      writer_->Add(std::move(burst), &out_);
    }
    if (admitted_.live->Finished()) return Finish(admitted_.live->abort_reason());
    if (Clock::now() >= admitted_.deadline) {
      service_->engine().Abort(admitted_.live.get(), AbortReason::kTimeout);
      return Finish(AbortReason::kTimeout);
    }
    if (out_.empty()) return Await();
    Write();
  }

  void ReadParts(Burst* burst) {
    ChatReader& reader = readers_[static_cast<std::size_t>(burst->choice)];
    reader.Push(burst->text, &burst->parts);
    if (burst->ending) reader.Finish(&burst->parts);
  }

  void Write() {
    writing_ = true;
    timer_.cancel();
    next_write_ = Clock::now() + service_->options().event_interval;
    exchange_.Write(std::exchange(out_, {}), [self = weak_from_this()] {
      const auto generation = self.lock();
      if (generation == nullptr) return;
      generation->writing_ = false;
      generation->Await();
    });
  }

  void Finish(AbortReason reason) {
    const bool aborted = reason != AbortReason::kNone;
    // Beside choices that ended well, one whose grammar was too ambiguous is only shorter.
    const bool stuck = stuck_ == admitted_.request.choices();
    exchange_.Note(fmt::format("model={} tokens={}+{} mode={} accepted={}/{}", admitted_.head.model,
                               stats_.prompt_tokens, stats_.output_tokens, ModeName(mode_),
                               stats_.accepted, stats_.proposed));
    End(aborted    ? OutcomeOf(reason)
        : stuck    ? RequestOutcome::kInvalid
        : limited_ ? RequestOutcome::kLength
                   : RequestOutcome::kStop);
    const auto self = shared_from_this();  // The exchange lets go of it below.
    const ApiError error = aborted ? AbortError(reason, service_->options().request_seconds)
                                   : GrammarError(GrammarField(admitted_.request));
    if (!aborted && !stuck) {
      writer_->End(&out_);
    } else if (!streams()) {
      return exchange_.Reply(ErrorReply(error, door_));
    } else {
      writer_->Fail(error, &out_);
    }
    if (!streams()) {
      HttpReply reply{.content_type = "application/json", .body = std::move(out_)};
      NameIgnored(admitted_.request.ignored, &reply);
      return exchange_.Reply(std::move(reply));
    }
    exchange_.Write(std::move(out_), nullptr);
    exchange_.End();
  }

  void GiveUp(AbortReason reason) {
    if (over_) return;
    service_->engine().Abort(admitted_.live.get(), reason);
    End(OutcomeOf(reason));
  }

  void End(RequestOutcome outcome) {
    over_ = true;
    timer_.cancel();
    service_->Count(outcome);
  }

  const Door& door_;
  const ModelRegistry::Lease service_;  // Let go of after all that is of the model.
  const Admitted admitted_;
  const HttpExchange exchange_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<ReplyWriter> writer_;
  std::vector<ChatReader> readers_;  // Of a chat's choices.
  std::vector<Burst> bursts_;
  std::string out_;
  Clock::time_point next_write_;
  bool writing_ = false;
  RequestStats stats_;  // Of the choices that have ended.
  Mode mode_ = Mode::kAr;
  bool limited_ = false;
  int stuck_ = 0;  // Choices that ended because the grammar is too ambiguous.
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

HttpReply JsonReply(const OrderedJson& json) {
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

void ReplyToGeneration(const Door& door, ModelRegistry::Lease service, const Caller& caller,
                       const HttpRequest& request, std::chrono::steady_clock::time_point arrived,
                       const HttpExchange& exchange) {
  std::variant<Admitted, ApiError> admitted = service->Admit(door, caller, request.body, arrived);
  if (const auto* error = std::get_if<ApiError>(&admitted)) {
    return exchange.Reply(ErrorReply(*error, door));
  }
  // Made where it will live: a client may leave at any time.
  struct Held {
    ModelRegistry::Lease service;
    Admitted admitted;
  };
  auto held =
      std::make_shared<Held>(Held{std::move(service), std::move(std::get<Admitted>(admitted))});
  exchange.Post([held, &door, exchange] {
    std::make_shared<Generation>(door, std::move(held->admitted), std::move(held->service),
                                 exchange)
        ->Start();
  });
}

}  // namespace foretoken::server
