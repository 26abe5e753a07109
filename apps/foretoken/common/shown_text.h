#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace foretoken {

/// `text` with pictures in place of control characters, but for tabs and the ends of lines: "␛" for
/// an escape. A terminal that shows it does nothing else.
std::string WithoutControls(std::string_view text);

/// What a model wrote, whole characters, as `stream` is to have it: without control characters
/// where it is a terminal, and elsewhere as it is.
std::string ShownText(std::string_view text, std::FILE* stream);

}  // namespace foretoken
