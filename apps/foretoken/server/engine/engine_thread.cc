#include "apps/foretoken/server/engine/engine_thread.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/exhaustion.h"
#include "base/numbers/integers.h"
#include "base/threads/clock.h"

namespace foretoken::server {
namespace {

std::size_t LongestToken(const Tokenizer& tokenizer) {
  std::size_t longest = 1;
  for (Token token = 0; token < tokenizer.vocabulary(); ++token) {
    const std::size_t named = tokenizer.IsSpecial(token) ? tokenizer.TokenName(token).size() : 0;
    longest = std::max({longest, tokenizer.TokenBytes(token).size(), named});
  }
  return longest;
}

}  // namespace

EngineThread::EngineThread(ModelLoader load, CoreTurn turn)
    : load_(std::move(load)), turn_(turn), thread_([this] { Run(); }) {}

EngineThread::~EngineThread() {
  AbortAll(AbortReason::kShutdown);
  {
    const std::lock_guard lock(wake_mutex_);
    stop_ = true;
  }
  wake_cv_.notify_all();
  thread_.join();
}

Status EngineThread::AwaitLoaded() {
  std::unique_lock lock(wake_mutex_);
  wake_cv_.wait(lock, [this] { return loaded_.has_value(); });
  return *loaded_;
}

bool EngineThread::Load() {
  // What others compute would slow the packing of weights, and what is measured would be wrong.
  const std::lock_guard held(turn_);
  Result<ServedModel> loaded = OrExhausted([this] {
    return load_([this] {
      turn_.unlock();
      turn_.lock();
    });
  });
  const std::lock_guard lock(wake_mutex_);
  if (loaded.ok()) {
    model_ = std::move(*loaded);
    model_.longest_token = LongestToken(model_.tokenizer());
    loaded_ = Status();
  } else {
    loaded_ = loaded.error();
  }
  return loaded.ok();
}

bool EngineThread::StepInTurn() {
  const std::lock_guard held(turn_);
  return model_.engine->Step();
}

void EngineThread::Run() {
  const bool loaded = Load();
  wake_cv_.notify_all();
  if (!loaded) return;

  while (true) {
    DoAsked();
    const bool worked = StepInTurn();
    progress_ns_ = NowNs();
    stats_.AddEngine(*model_.engine);
    stats_.Publish(progress_ns_);
    PublishTouched();
    const bool submitted = SubmitLater();
    if (worked || submitted) continue;
    SleepUntilWoken();
    const std::lock_guard lock(wake_mutex_);
    if (stop_ && sequences_ == 0) break;
  }
  model_.engine.reset();  // Here, where the speculator and the thread pool were started.
}

void EngineThread::Do(const std::function<void()>& work) {
  std::unique_lock lock(wake_mutex_);
  asked_.push_back(&work);
  const std::uint64_t own = ++asked_in_all_;
  woken_ = true;
  wake_cv_.notify_all();
  done_cv_.wait(lock, [&] { return done_in_all_ >= own; });
}

void EngineThread::DoAsked() {
  std::vector<const std::function<void()>*> asked;
  {
    const std::lock_guard lock(wake_mutex_);
    if (asked_.empty()) return;
    asked.swap(asked_);
  }
  {
    const std::lock_guard held(turn_);
    for (const std::function<void()>* work : asked) (*work)();
  }
  {
    const std::lock_guard lock(wake_mutex_);
    done_in_all_ += asked.size();
  }
  done_cv_.notify_all();
}

void EngineThread::PublishTouched() {
  for (LiveRequest* live : touched_) {
    if (!live->Publish()) continue;
    const std::lock_guard lock(register_mutex_);
    const auto entry = register_.find(live);
    sequences_ -= live->choices();
    register_.erase(entry);
  }
  touched_.clear();
}

// True: some have gone in.
bool EngineThread::SubmitLater() {
  if (waiting_entries_ == 0) return false;
  bool submitted = false;
  {
    const std::lock_guard lock(register_mutex_);
    for (auto& [live, entry] : register_) {
      if (entry.later.empty()) continue;
      if (live->abort_reason() == AbortReason::kNone) {
        submitted = SubmitMore(&entry) || submitted;
      } else {
        for (std::size_t left = entry.later.size(); left > 0; --left) {
          live->Skip(live->choices() - Int(left));
        }
        entry.later.clear();
      }
      if (entry.later.empty()) --waiting_entries_;
    }
  }
  PublishTouched();
  return submitted;
}

// As many as may be under way beside those that are.
bool EngineThread::SubmitMore(Entry* entry) {
  const int under_way = entry->live->unfinished() - Int(entry->later.size());
  bool submitted = false;
  for (int room = entry->at_once - under_way; room > 0 && !entry->later.empty(); --room) {
    std::vector<Request> next;
    next.push_back(entry->later.front());
    const Result<std::vector<SequenceId>> ids = model_.engine->SubmitAll(std::move(next));
    if (!ids.ok() && ids.error().code == ErrorCode::kUnavailable) break;
    if (ids.ok()) {
      entry->sequences.push_back(ids->front());
    } else {
      entry->live->Skip(entry->live->choices() - Int(entry->later.size()));
    }
    entry->later.pop_front();
    submitted = true;
  }
  return submitted;
}

void EngineThread::SleepUntilWoken() {
  std::unique_lock lock(wake_mutex_);
  wake_cv_.wait(lock, [this] { return woken_ || stop_; });
  woken_ = false;
}

void EngineThread::Wake() {
  {
    const std::lock_guard lock(wake_mutex_);
    woken_ = true;
  }
  wake_cv_.notify_all();
}

Status EngineThread::Submit(const std::shared_ptr<LiveRequest>& live, std::vector<Request> requests,
                            int at_once) {
  FT_CHECK(std::ssize(requests) == live->choices() && at_once > 0);
  {
    const std::lock_guard lock(register_mutex_);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].listener = live->listener(Int(i));
    }
    live->set_touched(&touched_);
    if (sequences_ == 0) progress_ns_ = NowNs();
    // First, since what the engine has taken must stay registered, whatever memory there is.
    Entry& entry = register_[live.get()];
    entry.live = live;
    entry.at_once = at_once;
    Result<std::vector<SequenceId>> ids = Error{};
    try {
      const auto later = requests.begin() + std::min(at_once, live->choices());
      entry.later.assign(std::make_move_iterator(later), std::make_move_iterator(requests.end()));
      requests.erase(later, requests.end());
      ids = model_.engine->SubmitAll(std::move(requests));
    } catch (...) {
      register_.erase(live.get());
      throw;
    }
    if (!ids.ok()) {
      register_.erase(live.get());
      return ids.error();
    }
    entry.sequences = std::move(*ids);
    if (!entry.later.empty()) ++waiting_entries_;
    sequences_ += live->choices();
  }
  Wake();
  return {};
}

void EngineThread::Abort(LiveRequest* live, AbortReason reason) {
  {
    const std::lock_guard lock(register_mutex_);
    const auto entry = register_.find(live);
    if (entry == register_.end()) return;
    live->NoteAbort(reason);
    for (const SequenceId id : entry->second.sequences) model_.engine->Cancel(id);
  }
  Wake();
}

void EngineThread::AbortAll(AbortReason reason) {
  std::vector<std::shared_ptr<LiveRequest>> all;
  {
    const std::lock_guard lock(register_mutex_);
    for (const auto& [live, entry] : register_) all.push_back(entry.live);
  }
  for (const auto& live : all) Abort(live.get(), reason);
}

double EngineThread::SecondsWithoutProgress() const {
  if (sequences_ == 0) return 0;
  return static_cast<double>(NowNs() - progress_ns_) / 1e9;
}

}  // namespace foretoken::server
