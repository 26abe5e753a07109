#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers/sha256.h"
#include "base/result.h"
#include "foretoken/types.h"

namespace foretoken {

/// What a file with the keys and values of a text's beginning says before these. All but the text
/// must be equal where they are taken in.
struct PrefixFileHead {
  std::string model;          ///< The fingerprint of the model that computed them.
  std::string adapter;        ///< The fingerprint of the adapter; empty: none.
  float adapter_scale = 1;    ///< By how much the adapter was scaled.
  std::string numbers;        ///< How they were computed, and how they lie in a block.
  std::string owner;          ///< Whose text it is; empty: anybody's.
  std::vector<Token> tokens;  ///< At least one, none below 0.
  /// How many blocks of keys and values follow: those of the first tokens.
  std::uint32_t blocks = 0;
  std::uint64_t bytes = 0;  ///< The size of what follows, without the digest.
};

/// The file's beginning. Behind it come the bytes that it tells of, and behind these PrefixDigest
/// of all before.
std::string FormatPrefixFileHead(const PrefixFileHead& head);

/// The digest that ends a file, fed with all bytes before it.
class PrefixDigest {
 public:
  static constexpr std::size_t kBytes = 64;
  void Update(std::string_view bytes) { sha_.Update(bytes); }
  std::string Finish() { return sha_.Hex(); }

 private:
  Sha256 sha_;
};

struct PrefixFile {
  PrefixFileHead head;
  std::span<const std::byte> kept;  ///< Keys and values; borrowed from the file's bytes.
};

/// Reads a file's bytes, which `name` names in errors: refuses what is no such file, of another
/// version, or shorter or longer than it says.
Result<PrefixFile> ParsePrefixFile(std::span<const std::byte> bytes, std::string_view name);

/// Refuses a file that ParsePrefixFile has read where it is not as it was written.
Status CheckPrefixDigest(std::span<const std::byte> bytes, std::string_view name);

}  // namespace foretoken
