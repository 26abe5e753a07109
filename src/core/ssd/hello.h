#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "core/ssd/messages.h"

namespace foretoken {

/// What a peer has loaded, as fingerprints: text of up to 64 bytes, empty where there is nothing.
struct ModelIdentity {
  std::array<char, 64> model{};
  std::array<char, 64> tokenizer{};

  static ModelIdentity Of(std::string_view model, std::string_view tokenizer);
  friend bool operator==(const ModelIdentity&, const ModelIdentity&) = default;
};

/// The first record of each side. Kind, magic and version stay where they are in every version.
struct HelloMessage {
  MessageKind kind = MessageKind::kHello;
  std::uint32_t magic = kProtocolMagic;
  std::uint32_t version = kProtocolVersion;
  std::uint32_t record_bytes = kRecordBytes;
  ModelIdentity draft;
};

/// Whether the first record of a peer is a hello of this version, and the draft that it names the
/// one that it should be. If not: why not, to go behind the peer's name.
Status CheckHello(std::span<const std::byte> record, const ModelIdentity& draft);

}  // namespace foretoken
