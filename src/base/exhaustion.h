#pragma once

#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "base/result.h"

namespace foretoken {

// Memory and threads may run out anywhere, so that is the one thing which is thrown: bad_alloc and
// what std::thread throws. It is caught where there is somebody to be told: by what the public API
// opens, by the bodies of threads, where the server reads a request, and by main.
//
// Uncaught, and the end of the process with one sentence (EndOnExhaustion), remain a step of the
// engine, the workers of a thread pool within it, and destructors: half of a step done, sequences
// are in no state to go on from. The server keeps memory free for steps instead (MemoryLeft). A
// stack that overflows, and a system that promised memory which it has not (its OOM killer), end
// the process without a word: no program is asked then.

/// Memory that could not be had, and how much.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::size_t bytes);
  const char* what() const noexcept override { return sentence_; }

 private:
  char sentence_[160];  // Takes no memory: there may be none.
};

/// What ran out, as a sentence, where that is why `error` was thrown; else what it says itself.
std::string ExhaustionSentence(const std::exception& error);

/// What `work` returns, a Result or Status; kUnavailable where memory or threads ran out in it.
template <typename Work>
auto OrExhausted(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc& error) {
    return Error{ErrorCode::kUnavailable, ExhaustionSentence(error)};
  } catch (const std::system_error& error) {
    return Error{ErrorCode::kUnavailable, ExhaustionSentence(error)};
  }
}

/// Whether the system would give so much memory now.
bool MemoryLeft(std::size_t bytes);

/// From now on an exception that nobody catches ends the process with its sentence and exit code 1.
/// For main.
void EndOnExhaustion();

}  // namespace foretoken
