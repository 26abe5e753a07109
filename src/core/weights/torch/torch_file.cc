#include "core/weights/torch/torch_file.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/files/byte_reader.h"
#include "base/numbers/integers.h"
#include "base/text/printable.h"
#include "core/weights/torch/unpickle.h"

namespace foretoken {
namespace {

// The members of a zip file, by their names: views into it.
using ZipMembers = std::map<std::string, std::span<const std::byte>, std::less<>>;

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t kMember = 0x04034b50;
constexpr std::uint32_t kEntry = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kLargeEnd = 0x06064b50;
constexpr std::uint32_t kLargeEndPlace = 0x07064b50;
constexpr std::uint16_t kLargeField = 1;  // The kind of extra field that has 64-bit numbers.

// Numbers that do not fit their fields are written elsewhere, with 64 bits.
constexpr std::uint16_t kElsewhere16 = 0xFFFF;
constexpr std::uint32_t kElsewhere32 = 0xFFFFFFFF;

#pragma pack(push, 1)
struct End {
  std::uint32_t signature;
  std::uint16_t disk;
  std::uint16_t directory_disk;
  std::uint16_t entries_here;
  std::uint16_t entries;
  std::uint32_t directory_bytes;
  std::uint32_t directory;
  std::uint16_t comment_bytes;
};
struct LargeEndPlace {
  std::uint32_t signature;
  std::uint32_t disk;
  std::uint64_t end;
  std::uint32_t disks;
};
struct LargeEnd {
  std::uint32_t signature;
  std::uint64_t bytes;
  std::uint16_t versions[2];
  std::uint32_t disks[2];
  std::uint64_t entries_here;
  std::uint64_t entries;
  std::uint64_t directory_bytes;
  std::uint64_t directory;
};
struct ZipEntry {
  std::uint32_t signature;
  std::uint16_t versions[2];
  std::uint16_t flags;
  std::uint16_t method;
  std::uint32_t time;
  std::uint32_t sum;
  std::uint32_t stored_bytes;
  std::uint32_t bytes;
  std::uint16_t name_bytes;
  std::uint16_t extra_bytes;
  std::uint16_t comment_bytes;
  std::uint16_t disk;
  std::uint16_t attributes;
  std::uint32_t more_attributes;
  std::uint32_t member;
};
struct MemberHead {
  std::uint32_t signature;
  std::uint16_t version;
  std::uint16_t flags;
  std::uint16_t method;
  std::uint32_t time;
  std::uint32_t sum;
  std::uint32_t stored_bytes;
  std::uint32_t bytes;
  std::uint16_t name_bytes;
  std::uint16_t extra_bytes;
};
#pragma pack(pop)

// The structure at `at`, where it lies inside the file and has that signature.
template <typename T>
std::optional<T> At(Bytes file, std::uint64_t at, std::uint32_t signature) {
  if (at > file.size()) return std::nullopt;
  const auto read = ByteReader(file.subspan(at)).Read<T>();
  return read && read->signature == signature ? read : std::nullopt;
}

struct Directory {
  std::uint64_t begin = 0;
  std::uint64_t entries = 0;
};

std::optional<Directory> FindDirectory(Bytes file) {
  constexpr std::size_t kMostComment = 0xFFFF;
  if (file.size() < sizeof(End)) return std::nullopt;
  const std::size_t last = file.size() - sizeof(End);
  for (std::size_t comment = 0; comment <= std::min(last, kMostComment); ++comment) {
    const std::size_t at = last - comment;
    const auto end = At<End>(file, at, kEnd);
    if (!end || end->comment_bytes != comment) continue;
    if (end->entries != kElsewhere16 && end->directory != kElsewhere32) {
      return Directory{end->directory, end->entries};
    }
    if (at < sizeof(LargeEndPlace)) return std::nullopt;
    const auto place = At<LargeEndPlace>(file, at - sizeof(LargeEndPlace), kLargeEndPlace);
    const auto large = place ? At<LargeEnd>(file, place->end, kLargeEnd) : std::nullopt;
    if (!large) return std::nullopt;
    return Directory{large->directory, large->entries};
  }
  return std::nullopt;
}

// Where a member lies, and its size.
struct MemberExtent {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

// What an entry says, or its extra field where that is too large for it.
std::optional<MemberExtent> ExtentOf(const ZipEntry& entry, Bytes extra) {
  MemberExtent extent{entry.member, entry.bytes};
  const bool elsewhere = entry.bytes == kElsewhere32 || entry.stored_bytes == kElsewhere32 ||
                         entry.member == kElsewhere32;
  if (!elsewhere) return extent;
  ByteReader fields(extra);
  while (true) {
    const auto kind = fields.Read<std::uint16_t>();
    const auto bytes = fields.Read<std::uint16_t>();
    const auto field = bytes ? fields.Skip(*bytes) : std::nullopt;
    if (!field) return std::nullopt;
    if (*kind != kLargeField) continue;
    ByteReader numbers(*field);
    std::uint64_t stored = 0;
    // Copies: fields of a packed struct may lie where no reference can be bound.
    for (const auto& [small, number] : {std::pair(std::uint32_t{entry.bytes}, &extent.bytes),
                                        std::pair(std::uint32_t{entry.stored_bytes}, &stored),
                                        std::pair(std::uint32_t{entry.member}, &extent.begin)}) {
      if (small != kElsewhere32) continue;
      const auto read = numbers.Read<std::uint64_t>();
      if (!read) return std::nullopt;
      *number = *read;
    }
    return extent;
  }
}

std::optional<Bytes> DataAt(Bytes file, const MemberExtent& extent) {
  const auto head = At<MemberHead>(file, extent.begin, kMember);
  if (!head) return std::nullopt;
  ByteReader rest(file.subspan(extent.begin + sizeof(MemberHead)));
  if (!rest.Skip(std::uint64_t{head->name_bytes} + head->extra_bytes)) return std::nullopt;
  return rest.Skip(extent.bytes);
}

// Reads a zip file in memory, all of whose members are stored as they are: neither compressed nor
// encrypted. Sums of members are not checked. `where` names the file in errors.
Result<ZipMembers> ReadStoredZip(Bytes file, std::string_view where) {
  const auto directory = FindDirectory(file);
  if (!directory || directory->begin > file.size()) {
    return Invalid("{}: is no zip file, which torch.save writes, or truncated", where);
  }
  ZipMembers members;
  ByteReader entries(file.subspan(directory->begin));
  for (std::uint64_t i = 0; i < directory->entries; ++i) {
    const auto entry = entries.Read<ZipEntry>();
    const auto name =
        entry && entry->signature == kEntry ? entries.SkipText(entry->name_bytes) : std::nullopt;
    const auto extra = name ? entries.Skip(entry->extra_bytes) : std::nullopt;
    if (!extra || !entries.Skip(entry->comment_bytes)) {
      return Invalid("{}: entry {} of its {} members is damaged", where, i + 1, directory->entries);
    }
    if (entry->method != 0 || entry->flags % 2 != 0) {
      return Invalid(
          "{}: member '{}' is compressed or encrypted, but only files with stored members are "
          "read, as torch.save writes them",
          where, Printable(*name));
    }
    const auto extent = ExtentOf(*entry, *extra);
    const auto data = extent ? DataAt(file, *extent) : std::nullopt;
    if (!data) {
      return Invalid("{}: member '{}' lies outside the file", where, Printable(*name));
    }
    if (!members.emplace(*name, *data).second) {
      return Invalid("{}: has member '{}' twice", where, Printable(*name));
    }
  }
  return members;
}

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The folder of the zip file in which the one pickle lies, with the '/' behind it.
Result<std::string> FolderOf(const ZipMembers& members, std::string_view where) {
  constexpr std::string_view kPickle = "data.pkl";
  std::string folder;
  int found = 0;
  for (const auto& [name, data] : members) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos || name.substr(slash + 1) != kPickle) continue;
    folder = name.substr(0, slash + 1);
    ++found;
  }
  if (found != 1) {
    return Invalid("{}: is a zip file with {} members */{}, where what torch.save writes has one",
                   where, found, kPickle);
  }
  return folder;
}

// Whether its rows follow one another, and so on.
bool IsContiguous(const PickledTensor& tensor) {
  std::int64_t elements = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != elements) return false;
    elements *= tensor.shape[i];
  }
  return true;
}

