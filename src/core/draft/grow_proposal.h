#pragma once

#include "core/speculation/proposal.h"

namespace foretoken {

/// The child of `parent` that carries `token`, appended where there is none: paths that begin alike
/// share their nodes.
inline int Grow(Proposal* proposal, int parent, Token token) {
  const int child = proposal->ChildWith(parent, token);
  if (child != 0) return child;
  proposal->Append(parent, token);
  return proposal->size();
}

}  // namespace foretoken
