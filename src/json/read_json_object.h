#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "json/json.h"

namespace foretoken {

/// The JSON object that a text is; `where` begins the sentence that refuses what is none. Infinity,
/// -Infinity and NaN, which Python writes, are read as texts: no field that takes a number takes
/// these, and the others of the file are read.
Result<Json> ParseJsonObject(std::string_view text, std::string_view where);

/// The JSON object that a small file holds. Where the file cannot be read the error goes on with
/// `usual`, which says what is usually there.
Result<Json> ReadJsonObject(const std::filesystem::path& path, std::string_view usual);

}  // namespace foretoken
