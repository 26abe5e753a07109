#include "speculation/proposal.h"

#include "base/check.h"

namespace foretoken {

std::string_view ProposalSourceName(ProposalSource source) {
  switch (source) {
    case ProposalSource::kNone:
      return "none";
    case ProposalSource::kDraft:
      return "draft";
    case ProposalSource::kCache:
      return "cache";
    case ProposalSource::kJit:
      return "jit";
    case ProposalSource::kNgram:
      return "ngram";
    case ProposalSource::kRetrieval:
      return "retrieval";
    case ProposalSource::kRandom:
      return "random";
  }
  FT_CHECK(false, "proposal source {}", static_cast<int>(source));
}

bool Proposal::IsChain() const {
  for (int i = 0; i < size(); ++i) {
    if (parents[i] != i) return false;
  }
  return true;
}

}  // namespace foretoken
