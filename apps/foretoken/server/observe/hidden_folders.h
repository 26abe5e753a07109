#pragma once

#include <string>
#include <string_view>

namespace foretoken::server {

/// A sentence as clients may see it: of every path in it, in quotes or not, the last name only. The
/// folders before that are the operator's.
std::string WithoutFolders(std::string_view sentence);

}  // namespace foretoken::server
