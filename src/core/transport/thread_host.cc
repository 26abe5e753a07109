#include "core/transport/thread_host.h"

#include <exception>

#include "base/exhaustion.h"

namespace foretoken {

Result<std::unique_ptr<SpeculatorHost>> ThreadHost::Start(Serve serve, std::string description) {
  std::unique_ptr<ThreadHost> host(new ThreadHost(std::move(serve), std::move(description)));
  FT_RETURN_IF_ERROR(host->Restart());
  return std::unique_ptr<SpeculatorHost>(std::move(host));
}

ThreadHost::~ThreadHost() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

Status ThreadHost::Restart() {
  stop_ = true;
  if (!ended_) {
    return Error{ErrorCode::kUnavailable,
                 "its thread is still busy and cannot be replaced within this process"};
  }
  if (thread_.joinable()) thread_.join();
  FT_ASSIGN_OR_RETURN(memory_, ChannelMemory::Create());
  engine_end_.emplace(memory_->to_speculator(), memory_->to_engine());
  speculator_end_.emplace(memory_->to_engine(), memory_->to_speculator());
  stop_ = false;
  ended_ = false;
  Status started = OrExhausted([&]() -> Status {
    thread_ = std::thread([this] { Run(); });
    return {};
  });
  if (!started.ok()) ended_ = true;
  return started;
}

void ThreadHost::Run() {
  try {
    serve_(*speculator_end_, stop_);
  } catch (const std::exception&) {
    // There was not enough memory: the engine goes on without it.
  }
  ended_ = true;
}

}  // namespace foretoken
