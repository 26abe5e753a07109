#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/weights/torch/torch_file.h"
#include "core/weights/torch/torch_testing.h"
#include "core/weights/touch_testing.h"

namespace {

void ParseAndTouch(std::span<const std::byte> file) {
  const auto holds = foretoken::ParseTorchFile(file, "fuzz");
  if (!holds.ok()) {
    if (holds.error().message.empty()) std::abort();
    return;
  }
  foretoken::TouchTensors(holds->tensors);
  for (const auto& [name, bytes] : holds->bytes) foretoken::TouchBytes(bytes.data);
  foretoken::TouchTensors(holds->others);
}

}  // namespace

// The first byte chooses: an odd one gives the rest as a file; with an even one the rest is the
// pickle of a file with storages of a few bytes, so that mutations get past the zip.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto rest = std::as_bytes(std::span(data, size).subspan(1));
  if (data[0] % 2 == 1) {
    ParseAndTouch(rest);
    return 0;
  }
  foretoken::ZipBuilder zip;
  zip.Add("a/data.pkl", {reinterpret_cast<const char*>(rest.data()), rest.size()});
  for (const char* storage : {"0", "1", "2"}) {
    zip.Add(std::string("a/data/") + storage, std::string(16, *storage));
  }
  const std::string file = zip.Build();
  // The copy has the file's own size, so that what lies behind it is known to be outside.
  const std::vector<char> exact(file.begin(), file.end());
  ParseAndTouch(std::as_bytes(std::span(exact)));
  return 0;
}
