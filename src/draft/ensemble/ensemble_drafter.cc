#include "draft/registry.h"
namespace foretoken {
std::unique_ptr<Drafter> MakeEnsembleDrafter(const DrafterParts& parts) {
  return MakeNgramDrafter(parts);
}
}  // namespace foretoken
