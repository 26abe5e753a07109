#include "core/model/reduced_head.h"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/weights/arrange/gathered_rows.h"

namespace foretoken {
namespace {

constexpr const char* kHead = "head.weight";

// The head `to` becomes these rows of the tensor `from`, which may be that head before.
void GatherHead(const std::string& from, const std::string& to, std::vector<Stretch> rows,
                Checkpoint* checkpoint) {
  const std::int64_t count = rows.size();
  TensorView wanted = *checkpoint->Find(from);
  TensorView stored = *checkpoint->InFile(from);
  const TensorView whole = stored;
  Checkpoint::Arrangement arrangement{.pieces = checkpoint->PiecesOf(from), .make = {}};
  const auto before = checkpoint->arranged.find(from);
  if (before == checkpoint->arranged.end()) {
    arrangement.make = [whole, rows = std::move(rows)] { return GatheredRows(whole, rows); };
  } else {
    arrangement.make = [whole, rows = std::move(rows), make = before->second.make] {
      const std::vector<std::byte> made = make();
      TensorView view = whole;
      view.data = made.data();
      return GatheredRows(view, rows);
    };
  }
  for (TensorView* view : {&wanted, &stored}) {
    view->shape.front() = count;
    view->data = nullptr;
  }
  checkpoint->requantized_from.erase(to);
  if (wanted.format != stored.format) checkpoint->requantized_from.emplace(to, stored);
  checkpoint->tensors.insert_or_assign(to, wanted);
  checkpoint->arranged.insert_or_assign(to, std::move(arrangement));
}

}  // namespace

void ReduceHead(std::span<const Token> tokens, ModelConfig* config, Checkpoint* checkpoint) {
  FT_CHECK(!tokens.empty() && config->embeddings() == config->vocabulary);
  std::vector<Stretch> rows;
  rows.reserve(tokens.size());
  for (const Token token : tokens) {
    FT_CHECK(token >= 0 && token < config->vocabulary, "token {}", token);
    rows.push_back({token, 1});
  }
  if (checkpoint != nullptr && config->feature.has_heads()) {
    for (int i = 0; i < config->feature.heads; ++i) {
      for (const char* part : {"weight", "bias"}) {
        const std::string head = fmt::format("heads.{}.logits.{}", i, part);
        if (checkpoint->Find(head) != nullptr) GatherHead(head, head, rows, checkpoint);
      }
    }
  } else if (checkpoint != nullptr) {
    const std::string added = "markov.output.weight";
    if (config->markov.rank > 0) GatherHead(added, added, rows, checkpoint);
    GatherHead(config->tied_embeddings ? "embedding.weight" : kHead, kHead, std::move(rows),
               checkpoint);
  }
  config->embedded = config->vocabulary;
  config->vocabulary = Int(tokens.size());
  config->tied_embeddings = false;
}

}  // namespace foretoken
