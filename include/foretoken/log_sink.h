#pragma once

#include <functional>
#include <string_view>

namespace foretoken {

/// Told, in one sentence each, of what is worth a warning but no failure. May be empty; called from
/// the thread that notices.
using LogSink = std::function<void(std::string_view)>;

}  // namespace foretoken
