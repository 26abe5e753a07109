#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/files/replace_file.h"
#include "base/result.h"

namespace foretoken {

/// A tensor to be written; borrows its data, in the machine's byte order, which is the format's.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  ///< "I32", "BF16" ..., as the format calls it.
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

/// Writes a safetensors file, whole or not at all, with these metadata and, where it is new, these
/// rights.
Status WriteSafetensors(const std::filesystem::path& path,
                        const std::map<std::string, std::string>& metadata,
                        std::span<const SafetensorsEntry> entries,
                        mode_t rights = FileReplacement::kUsualRights);

}  // namespace foretoken
