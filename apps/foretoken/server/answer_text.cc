#include "apps/foretoken/server/answer_text.h"

#include <fmt/core.h>

#include <utility>

namespace foretoken::server {

AnswerText::AnswerText(const Door& door, Admitted admitted, ModelRegistry::Lease service)
    : door_(door),
      service_(std::move(service)),
      admitted_(std::move(admitted)),
      writer_(door.writer(admitted_.request, admitted_.head, &service_->model().tokenizer())) {
  const bool chat = request().kind == ApiKind::kChat;
  for (int i = 0; chat && i < request().choices(); ++i) readers_.emplace_back(admitted_.reading);
}

std::size_t AnswerText::Weight(const std::vector<Burst>& bursts) {
  constexpr std::size_t kOfLogprob = 64;
  constexpr std::size_t kOfFloat = 12;
  const auto weigh = [](const std::vector<TokenPart>& parts) {
    std::size_t logprobs = parts.size();
    for (const TokenPart& part : parts) logprobs += part.logprobs.size();
    return logprobs * kOfLogprob;
  };
  std::size_t bytes = 0;
  for (const Burst& burst : bursts) {
    bytes += burst.text.size() + weigh(burst.prompt) + weigh(burst.tokens) +
             burst.embedding.size() * kOfFloat;
  }
  return bytes;
}

void AnswerText::Add(std::vector<Burst>* bursts, bool last, std::string* out) {
  for (Burst& burst : *bursts) {
    if (!readers_.empty()) ReadParts(&burst);
    if (burst.ending) Count(*burst.ending);
    writer_->Add(std::move(burst), out);
  }
  bursts->clear();
  const bool aborted = admitted_.live->abort_reason() != AbortReason::kNone;
  if (last && !aborted && !stuck() && !failed()) writer_->End(out);
}

void AnswerText::ReadParts(Burst* burst) {
  ChatReader& reader = readers_[static_cast<std::size_t>(burst->choice)];
  reader.Push(burst->text, &burst->parts);
  if (burst->ending) reader.Finish(&burst->parts);
}

void AnswerText::Count(const Ending& ending) {
  const bool embeds = request().embedding.has_value();
  limited_ = limited_ || (!embeds && FinishName(ending.reason) == "length");
  stats_.AddCounts(ending.stats);
  mode_ = ending.mode;
  if (ending.reason == FinishReason::kGrammarStuck) ++stuck_;
  failed_ = failed_ || ending.reason == FinishReason::kNotFinite;
}

std::string AnswerText::Summary() const {
  return fmt::format("model={} tokens={}+{} mode={} accepted={}/{}", admitted_.head.model,
                     stats_.prompt_tokens, stats_.output_tokens, ModeName(mode_), stats_.accepted,
                     stats_.proposed);
}

}  // namespace foretoken::server
