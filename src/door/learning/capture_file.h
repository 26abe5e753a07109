#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/tensor/half.h"
#include "foretoken/types.h"

namespace foretoken {

/// Writes what a target has answered and computed, in the form that docs/look_up/formats.md
/// defines: files capture-00000.safetensors ... of a folder, each whole or not there, and their
/// owner's alone.
class CaptureWriter {
 public:
  /// The target, and what of it is written: the streams that enter `layers`, which are `hidden`
  /// wide. `tokenizer` is its fingerprint.
  struct Source {
    std::vector<int> layers;
    int hidden = 0;
    std::string tokenizer;
  };

  /// Refuses a folder that holds captures already; makes one that is not there. A file has about
  /// `file_bytes`.
  static Result<CaptureWriter> Begin(std::filesystem::path folder, Source source,
                                     std::size_t file_bytes);
  /// Goes on behind the captures that a folder holds, and removes the oldest while all together
  /// have more than `most_bytes`.
  static Result<CaptureWriter> GoOn(std::filesystem::path folder, Source source,
                                    std::size_t file_bytes, std::size_t most_bytes);

  /// A sequence of which the first `prompt_tokens` are the prompt; `states` [tokens, (layers + 1) *
  /// hidden], the final one last.
  /// Where a file is full and cannot be written, all that is in it waits for Finish.
  Status Add(std::span<const Token> tokens, std::size_t prompt_tokens,
             std::span<const BFloat16> states);
  /// Writes what is not written yet. Where that fails it may be tried again.
  Status Finish();
  /// Whether there is something.
  bool unfinished() const { return !tokens_.empty(); }

  /// How much this has written.
  std::int64_t texts() const { return all_texts_; }
  std::int64_t tokens() const { return all_tokens_; }
  std::int64_t bytes() const { return all_bytes_; }
  int files() const { return files_; }

 private:
  CaptureWriter(std::filesystem::path folder, Source source, std::size_t file_bytes);
  Status WriteFile();
  void RemoveOldest() const;

  std::filesystem::path folder_;
  Source source_;
  std::size_t file_bytes_;
  std::size_t most_bytes_ = 0;  // 0: all are kept.
  int first_ = 0;               // The number of the first file.
  int files_ = 0;
  std::int64_t all_texts_ = 0;
  std::int64_t all_tokens_ = 0;
  std::int64_t all_bytes_ = 0;
  // The file at hand.
  std::vector<std::int32_t> tokens_;
  std::vector<std::uint8_t> answer_;
  std::vector<std::int64_t> starts_ = {0};
  std::vector<BFloat16> taps_;
  std::vector<BFloat16> final_;
};

}  // namespace foretoken
