// Computes what fuzz_configs.py compares, in one process for thousands of folders. Of each line of
// standard input, "FOLDER CONTEXT TOKEN...", it says on standard output either "computed COUNT",
// and then as many float32 as there are logits of all rows, or "refused SENTENCE".
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "core/backend/cpu/cpu_backend.h"
#include "core/model/families/read_config.h"
#include "core/model/model_testing.h"
#include "core/model/open_checkpoint.h"

namespace {

using foretoken::Result;
using foretoken::Token;

Result<std::vector<float>> LogitsOf(const std::string& folder, int context,
                                    const std::vector<Token>& tokens) {
  FT_ASSIGN_OR_RETURN(const auto checkpoint, foretoken::OpenCheckpoint(folder, ""));
  FT_ASSIGN_OR_RETURN(const auto config, foretoken::ReadModelConfig(checkpoint, context));
  if (config.max_positions < std::ssize(tokens)) {
    return foretoken::InvalidInput("max_position_embeddings is less than the text is long");
  }
  for (const Token token : tokens) {
    if (token >= config.vocabulary) return foretoken::InvalidInput("vocab_size lacks a token");
  }
  const auto backend = foretoken::MakeCpuBackend(*foretoken::AvailableKernels().back(), nullptr,
                                                 foretoken::Precision::kF32);
  FT_ASSIGN_OR_RETURN(const auto weights,
                      foretoken::LoadWeights(checkpoint, config, backend.get()));
  const auto model = weights->MakeModel(backend.get());
  foretoken::SequenceRunner runner(model.get(), static_cast<int>(tokens.size()));
  const float* logits = runner.Append(tokens);
  return std::vector<float>(logits, logits + tokens.size() * config.vocabulary);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string folder;
    int context = 0;
    words >> folder >> context;
    std::vector<Token> tokens;
    for (Token token = 0; words >> token;) tokens.push_back(token);
    const auto logits = LogitsOf(folder, context, tokens);
    if (logits.ok()) {
      std::printf("computed %zu\n", logits->size());
      std::fwrite(logits->data(), sizeof(float), logits->size(), stdout);
    } else {
      std::printf("refused %s\n", logits.error().message.c_str());
    }
    std::fflush(stdout);
  }
  return 0;
}
