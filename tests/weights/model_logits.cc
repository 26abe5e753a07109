// Writes the logits of every row of a text, in float32, to standard output:
// model_logits MODEL WEIGHTS ADAPTER CONTEXT TOKEN...
// Empty WEIGHTS are as they are stored, an empty ADAPTER is none.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/backend/cpu/cpu_backend.h"
#include "core/model/families/read_config.h"
#include "core/model/model_testing.h"
#include "core/model/open_checkpoint.h"

namespace {

using foretoken::Token;

foretoken::Status Write(const char* path, std::string_view weight_type, std::string_view adapter,
                        int context, const std::vector<Token>& tokens) {
  FT_ASSIGN_OR_RETURN(const auto checkpoint, foretoken::OpenCheckpoint(path, weight_type));
  FT_ASSIGN_OR_RETURN(const auto config, foretoken::ReadModelConfig(checkpoint, context));
  const auto backend = foretoken::MakeCpuBackend(*foretoken::AvailableKernels().back(), nullptr,
                                                 foretoken::Precision::kF32);
  FT_ASSIGN_OR_RETURN(const auto weights,
                      foretoken::LoadWeights(checkpoint, config, backend.get()));
  std::shared_ptr<const foretoken::AdapterSet> adapters;
  if (!adapter.empty()) {
    FT_ASSIGN_OR_RETURN(const foretoken::Adapter read, foretoken::ReadAdapter(adapter, config));
    adapters = std::make_shared<const foretoken::AdapterSet>(std::span(&read, 1), backend.get());
  }
  const auto model = weights->MakeModel(backend.get(), adapters);
  foretoken::SequenceRunner runner(model.get(), static_cast<int>(tokens.size()),
                                   {.index = adapter.empty() ? -1 : 0});
  const std::size_t count = tokens.size() * config.vocabulary;
  if (std::fwrite(runner.Append(tokens), sizeof(float), count, stdout) != count) {
    return foretoken::InvalidInput("cannot write to standard output");
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  std::vector<Token> tokens;
  for (int i = 5; i < argc; ++i) tokens.push_back(std::atoi(argv[i]));
  const foretoken::Status status = Write(argv[1], argv[2], argv[3], std::atoi(argv[4]), tokens);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return 1;
}
