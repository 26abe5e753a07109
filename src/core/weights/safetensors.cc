#include "core/weights/safetensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/text/printable.h"
#include "json/fields.h"

namespace foretoken {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // What other readers accept.
constexpr std::size_t kMaxRank = 8;

// The non-negative integer in `json`, where it is one and fits.
std::optional<std::int64_t> AsSize(const Json& json) {
  if (!json.is_number_unsigned()) return std::nullopt;
  const auto value = json.get<std::uint64_t>();
  if (value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

// The shape of a tensor, if its size in bytes can be computed without overflow.
std::optional<std::vector<std::int64_t>> ParseShape(const Json& json, std::size_t element_bytes) {
  if (!json.is_array() || json.size() > kMaxRank) return std::nullopt;
  std::vector<std::int64_t> shape;
  std::int64_t bytes = element_bytes;
  for (const Json& dimension : json) {
    const auto size = AsSize(dimension);
    if (!size || __builtin_mul_overflow(bytes, *size, &bytes)) return std::nullopt;
    shape.push_back(*size);
  }
  return shape;
}

struct EntryExtent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string_view name;
};

struct TensorEntry {
  std::string dtype;
  std::vector<std::int64_t> shape;
  EntryExtent extent;
};

// `where` already names the file and the tensor.
Result<TensorEntry> ParseTensor(const Json& json, std::size_t data_bytes,
                                const std::string& where) {
  const Json& dtype_json = Field(json, "dtype");
  const Json& shape_json = Field(json, "shape");
  const Json& offsets = Field(json, "data_offsets");
  if (!dtype_json.is_string() || shape_json.is_null() || offsets.is_null()) {
    return InvalidInput(where + " must have a dtype, a shape and data_offsets");
  }
  const auto& dtype_name = dtype_json.text();
  const std::size_t element_bytes = DTypeBytes(dtype_name);
  if (element_bytes == 0) {
    return Invalid("{} has the unknown dtype {}", where, Printable(dtype_name));
  }
  auto shape = ParseShape(shape_json, element_bytes);
  if (!shape) {
    return Invalid("{} has the impossible shape {}", where, Printable(shape_json.dump()));
  }
  const bool is_pair = offsets.is_array() && offsets.size() == 2;
  const auto begin = is_pair ? AsSize(offsets[0]) : std::nullopt;
  const auto end = is_pair ? AsSize(offsets[1]) : std::nullopt;
  if (!begin || !end || *begin > *end || *end > static_cast<std::int64_t>(data_bytes)) {
    return Invalid("{} has data_offsets {} outside the {} bytes of data; the file may be truncated",
                   where, Printable(offsets.dump()), data_bytes);
  }
  std::int64_t bytes = element_bytes;
  for (const std::int64_t size : *shape) bytes *= size;
  if (bytes != *end - *begin) {
    return Invalid("{} takes {} bytes by shape and dtype but {} by data_offsets", where, bytes,
                   *end - *begin);
  }
  return TensorEntry{dtype_name, std::move(*shape), {*begin, *end, {}}};
}

// The tensors must fill the data section exactly: a gap means a header that lies, and a header that
// is off by a byte would shift every weight.
Status CheckLayout(std::vector<EntryExtent> extents, std::uint64_t data_bytes,
                   std::string_view where) {
  std::erase_if(extents, [](const EntryExtent& extent) { return extent.begin == extent.end; });
  std::sort(extents.begin(), extents.end(),
            [](const EntryExtent& a, const EntryExtent& b) { return a.begin < b.begin; });
  std::int64_t end = 0;
  std::string_view before;
  for (const EntryExtent& extent : extents) {
    if (extent.begin < end) {
      return Invalid("{}: tensors '{}' and '{}' overlap", where, Printable(before),
                     Printable(extent.name));
    }
    if (extent.begin > end) break;
    end = extent.end;
    before = extent.name;
  }
  if (end != static_cast<std::int64_t>(data_bytes)) {
    return Invalid(
        "{}: no tensor claims the data from byte {} on, of {} bytes; the header does not belong to "
        "this data",
        where, end, data_bytes);
  }
  return {};
}

}  // namespace

Result<FileTensors> ParseSafetensors(std::span<const std::byte> file, std::string_view where) {
  if (file.size() < 8) {
    return Invalid("{}: {} bytes are too few for a safetensors file", where, file.size());
  }
  std::uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i) {
    header_bytes = header_bytes << 8 | std::to_integer<std::uint64_t>(file[i]);
  }
  if (header_bytes > kMaxHeaderBytes || header_bytes > file.size() - 8) {
    return Invalid(
        "{}: claims a header of {} bytes in a file of {}; it is truncated or not a safetensors "
        "file",
        where, header_bytes, file.size());
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, header_bytes);
  const Json header = Json::Parse(text);
  // The parser takes a NUL for the end.
  if (!header.is_object() || text.find('\0') != std::string_view::npos) {
    return Invalid("{}: the header is not a JSON object", where);
  }

  const auto data = file.subspan(8 + header_bytes);
  FileTensors holds;
  std::vector<EntryExtent> extents;
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") continue;
    const std::string place = fmt::format("{}: tensor '{}'", where, Printable(name));
    FT_ASSIGN_OR_RETURN(TensorEntry entry, ParseTensor(json, data.size(), place));
    const auto [begin, end, none] = entry.extent;
    const std::span bytes = data.subspan(begin, end - begin);
    holds.Add(name, entry.dtype, std::move(entry.shape), bytes);
    extents.push_back({begin, end, name});
  }
  FT_RETURN_IF_ERROR(CheckLayout(std::move(extents), data.size(), where));
  return holds;
}

}  // namespace foretoken
