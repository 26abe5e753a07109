#include "transport/thread_host.h"

#include <exception>

#include "base/exhaustion.h"

namespace foretoken {

Result<std::unique_ptr<SpeculatorHost>> ThreadHost::Start(Serve serve, std::string description) {
  FT_ASSIGN_OR_RETURN(auto memory, ChannelMemory::Create());
  return OrExhausted([&]() -> Result<std::unique_ptr<SpeculatorHost>> {
    return std::unique_ptr<SpeculatorHost>(
        new ThreadHost(std::move(memory), std::move(serve), std::move(description)));
  });
}

ThreadHost::ThreadHost(std::unique_ptr<ChannelMemory> memory, Serve serve, std::string description)
    : memory_(std::move(memory)),
      engine_end_(memory_->to_speculator(), memory_->to_engine()),
      speculator_end_(memory_->to_engine(), memory_->to_speculator()),
      description_(std::move(description)),
      thread_([this, body = std::move(serve)] {
        try {
          body(speculator_end_, stop_);
        } catch (const std::exception&) {
          ended_ = true;  // The engine goes on without it.
        }
      }) {}

ThreadHost::~ThreadHost() {
  stop_ = true;
  thread_.join();
}

Status ThreadHost::Restart() {
  return Error{ErrorCode::kUnavailable,
               ended_ ? "there was not enough memory for it"
                      : "its thread is still busy and cannot be replaced within this process"};
}

}  // namespace foretoken
