#include "weights/checkpoint.h"

#include <algorithm>

#include <fmt/core.h>

#include <functional>
#include <span>
#include <system_error>

#include "base/sha256.h"
#include "weights/gguf/gguf_model.h"
#include "weights/model_folder.h"
#include "weights/requantize.h"

namespace foretoken {
namespace {

// Of each tensor's bytes: that many pieces, evenly spread, the first and the last among them.
void AddSamples(std::string_view bytes, Sha256* sha) {
  constexpr std::size_t kPieces = 16;
  constexpr std::size_t kPieceBytes = 64;
  if (bytes.size() <= kPieces * kPieceBytes) {
    sha->Update(bytes);
    return;
  }
  const std::size_t last = bytes.size() - kPieceBytes;
  for (std::size_t i = 0; i < kPieces; ++i) {
    sha->Update(bytes.substr(last / (kPieces - 1) * i, kPieceBytes));
  }
  sha->Update(bytes.substr(last));
}

}  // namespace

Result<Checkpoint> Checkpoint::Open(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) return ReadModelFolder(path);
  if (std::filesystem::exists(status)) return ReadGgufModel(path);
  return InvalidInput(path.string() + ": there is no such model folder or GGUF file");
}

bool Checkpoint::quantized() const {
  return std::ranges::any_of(tensors,
                             [](const auto& tensor) { return IsQuantized(tensor.second.format); });
}

const TensorView* Checkpoint::Find(std::string_view name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

const TensorView* Checkpoint::InFile(std::string_view name) const {
  const auto found = requantized_from.find(name);
  return found == requantized_from.end() ? Find(name) : &found->second;
}

TensorBytes Checkpoint::Read(std::string_view name) const {
  const TensorView* wanted = Find(name);
  const TensorView* stored = InFile(name);
  FT_CHECK(wanted != nullptr, "no tensor {}", name);
  TensorBytes read{*wanted, {}};
  if (wanted == stored) return read;
  read.made = Converted(*stored, wanted->format);
  read.view.data = read.made.data();
  return read;
}

void Checkpoint::Release(std::string_view name) const {
  const TensorView* tensor = InFile(name);
  if (tensor == nullptr) return;
  const std::span<const std::byte> part(tensor->data, tensor->bytes());
  for (const auto& file : files) {
    const std::span<const std::byte> all = file->bytes();
    if (std::less_equal<>()(all.data(), part.data()) &&
        std::less_equal<>()(part.data() + part.size(), all.data() + all.size())) {
      return file->Release(part);
    }
  }
}

std::string Checkpoint::NameInFile(std::string_view name) const {
  return gguf.has_value() ? GgufName(name) : std::string(name);
}

std::string Checkpoint::Fingerprint() const {
  Sha256 sha;
  sha.Update(config.json);
  for (const auto& [name, tensor] : tensors) {
    sha.Update(fmt::format("\n{} {} {}\n", name, FormatName(tensor.format), tensor.bytes()));
    const TensorView& stored = *InFile(name);
    AddSamples({reinterpret_cast<const char*>(stored.data), stored.bytes()}, &sha);
  }
  return sha.Hex();
}

}  // namespace foretoken
