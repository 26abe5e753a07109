#include "door/assembly/load_tokenizer.h"

#include <filesystem>

#include "core/weights/gguf/gguf_file.h"
#include "door/assembly/gguf_tokenizer.h"

namespace foretoken {

Result<std::unique_ptr<Tokenizer>> LoadTokenizer(const Checkpoint& checkpoint) {
  return checkpoint.gguf ? TokenizerFromGguf(*checkpoint.gguf, checkpoint.path.string())
                         : LoadTokenizerFolder(checkpoint.path);
}

// A model whose tokenizer alone is wanted need not be one that can run.
Result<std::unique_ptr<Tokenizer>> Tokenizer::Load(const std::filesystem::path& model) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(model, error)) return LoadTokenizerFolder(model);
  FT_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(model));
  return TokenizerFromGguf(file.metadata(), model.string());
}

}  // namespace foretoken
