#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/result.h"
#include "core/tensor/tensor_map.h"
#include "core/tensor/tensor_view.h"
#include "core/weights/gguf/gguf_metadata.h"
#include "core/weights/other_tensor.h"

namespace foretoken {

/// A tensor with its bytes, and these where they were made for it.
struct TensorBytes {
  TensorView view;
  std::vector<std::byte> made;
};

/// A model as it lies on disk, a Hugging Face folder or a GGUF file: its configuration as text, its
/// tensors mapped read-only. Everything is validated, nothing is packed. Movable; what it holds
/// lives as long as it does.
struct Checkpoint {
  /// Reads the folder (ReadModelFolder) or the GGUF file (ReadGgufModel) at `path`.
  static Result<Checkpoint> Open(const std::filesystem::path& path);

  /// JSON, and how errors call it.
  struct Text {
    std::string json;
    std::string where;
  };

  std::filesystem::path path;
  Text config;             ///< In the form of config.json; of a GGUF file made by OpenCheckpoint.
  Text generation_config;  ///< In that of generation_config.json; empty where there is none.
  TensorMap tensors;       ///< As files name them, or as Rename has named them; read by Read.
  /// The names of renamed tensors in the files.
  std::map<std::string, std::string, std::less<>> names_in_files;
  /// What files call a tensor that is not there; null before Rename.
  std::function<std::string(std::string_view)> usual_name;
  /// How a tensor is made of what lies in the files, when it is read.
  struct Arrangement {
    std::vector<std::span<const std::byte>> pieces;  ///< All that it is made of, in the files.
    std::function<std::vector<std::byte>()> make;
  };
  /// How those tensors are made that do not lie in the files as they are; these have no data.
  std::map<std::string, Arrangement, std::less<>> arranged;
  /// What those tensors are in the files that are to be quantised as they are read: these have no
  /// data, and the format that they will have (core/weights/requantize.h).
  TensorMap requantized_from;
  /// Rows of q and k alternate between the two halves of what is rotated of each head, for a
  /// rotation of neighbours (arrange/rotated_rows.h); elsewhere the first half lies before the
  /// second.
  bool alternating_heads = false;
  bool gains_less_one = false;  ///< One is to be added to the gains of norms.
  /// What a GGUF file says besides, its tokenizer above all; none of a folder, whose tokenizer has
  /// files of its own.
  std::optional<GgufMetadata> gguf;
  OtherTensorMap others;  ///< As files name them: none of these is a weight.
  /// What the files have beside the text model, in a sentence for each part; filled by
  /// OpenCheckpoint.
  std::vector<std::string> not_used;
  std::vector<std::shared_ptr<const MappedFile>> files;  ///< What the tensors and `gguf` borrow.

  /// Whether any of the tensors is in blocks.
  bool quantized() const;
  /// nullptr where there is no tensor of that name. What Read gives has data.
  const TensorView* Find(std::string_view name) const;
  /// The bytes of a tensor that there is: those of its file, or made now. Borrows this checkpoint.
  TensorBytes Read(std::string_view name) const;
  /// Gives back the memory of a tensor that has been read: what was loaded must not lie there
  /// twice.
  void Release(std::string_view name) const;
  /// A tensor in the format that it has in the files; nullptr where there is none.
  const TensorView* InFile(std::string_view name) const;
  /// How the model's own files call that tensor.
  std::string NameInFile(std::string_view name) const;
  /// The pieces of files that a tensor is made of.
  std::vector<std::span<const std::byte>> PiecesOf(std::string_view name) const;
  /// Calls each tensor as `name_of` says; `usual` is the other way round. Those that are called ""
  /// are left out.
  void Rename(const std::function<std::string(std::string_view)>& name_of,
              std::function<std::string(std::string_view)> usual);

  /// Tells models apart: SHA-256, in hexadecimal digits, of the configuration, of every tensor's
  /// name and type, and of a sample of its bytes in the files.
  std::string Fingerprint() const;
};

}  // namespace foretoken
