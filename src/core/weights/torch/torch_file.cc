#include "core/weights/torch/torch_file.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/text/printable.h"
#include "core/weights/torch/stored_zip.h"
#include "core/weights/torch/unpickle.h"

namespace foretoken {
namespace {

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
  const auto element = static_cast<std::int64_t>(DTypeBytes(tensor.dtype));
  const auto bytes = static_cast<std::int64_t>(storage->second.size());
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
  return storage->second.subspan(static_cast<std::size_t>(tensor.offset * element),
                                 static_cast<std::size_t>(size));
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
