#include "core/model/drafters/shared_tables.h"

#include <algorithm>
#include <string>

namespace foretoken {
namespace {

// The tensor `from` of the target becomes `to` of the drafter, which has none of that name.
void Share(const Checkpoint& target, const std::string& from, const std::string& to,
           Checkpoint* draft) {
  const TensorView* tensor = target.Find(from);
  if (tensor == nullptr) return;
  draft->tensors.emplace(to, *tensor);
  draft->names_in_files.emplace(to, target.NameInFile(from));
  if (const auto found = target.arranged.find(from); found != target.arranged.end()) {
    draft->arranged.emplace(to, found->second);
  }
  if (const auto found = target.requantized_from.find(from);
      found != target.requantized_from.end()) {
    draft->requantized_from.emplace(to, found->second);
  }
  for (const auto& file : target.files) {
    if (std::ranges::find(draft->files, file) == draft->files.end()) draft->files.push_back(file);
  }
}

}  // namespace

Status ShareTables(const Checkpoint& target, const ModelConfig& target_config,
                   const ModelConfig& config, Checkpoint* draft) {
  const std::string embedding = "embedding.weight";
  const std::string head = "head.weight";
  const bool all_tokens = config.vocabulary == target_config.vocabulary;
  const bool no_head = all_tokens && draft->Find(head) == nullptr;
  const bool no_embedding = draft->Find(embedding) == nullptr;
  if ((no_head || no_embedding) && config.hidden != target_config.hidden) {
    return Invalid(
        "{}: lacks tensor {}, and the target's has {} numbers for a token, where {} are needed",
        draft->path.string(), draft->NameInFile(no_embedding ? embedding : head),
        target_config.hidden, config.hidden);
  }
  if (no_embedding) Share(target, embedding, embedding, draft);
  if (no_head) Share(target, target_config.tied_embeddings ? embedding : head, head, draft);
  return {};
}

void ShareEmbeddings(const Checkpoint& target, Checkpoint* draft) {
  Share(target, "embedding.weight", "embedding.weight", draft);
}

void ShareOutputNorm(const Checkpoint& target, Checkpoint* draft) {
  Share(target, "output_norm.weight", "output_norm.weight", draft);
}

}  // namespace foretoken
