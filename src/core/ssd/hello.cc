#include "core/ssd/hello.h"

#include <fmt/core.h>

#include <algorithm>

namespace foretoken {
namespace {

template <std::size_t N>
void Copy(std::string_view text, std::array<char, N>* to) {
  std::copy_n(text.begin(), std::min(text.size(), N), to->begin());
}

Error Refused(std::string why) { return Error{ErrorCode::kUnavailable, std::move(why)}; }

}  // namespace

ModelIdentity ModelIdentity::Of(std::string_view model, std::string_view tokenizer) {
  ModelIdentity identity;
  Copy(model, &identity.model);
  Copy(tokenizer, &identity.tokenizer);
  return identity;
}

Status CheckHello(std::span<const std::byte> record, const ModelIdentity& draft) {
  HelloMessage hello;
  constexpr std::size_t kFixed = offsetof(HelloMessage, record_bytes);
  std::memcpy(&hello, record.data(), std::min(record.size(), sizeof(hello)));
  if (record.size() < kFixed || hello.kind != MessageKind::kHello ||
      hello.magic != kProtocolMagic) {
    return Refused("does not speak the protocol: is it of another version of foretoken?");
  }
  if (hello.version != kProtocolVersion) {
    return Refused(fmt::format(
        "speaks version {} of the protocol and not {}: both sides must be the same foretoken",
        hello.version, kProtocolVersion));
  }
  if (record.size() != sizeof(hello) || hello.record_bytes != kRecordBytes) {
    return Refused("has other records: both sides must be the same build of foretoken");
  }
  if (hello.draft.model != draft.model) {
    return Refused("has another draft model: both sides must have loaded the same");
  }
  if (hello.draft.tokenizer != draft.tokenizer) {
    return Refused("has another tokenizer: both sides must have loaded the same");
  }
  return {};
}

}  // namespace foretoken