// The bytes of a tensor. `where` names the file and the tensor.
Result<std::span<const std::byte>> DataOfTensor(const PickledTensor& tensor,
                                                const ZipMembers& members,
                                                const std::string& folder,
                                                const std::string& where) {
  const auto storage = members.find(fmt::format("{}data/{}", folder, tensor.storage));
  if (storage == members.end()) {
    return Invalid("{} is of the storage '{}', which the file lacks", where,
                   Printable(tensor.storage));
  }
  const std::int64_t element = DTypeBytes(tensor.dtype);
  const std::int64_t bytes = storage->second.size();
  if (bytes % element != 0 || tensor.storage_elements != bytes / element) {
    return Invalid("{} is of a storage of {} elements of {} bytes, but '{}' has {} bytes", where,
                   tensor.storage_elements, element, Printable(tensor.storage), bytes);
  }
  std::int64_t elements = 1;
  std::int64_t size = element;
  for (const std::int64_t dimension : tensor.shape) {
    if (__builtin_mul_overflow(size, dimension, &size)) {
      return Invalid("{} has the impossible shape [{}]", where, fmt::join(tensor.shape, ", "));
    }
    elements *= dimension;
  }
  if (size > 0 && !IsContiguous(tensor)) {
    return Invalid(
        "{} of shape [{}] lies in memory by strides [{}]: save its .contiguous() with torch.save",
        where, fmt::join(tensor.shape, ", "), fmt::join(tensor.strides, ", "));
  }
  if (tensor.offset > tensor.storage_elements ||
      elements > tensor.storage_elements - tensor.offset) {
    return Invalid("{} has {} elements from element {} on of a storage of {}", where, elements,
                   tensor.offset, tensor.storage_elements);
  }
  return storage->second.subspan(Size(tensor.offset * element), size);
}

}  // namespace

