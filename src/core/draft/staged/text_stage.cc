#include "core/draft/staged/text_stage.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/speculation/plan.h"

namespace foretoken {
namespace {

// The node that `path` leads to from the root of `proposal`; -1 where it leaves the tree.
int NodeBehind(const Proposal& proposal, std::span<const Token> path) {
  int node = 0;
  for (const Token token : path) {
    node = proposal.ChildWith(node, token);
    if (node == 0) return -1;
  }
  return node;
}

}  // namespace

TextStage::TextStage(std::unique_ptr<Drafter> drafter, bool keeps_nothing, int max_sequences)
    : drafter_(std::move(drafter)), keeps_nothing_(keeps_nothing), said_(max_sequences) {}

TextStage::Said& TextStage::SaidOf(SequenceId sequence) {
  Said* unused = nullptr;
  for (Said& said : said_) {
    if (said.committed > 0 && said.sequence == sequence) return said;
    if (said.committed == 0) unused = &said;
  }
  FT_CHECK(unused != nullptr, "more sequences than the stage was made for");
  unused->sequence = sequence;
  return *unused;
}

void TextStage::Forget(SequenceId sequence) {
  for (Said& said : said_) {
    if (said.sequence == sequence) said = Said{};
  }
  drafter_->Forget(sequence);
}

void TextStage::Propose(std::span<DraftContext> contexts) {
  for (DraftContext& context : contexts) Propose(&context, 0);
}

void TextStage::ProposeBehind(std::span<DraftContext> contexts, std::span<const int> drafted) {
  for (std::size_t i = 0; i < contexts.size(); ++i) Propose(&contexts[i], drafted[i]);
}

void TextStage::Propose(DraftContext* context, int drafted) {
  const std::span<const Token> tokens = context->tokens;
  const std::size_t committed = tokens.size() - drafted;
  Proposal* const chain = context->proposal;
  chain->Clear();
  Said& said = SaidOf(context->sequence);
  DraftContext asked = *context;
  asked.distributions = nullptr;  // What it says is only a guess at what the stage above draws.
  asked.row_prices = {};
  if (said.committed != committed) {
    said.committed = committed;
    said.proposal.Clear();
    asked.tokens = tokens.first(committed);
    asked.lookahead = asked.max_nodes = kDefaultTreeNodes;
    asked.proposal = &said.proposal;
    drafter_->Propose(std::span(&asked, 1));
  }
  int node = NodeBehind(said.proposal, tokens.subspan(committed));
  while (node >= 0 && chain->size() < context->lookahead) {
    node = said.proposal.FirstChild(node);
    if (node == 0) break;
    chain->Extend(said.proposal.tokens[node - 1]);
  }
  if (chain->size() > 0 || drafted == 0 || !keeps_nothing_) return;
  asked.tokens = tokens;
  asked.lookahead = asked.max_nodes = context->lookahead;
  asked.proposal = chain;
  drafter_->Propose(std::span(&asked, 1));
}

}  // namespace foretoken
