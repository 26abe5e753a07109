#pragma once

#include "core/backend/backend.h"
#include "core/draft/drafter.h"
#include "core/sampling/sampler.h"

namespace foretoken {

/// What the target says behind the nodes of a verified proposal, for drafters that guess with it.
/// Holds scratch memory only; one per thread.
class TargetChoice {
 public:
  /// `backend` outlives it.
  TargetChoice(Backend* backend, int vocabulary);

  /// The token that the target emits behind `node` if the path to it comes true: chosen by the
  /// noise of its position and every sampler option. Where the mask of a grammar takes too long, or
  /// the path breaks the grammar, the choice without options: a guess may be wrong.
  Token After(const VerifiedProposal& verified, int node);

 private:
  Backend* backend_;
  int vocabulary_;
  Sampler sampler_;
};

}  // namespace foretoken
