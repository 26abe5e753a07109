#include "core/weights/write_safetensors.h"

#include "json/json.h"

namespace foretoken {

Status WriteSafetensors(const std::filesystem::path& path,
                        const std::map<std::string, std::string>& metadata,
                        std::span<const SafetensorsEntry> entries, mode_t rights) {
  Json header = {{"__metadata__", metadata}};
  std::size_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    const std::size_t begin = end;
    end += entry.data.size();
    header[entry.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // So that the data are aligned.
  std::string length;
  for (int byte = 0; byte < 8; ++byte) {
    length += static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * byte));
  }
  FT_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path, rights));
  FT_RETURN_IF_ERROR(file.Write(length + text));
  for (const SafetensorsEntry& entry : entries) {
    FT_RETURN_IF_ERROR(
        file.Write({reinterpret_cast<const char*>(entry.data.data()), entry.data.size()}));
  }
  return file.Finish();
}

}  // namespace foretoken
