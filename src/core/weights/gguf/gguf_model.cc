#include "core/weights/gguf/gguf_model.h"

#include "core/weights/gguf/gguf_file.h"

namespace foretoken {

Result<Checkpoint> ReadGgufModel(const std::filesystem::path& path) {
  FT_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  Checkpoint checkpoint{.path = path,
                        .tensors = file.tensors(),
                        .gguf = file.metadata(),
                        .others = file.others(),
                        .files = file.parts()};
  checkpoint.config.where = path.string();
  return checkpoint;
}

}  // namespace foretoken
