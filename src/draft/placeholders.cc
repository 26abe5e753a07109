#include "draft/registry.h"

// PLACEHOLDERS of drafters that are being written; never on main.
namespace foretoken {
std::unique_ptr<Drafter> MakeRecycleDrafter(const DrafterParts& parts) {
  return MakeNgramDrafter(parts);
}
std::unique_ptr<Drafter> MakeRacerDrafter(const DrafterParts& parts) {
  return MakeNgramDrafter(parts);
}
std::unique_ptr<Drafter> MakeJacobiDrafter(const DrafterParts& parts) {
  return MakeNgramDrafter(parts);
}
std::unique_ptr<Drafter> MakeLookaheadDrafter(const DrafterParts& parts) {
  return MakeNgramDrafter(parts);
}
std::unique_ptr<Drafter> MakeProtocolDrafter(const DrafterParts& parts) {
  return MakeNgramDrafter(parts);
}
std::unique_ptr<Drafter> MakeStagedDrafter(const DrafterParts& parts) {
  return MakeNgramDrafter(parts);
}
std::unique_ptr<Drafter> MakeEnsembleDrafter(const DrafterParts& parts) {
  return MakeNgramDrafter(parts);
}
}  // namespace foretoken
