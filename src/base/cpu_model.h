#pragma once

#include <string>

namespace foretoken {

/// The processor's name as the system gives it; "unknown" where it does not.
std::string CpuModel();

}  // namespace foretoken
