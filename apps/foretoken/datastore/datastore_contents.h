#pragma once

#include <cstddef>
#include <string_view>

#include "apps/foretoken/datastore/opened_datastore.h"
#include "base/result.h"

namespace foretoken {

// What a datastore holds, shown. These only read, so a process that writes may go on meanwhile.

/// Namespaces with their documents, tokens, days, segments and files; the largest and the newest
/// documents where `listed` asks for some.
Result<int> RunInfo(const DatastoreCommandOptions& options);

/// Where a text occurs.
Result<int> RunSearch(DatastoreCommandOptions options);

/// All documents as JSON lines, which `build` reads.
Result<int> RunExport(DatastoreCommandOptions options);

/// How often `wanted`, which is not empty, occurs in `text`, one occurrence after another.
std::size_t CountOccurrences(std::string_view text, std::string_view wanted);

/// What lies around an occurrence of `size` bytes at `at`: some characters before and after it,
/// none of them cut.
std::string_view Surroundings(std::string_view text, std::size_t at, std::size_t size);

}  // namespace foretoken
