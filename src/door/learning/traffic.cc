#include "door/learning/traffic.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <utility>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"

namespace foretoken {
namespace {

std::shared_ptr<const StatedText> CopyOf(const DecodedText& text, int width) {
  auto copy = std::make_shared<StatedText>();
  copy->tokens.assign(text.tokens.begin(), text.tokens.end());
  copy->prompt_tokens = text.prompt_tokens;
  copy->sampling = *text.sampling;
  copy->constrained = std::exchange(copy->sampling.constraint, nullptr) != nullptr;
  const auto positions = static_cast<std::int32_t>(text.tokens.size()) - 1;
  copy->states.reserve(Size(positions) * Size(width));
  for (std::int32_t position = 0; position < positions; ++position) {
    const BFloat16* row = text.taps.At(position);
    copy->states.insert(copy->states.end(), row, row + width);
  }
  return copy;
}

std::size_t BytesOf(const StatedText& text) { return text.states.size() * sizeof(BFloat16); }

}  // namespace

Result<std::unique_ptr<Traffic>> Traffic::Begin(std::filesystem::path folder, const TapShape& shape,
                                                std::string tokenizer, const TrafficLimits& limits,
                                                LogSink log) {
  FT_CHECK(!shape.points.empty() && shape.points.back() == TapShape::kFinalState);
  std::vector<int> layers(shape.points.begin(), shape.points.end() - 1);
  FT_ASSIGN_OR_RETURN(
      CaptureWriter writer,
      CaptureWriter::GoOn(
          std::move(folder),
          {.layers = std::move(layers), .hidden = shape.hidden, .tokenizer = std::move(tokenizer)},
          limits.file_bytes, limits.kept_bytes));
  return std::unique_ptr<Traffic>(new Traffic(std::move(writer), shape, limits, std::move(log)));
}

Traffic::Traffic(CaptureWriter writer, const TapShape& shape, const TrafficLimits& limits,
                 LogSink log)
    : shape_(shape),
      limits_(limits),
      log_(std::move(log)),
      writer_(std::move(writer)),
      thread_([this] { Write(); }) {}

Traffic::~Traffic() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Traffic::Take(const DecodedText& text) {
  if (text.tokens.size() < 2) return;
  std::shared_ptr<const StatedText> copy = CopyOf(text, shape_.width());
  const std::lock_guard lock(mutex_);
  ++texts_;
  if (texts_ % limits_.held_back_every == 0) {
    ++counts_.held_back;
    held_back_.push_back(std::move(copy));
    if (std::ssize(held_back_) > limits_.held_back_most) held_back_.pop_front();
    return;
  }
  if (waiting_bytes_ + BytesOf(*copy) > limits_.waiting_bytes) {
    ++counts_.left_out;
    return;
  }
  waiting_bytes_ += BytesOf(*copy);
  waiting_.push_back(std::move(copy));
  wake_.notify_one();
}

std::vector<std::shared_ptr<const StatedText>> Traffic::HeldBack() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const StatedText>> texts;
  for (const auto& text : held_back_) {
    if (!text->constrained) texts.push_back(text);
  }
  return texts;
}

TrafficCounts Traffic::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void Traffic::Write() {
  setpriority(PRIO_PROCESS, 0, 19);  // Linux does it for this thread only.
  std::unique_lock lock(mutex_);
  for (;;) {
    Await(&lock);
    const bool last = stop_;
    const Status written = WriteNext(&lock);
    Report(written);
    if (last && (!written.ok() || (waiting_.empty() && !writer_.unfinished()))) break;
  }
  counts_.left_out += std::ssize(waiting_);
}

// Until there is something to do: after a failure that is another try.
void Traffic::Await(std::unique_lock<std::mutex>* lock) {
  const bool failed = !counts_.failure.empty();
  const auto something = [&] { return stop_ || (!failed && !waiting_.empty()); };
  if (failed || writer_.unfinished()) {
    const std::int64_t most = failed ? limits_.retry_ns : flush_at_ns_ - NowNs();
    wake_.wait_for(*lock, std::chrono::nanoseconds(most), something);
  } else {
    wake_.wait(*lock, something);
  }
}

// A text that waits; where there is none, or it is time for it, what the writer still has.
Status Traffic::WriteNext(std::unique_lock<std::mutex>* lock) {
  std::shared_ptr<const StatedText> text;
  const bool begun = writer_.unfinished();
  const bool due = begun && NowNs() >= flush_at_ns_;
  if (counts_.failure.empty() && !due && !waiting_.empty()) {
    text = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= BytesOf(*text);
  }
  lock->unlock();
  // The last token has no states: nothing was decoded behind it.
  const Status written = text == nullptr
                             ? writer_.Finish()
                             : writer_.Add(std::span(text->tokens).first(text->tokens.size() - 1),
                                           Size(text->prompt_tokens), text->states);
  if (!begun) flush_at_ns_ = NowNs() + limits_.flush_ns;
  lock->lock();
  return written;
}

void Traffic::Report(const Status& written) {
  const bool failed = !counts_.failure.empty();
  counts_.captured = writer_.texts();
  counts_.tokens = writer_.tokens();
  counts_.failure = written.ok() ? std::string() : written.error().message;
  if (!log_ || failed == !written.ok()) return;
  log_(written.ok() ? "captures can be written again"
                    : fmt::format("{}; this is tried again until it works, and texts for which "
                                  "there is no room meanwhile are left out",
                                  counts_.failure));
}

}  // namespace foretoken
