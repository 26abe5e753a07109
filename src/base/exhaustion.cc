#include "base/exhaustion.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace foretoken {
namespace {

constexpr char kLimits[] =
    "the machine's is used up, or this process may have no more (ulimit -v, a container's limit)";

// Without anything that takes memory.
[[noreturn]] void EndWithSentence() {
  char sentence[320] = "an error that nobody expected";
  if (const std::exception_ptr current = std::current_exception(); current != nullptr) {
    try {
      std::rethrow_exception(current);
    } catch (const OutOfMemory& error) {
      std::snprintf(sentence, sizeof(sentence), "%s", error.what());
    } catch (const std::bad_alloc&) {
      std::snprintf(sentence, sizeof(sentence), "there is not enough memory: %s", kLimits);
    } catch (const std::exception& error) {
      std::snprintf(sentence, sizeof(sentence), "%s", error.what());
    } catch (...) {
    }
  }
  std::fprintf(stderr, "foretoken: %s\n", sentence);
  std::fflush(stderr);
  _exit(1);
}

}  // namespace

OutOfMemory::OutOfMemory(std::size_t bytes) {
  std::snprintf(sentence_, sizeof(sentence_), "there is not enough memory for %.1f MB more: %s",
                static_cast<double>(bytes) / 1e6, kLimits);
}

std::string ExhaustionSentence(const std::exception& error) {
  if (dynamic_cast<const OutOfMemory*>(&error) != nullptr) return error.what();
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return fmt::format("there is not enough memory: {}", kLimits);
  }
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  const bool of_thread = system != nullptr &&
                         system->code() == std::errc::resource_unavailable_try_again &&
                         dynamic_cast<const std::filesystem::filesystem_error*>(&error) == nullptr;
  if (!of_thread) return error.what();
  return "the system starts no further thread: this user or process has as many as it may have, or "
         "there is no memory for its stack (ulimit -u, ulimit -v, a container's limits)";
}

bool MemoryLeft(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                            /*fd=*/-1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, bytes);
  return true;
}

void EndOnExhaustion() { std::set_terminate(EndWithSentence); }

}  // namespace foretoken
