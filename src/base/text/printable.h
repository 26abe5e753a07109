#pragma once

#include <string>
#include <string_view>

namespace foretoken {

/// `text` cut to a readable length with unprintable bytes replaced, for names from files in errors.
std::string Printable(std::string_view text);

}  // namespace foretoken
