#include "core/weights/checkpoint.h"

#include <algorithm>

#include <fmt/core.h>

#include <system_error>
#include <utility>

#include "base/numbers/sha256.h"
#include "core/weights/gguf/gguf_file.h"
#include "core/weights/model_folder.h"
#include "core/weights/requantize.h"

namespace foretoken {
namespace {

// Reads a GGUF file, and with the first part of a split one the others. Its configuration is left
// empty: what its metadata say is up to the model's family
// (core/model/families/gguf/gguf_config.h).
Result<Checkpoint> ReadGgufModel(const std::filesystem::path& path) {
  FT_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  Checkpoint checkpoint{.path = path,
                        .tensors = file.tensors(),
                        .gguf = file.metadata(),
                        .others = file.others(),
                        .files = file.parts()};
  checkpoint.config.where = path.string();
  return checkpoint;
}

// Adds that many pieces of a tensor's bytes, evenly spread, the first and the last among them.
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
  TensorBytes before{*stored, {}};
  if (const auto found = arranged.find(name); found != arranged.end()) {
    before.made = found->second.make();
    before.view.data = before.made.data();
  }
  if (wanted == stored) return before;
  read.made = Converted(before.view, wanted->format);
  read.view.data = read.made.data();
  return read;
}

std::vector<std::span<const std::byte>> Checkpoint::PiecesOf(std::string_view name) const {
  const auto found = arranged.find(name);
  if (found != arranged.end()) return found->second.pieces;
  const TensorView* tensor = InFile(name);
  if (tensor == nullptr) return {};
  return {{tensor->data, tensor->bytes()}};
}

void Checkpoint::Release(std::string_view name) const {
  for (const std::span<const std::byte> piece : PiecesOf(name)) {
    for (const auto& file : files) {
      const std::span<const std::byte> all = file->bytes();
      if (std::less_equal<>()(all.data(), piece.data()) &&
          std::less_equal<>()(piece.data() + piece.size(), all.data() + all.size())) {
        file->Release(piece);
        break;
      }
    }
  }
}

std::string Checkpoint::NameInFile(std::string_view name) const {
  const auto found = names_in_files.find(name);
  if (found != names_in_files.end()) return found->second;
  return usual_name ? usual_name(name) : std::string(name);
}

void Checkpoint::Rename(const std::function<std::string(std::string_view)>& name_of,
                        std::function<std::string(std::string_view)> usual) {
  usual_name = std::move(usual);
  const TensorMap before = std::move(tensors);
  auto arranged_before = std::move(arranged);
  tensors.clear();
  arranged.clear();
  for (const auto& [name, view] : before) {
    const std::string renamed = name_of(name);
    if (renamed.empty()) continue;
    tensors.emplace(renamed, view);
    names_in_files.emplace(renamed, name);
    auto arrangement = arranged_before.extract(name);
    if (!arrangement.empty()) arranged.emplace(renamed, std::move(arrangement.mapped()));
  }
}

std::string Checkpoint::Fingerprint() const {
  Sha256 sha;
  sha.Update(config.json);
  for (const auto& [name, tensor] : tensors) {
    sha.Update(fmt::format("\n{} {} {}\n", name, FormatName(tensor.format), tensor.bytes()));
    for (const std::span<const std::byte> piece : PiecesOf(name)) {
      AddSamples({reinterpret_cast<const char*>(piece.data()), piece.size()}, &sha);
    }
  }
  return sha.Hex();
}

}  // namespace foretoken
