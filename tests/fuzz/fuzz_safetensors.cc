#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/weights/arrange/mxfp4_pairs.h"
#include "core/weights/safetensors.h"
#include "core/weights/touch_testing.h"

namespace {

void ParseAndTouch(std::span<const std::byte> file) {
  const auto holds = foretoken::ParseSafetensors(file, "fuzz");
  if (!holds.ok()) {
    if (holds.error().message.empty()) std::abort();
    return;
  }
  foretoken::TouchTensors(holds->tensors);
  // Pairs of bytes are blocks.
  foretoken::Checkpoint checkpoint;
  const foretoken::Status arranged = foretoken::ArrangePairs(holds->bytes, &checkpoint);
  if (!arranged.ok() && arranged.error().message.empty()) std::abort();
  for (const auto& [name, view] : checkpoint.tensors) {
    if (checkpoint.Read(name).made.size() != view.bytes()) std::abort();
  }
}

}  // namespace

// The first byte chooses: an odd one gives the rest as a file; with an even one the rest up to the
// first zero byte is the header, to which the right length is put, so that mutations get past it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span rest(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    ParseAndTouch(rest);
    return 0;
  }
  const void* end = rest.empty() ? nullptr : std::memchr(rest.data(), 0, rest.size());
  const std::size_t header_bytes =
      end == nullptr ? rest.size() : static_cast<const std::byte*>(end) - rest.data();
  std::vector<std::byte> file;
  file.reserve(8 + rest.size());
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<std::byte>(header_bytes >> (8 * i)));
  file.insert(file.end(), rest.begin(), rest.begin() + header_bytes);
  if (end != nullptr) {
    file.insert(file.end(), rest.begin() + header_bytes + 1, rest.end());
  }
  ParseAndTouch(file);
  return 0;
}
