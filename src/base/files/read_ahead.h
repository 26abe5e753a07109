#pragma once

#include <cstddef>
#include <span>

namespace foretoken {

/// Tells the system that memory which maps a file will be read soon, so that it fetches what is not
/// there in large pieces instead of page by page. Does not wait, and changes nothing where the
/// system cannot.
void ReadAhead(std::span<const std::byte> mapped);

}  // namespace foretoken
