#include <cstdio>
#include <exception>

#include "base/exhaustion.h"
#include "cli/common/commands.h"
#include "cli/common/terminal.h"
#include "cli/program/arguments.h"
#include "cli/program/program.h"

int main(int argc, char** argv) {
  foretoken::EndOnExhaustion();
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
