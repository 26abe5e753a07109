#include "core/model/adapter/adapter_file.h"

#include <system_error>
#include <utility>

#include "base/files/read_file.h"
#include "base/text/printable.h"
#include "core/weights/gguf/gguf_file.h"
#include "core/weights/safetensors.h"
#include "core/weights/torch/torch_file.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxConfigBytes = 1 << 20;
constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kSafetensors = "adapter_model.safetensors";
constexpr const char* kPickled = "adapter_model.bin";

// Refuses a file, which errors call `where`, that has tensors of another kind.
Status CheckFloats(const OtherTensorMap& others, const std::string& where) {
  if (others.empty()) return {};
  const auto& [name, other] = *others.begin();
  return Invalid("{}: tensor '{}' has dtype {}, but adapters are of floats", where, Printable(name),
                 other.dtype);
}

Result<AdapterFile> OpenFolder(const fs::path& path, const Family& family) {
  const auto lies = [&](const char* name) {
    std::error_code error;
    return fs::is_regular_file(path / name, error);
  };
  const bool pickled = !lies(kSafetensors) && lies(kPickled);
  const fs::path config = path / kConfig;
  const fs::path weights = path / (pickled ? kPickled : kSafetensors);
  if (!lies(kConfig) || (!pickled && !lies(kSafetensors))) {
    return Invalid("{}: lacks {}: a folder with an adapter has {} and {} or {}", path.string(),
                   lies(kConfig) ? kSafetensors : kConfig, kConfig, kSafetensors, kPickled);
  }
  const Result<std::string> text = ReadFile(config, kMaxConfigBytes);
  if (!text.ok()) return Invalid("{}: {}", config.string(), text.error().message);
  FT_ASSIGN_OR_RETURN(TensorFile file,
                      TensorFile::Open(weights, pickled ? ParseTorchFile : ParseSafetensors));
  if (!file.holds.bytes.empty()) {
    return Invalid("{}: tensor '{}' has dtype U8, but adapters are of floats", weights.string(),
                   Printable(file.holds.bytes.begin()->first));
  }
  FT_RETURN_IF_ERROR(CheckFloats(file.holds.others, weights.string()));
  FT_ASSIGN_OR_RETURN(AdapterFile adapter,
                      PeftAdapter(file.holds.tensors, *text, config.string(), family));
  adapter.files.push_back(std::move(file.file));
  return adapter;
}

Result<AdapterFile> OpenGguf(const fs::path& path, const Family& family) {
  FT_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  FT_RETURN_IF_ERROR(CheckFloats(file.others(), path.string()));
  FT_ASSIGN_OR_RETURN(AdapterFile adapter,
                      GgufAdapter(file.tensors(), file.metadata(), path.string(), family));
  adapter.files = file.parts();
  return adapter;
}

}  // namespace

Result<AdapterFile> OpenAdapterFile(const fs::path& path, const Family& family) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status)) {
    return InvalidInput(path.string() + ": there is no such adapter's folder or GGUF file");
  }
  const bool folder = fs::is_directory(status);
  FT_ASSIGN_OR_RETURN(AdapterFile adapter,
                      folder ? OpenFolder(path, family) : OpenGguf(path, family));
  adapter.path = path;
  adapter.alternating_heads = family.neighbours == Neighbours::kAlways ||
                              (!folder && family.neighbours == Neighbours::kInGguf);
  return adapter;
}

}  // namespace foretoken
