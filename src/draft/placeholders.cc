#include "draft/registry.h"

// PLACEHOLDERS of drafters that are being written; never on main.
namespace foretoken {
std::unique_ptr<Drafter> MakeProtocolDrafter(const DrafterParts& parts) {
  return MakeNgramDrafter(parts);
}
}  // namespace foretoken
