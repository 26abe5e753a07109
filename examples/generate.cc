// Continues a prompt with a target and a draft model, by the public headers alone:
//   generate TARGET_FOLDER DRAFT_FOLDER "Once upon a time"
#include <cstdio>
#include <utility>

#include "foretoken/engine.h"
#include "foretoken/generate.h"
#include "foretoken/model.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: generate TARGET_FOLDER DRAFT_FOLDER PROMPT\n");
    return 2;
  }
  const auto target = foretoken::LanguageModel::Load({.source = {.path = argv[1]}});
  if (!target.ok()) {
    std::fprintf(stderr, "%s\n", target.error().message.c_str());
    return 1;
  }
  const auto engine = foretoken::Engine::Open(
      *target, {.modes = {foretoken::Mode::kSd}, .draft = {.source = {.path = argv[2]}}});
  if (!engine.ok()) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 1;
  }
  foretoken::Request request;
  request.prompt = (*target)->tokenizer()->Encode(argv[3], /*add_bos=*/true, false);
  request.stop.max_tokens = 64;
  const auto generation = foretoken::Generate(
      **engine, std::move(request), {.on_token = [](foretoken::SequenceId, const auto& token) {
        std::fwrite(token.text.data(), 1, token.text.size(), stdout);
      }});
  if (!generation.ok()) {
    std::fprintf(stderr, "%s\n", generation.error().message.c_str());
    return 1;
  }
  std::printf("\n[%.2f tokens a round]\n", generation->stats.acceptance_length());
  return 0;
}
