#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/model/families/gguf/gguf_config.h"
#include "core/model/families/read_config.h"
#include "core/weights/gguf/gguf_file.h"
#include "core/weights/touch_testing.h"

// Every key, array and element of a file that is accepted must be readable: AddressSanitizer sees
// where one is not.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto contents = foretoken::ParseGguf(std::as_bytes(std::span(data, size)), "fuzz");
  if (!contents.ok()) {
    if (contents.error().message.empty()) std::abort();
    return 0;
  }
  for (const auto& [key, value] : contents->metadata.values()) {
    const auto* array = std::get_if<foretoken::GgufArray>(&value);
    if (array == nullptr) continue;
    const bool strings = array->type == foretoken::GgufType::kString;
    const std::size_t read = strings ? array->Strings().size() : array->Numbers().size();
    if (read != array->count) std::abort();
  }
  const auto config = foretoken::ConfigFromGguf(contents->metadata, contents->tensors, "fuzz");
  if (config.ok()) (void)foretoken::ParseDescription(*config, "fuzz");
  foretoken::TouchTensors(contents->tensors);
  foretoken::TouchTensors(contents->others);
  return 0;
}