Result<FileTensors> ParseTorchFile(std::span<const std::byte> file, std::string_view where) {
  if (TextOf(file).starts_with(std::string_view("\x80\x02\x8a\x0a"))) {
    return Invalid(
        "{}: has the form that torch.save wrote before version 1.6; write it again: "
        "torch.save(torch.load(FILE, map_location='cpu', weights_only=True), FILE)",
        where);
  }
  FT_ASSIGN_OR_RETURN(const ZipMembers members, ReadStoredZip(file, where));
  FT_ASSIGN_OR_RETURN(const std::string folder, FolderOf(members, where));
  const auto order = members.find(folder + "byteorder");
  if (order != members.end() && TextOf(order->second) != "little") {
    return Invalid("{}: has byteorder '{}', but only 'little' is read", where,
                   Printable(TextOf(order->second)));
  }
  FT_ASSIGN_OR_RETURN(const auto tensors,
                      UnpickleTensors(members.find(folder + "data.pkl")->second, where));
  FileTensors holds;
  for (const auto& [name, tensor] : tensors) {
    const std::string place = fmt::format("{}: tensor '{}'", where, Printable(name));
    FT_ASSIGN_OR_RETURN(const auto data, DataOfTensor(tensor, members, folder, place));
    if (!holds.Add(name, tensor.dtype, tensor.shape, data)) {
      return Invalid("{} is there twice", place);
    }
  }
  return holds;
}

}  // namespace foretoken
