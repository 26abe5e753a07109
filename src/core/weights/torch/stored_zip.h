#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

/// The members of a zip file, by their names: views into it.
using ZipMembers = std::map<std::string, std::span<const std::byte>, std::less<>>;

/// Reads a zip file in memory, all of whose members are stored as they are: neither compressed nor
/// encrypted. Sums of members are not checked. `where` names the file in errors.
Result<ZipMembers> ReadStoredZip(std::span<const std::byte> file, std::string_view where);

}  // namespace foretoken
