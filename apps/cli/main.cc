#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <utility>

#include "base/exhaustion.h"
#include "cli/common/commands.h"
#include "cli/common/terminal.h"
#include "cli/program/arguments.h"
#include "cli/program/program.h"

namespace {

// A file that is opened later must not get the number of a standard stream that the caller has
// closed: what is printed would go into it. Writing to standard output then fails, and is said to.
void OccupyClosedStreams() {
  for (const auto& [stream, way] :
       {std::pair(STDIN_FILENO, O_RDONLY), std::pair(STDOUT_FILENO, O_RDONLY),
        std::pair(STDERR_FILENO, O_WRONLY)}) {
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", way);  // Takes the lowest free number.
  }
}

}  // namespace

int main(int argc, char** argv) {
  foretoken::EndOnExhaustion();
  OccupyClosedStreams();
  int code = foretoken::kCheckFailed;
  try {
    code = foretoken::RunProgram(foretoken::ReadArguments(argc, argv));
  } catch (const std::exception& error) {  // Out of memory, or a library's surprise.
    // What could not be printed is said below.
    if (std::ferror(stdout) == 0) foretoken::PrintError(foretoken::ExhaustionSentence(error));
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    foretoken::PrintError("writing to standard output failed: it is full or closed");
    return foretoken::kCheckFailed;
  }
  return code;
}
