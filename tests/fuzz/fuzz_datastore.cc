// Readers of the datastore's files: whatever the bytes, they are refused in a sentence, or what
// they hold can be searched. The first byte says which reader.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/datastore/index/continuation_sampler.h"
#include "core/datastore/storage/entry_log.h"
#include "core/datastore/storage/manifest.h"
#include "core/datastore/storage/segment_file.h"

namespace {

using namespace foretoken;  // NOLINT: a program of its own.

const std::string kFingerprint(64, 'a');

template <typename T>
bool Refused(const Result<T>& result) {
  if (result.ok()) return false;
  if (result.error().message.empty()) std::abort();
  return true;
}

void VisitAll(SampledTree* tree, std::uint32_t node) {
  std::vector<std::uint32_t> children;
  tree->VisitChildren(node, [&](std::uint32_t child, auto...) { children.push_back(child); });
  for (const std::uint32_t child : children) VisitAll(tree, child);
}

// Every token of a segment can be reached through it; AddressSanitizer sees where one is not.
void SearchSegment(std::span<const std::byte> bytes, bool reseal) {
  std::vector<std::uint32_t> aligned(bytes.size() / 4 + 1);
  if (!bytes.empty()) std::memcpy(aligned.data(), bytes.data(), bytes.size());
  const auto file = std::as_writable_bytes(std::span(aligned)).first(bytes.size());
  if (reseal) ResealSegment(file);
  std::uint32_t vocabulary = 0;  // As the header has it, so that it is not refused for that.
  if (file.size() >= 36) std::memcpy(&vocabulary, file.data() + 24, sizeof(vocabulary));
  const TokenizerIdentity tokenizer = {"fuzz", kFingerprint, static_cast<int>(vocabulary)};
  const auto segment = ParseSegment(file, nullptr, tokenizer, "fuzz");
  if (Refused(segment)) return;
  const std::vector<std::shared_ptr<const Segment>> segments = {*segment};
  ContinuationSampler sampler;
  for (int token = 0; token < std::min((*segment)->vocabulary(), 64); ++token) {
    const std::vector<Token> context = {token, 0, 1, token};
    VisitAll(&sampler.Sample(segments, context, 10), 0);
  }
  const Status order = (*segment)->CheckOrder();
  if (!order.ok() && order.error().message.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: {
      const auto manifest =
          ParseManifest({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "fuzz");
      // What was read is written the same way.
      if (!Refused(manifest) && Refused(ParseManifest(FormatManifest(*manifest), "fuzz"))) {
        std::abort();
      }
      break;
    }
    case 1: {
      const auto log = ParseEntryLog(bytes, kFingerprint, "fuzz");
      if (!Refused(log) && log->good_bytes > bytes.size()) std::abort();
      break;
    }
    default:
      SearchSegment(bytes, data[0] % 4 == 3);
  }
  return 0;
}
