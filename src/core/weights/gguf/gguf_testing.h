#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/weight_format.h"
#include "core/weights/gguf/gguf_file.h"
#include "core/weights/gguf/gguf_metadata.h"

namespace foretoken {

/// Writes GGUF files, wrong ones too.
class GgufBuilder {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  ///< As the key says, where one was added.

  template <typename T>
  static void Append(std::string* out, T value) {
    out->append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  static void AppendString(std::string* out, std::string_view text) {
    Append<std::uint64_t>(out, text.size());
    *out += text;
  }

  /// A value by its bytes.
  void Key(std::string_view key, GgufType type, std::string_view value) {
    AppendString(&keys_, key);
    Append(&keys_, static_cast<std::uint32_t>(type));
    keys_ += value;
    ++key_count_;
  }
  template <typename T>
  void Key(std::string_view key, GgufType type, T value) {
    std::string bytes;
    Append(&bytes, value);
    Key(key, type, std::string_view(bytes));
  }
  void Text(std::string_view key, std::string_view text) {
    std::string bytes;
    AppendString(&bytes, text);
    Key(key, GgufType::kString, std::string_view(bytes));
  }
  void Strings(std::string_view key, const std::vector<std::string>& texts) {
    std::string bytes;
    Append(&bytes, static_cast<std::uint32_t>(GgufType::kString));
    Append<std::uint64_t>(&bytes, texts.size());
    for (const std::string& text : texts) AppendString(&bytes, text);
    Key(key, GgufType::kArray, std::string_view(bytes));
  }

  /// A tensor's info as given; `sizes` from innermost to outermost, as files have them.
  void Info(std::string_view name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
            std::uint64_t offset) {
    AppendString(&infos_, name);
    Append<std::uint32_t>(&infos_, static_cast<std::uint32_t>(sizes.size()));
    for (const std::uint64_t size : sizes) Append(&infos_, size);
    Append(&infos_, type);
    Append(&infos_, offset);
    ++tensor_count_;
  }
  /// A tensor with `data` behind those before it.
  void Tensor(std::string_view name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
              std::string_view data) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    Info(name, sizes, type, data_.size());
    data_ += data;
  }

  std::string File() const {
    std::string file = "GGUF";
    Append(&file, version);
    Append(&file, tensor_count_);
    Append(&file, key_count_);
    file += keys_ + infos_;
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data_;
  }
  void Write(const std::string& path) const { std::ofstream(path, std::ios::binary) << File(); }

 private:
  std::string keys_;
  std::string infos_;
  std::string data_;
  std::uint64_t key_count_ = 0;
  std::uint64_t tensor_count_ = 0;
};

inline Result<GgufContents> ParseGgufText(const std::string& file) {
  return ParseGguf(std::as_bytes(std::span(file)), "m.gguf");
}

}  // namespace foretoken
