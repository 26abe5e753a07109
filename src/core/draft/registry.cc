#include "core/draft/registry.h"

#include "base/check.h"

namespace foretoken {

std::unique_ptr<Drafter> MakeDrafter(DrafterId id, const DrafterParts& parts) {
  switch (id) {
#define FORETOKEN_DRAFTER(Id, ...) \
  case DrafterId::k##Id:           \
    return Make##Id##Drafter(parts);
#include "foretoken/tables/drafters.inc"
#undef FORETOKEN_DRAFTER
  }
  FT_CHECK(false, "drafter {}", static_cast<int>(id));
}

}  // namespace foretoken
