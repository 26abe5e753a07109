#pragma once

#include <cstdint>
#include <string>

#include "foretoken/model.h"
#include "foretoken/result.h"

namespace foretoken {

/// What a model's files say of it. Nothing of it is loaded for that.
struct ModelCard {
  bool gguf = false;         ///< A GGUF file; else a folder of Hugging Face's.
  std::string name;          ///< As its makers call it; empty: they do not say.
  std::string architecture;  ///< As GGUF files call its family: "llama", "qwen3moe".
  std::string stored_as;     ///< How most of its weights are kept: "BF16", "Q4_K_M".
  std::string fingerprint;   ///< Tells models apart: 64 hexadecimal digits.
  std::string license;       ///< Its name or its text; empty: not known.
  std::int64_t parameters = 0;
  int max_context = 0;  ///< Tokens per sequence at most.
  int vocabulary = 0;
  int layers = 0;
  int hidden = 0;
  int intermediate = 0;  ///< The width of the first layer's MLP, or of each of its experts.
  int heads = 0;
  int kv_heads = 0;
  std::string chat_template;  ///< Jinja; empty: none.
  bool calls_tools = false;   ///< Its template writes calls in a form that is known.
  bool thinks = false;        ///< Its template writes thoughts apart from what is said.
  bool fills_gaps = false;    ///< It has the marks for gaps in texts (FillMarks).
  bool embeds = false;        ///< It was made to give embeddings, not to generate.
};

/// Reads the files of a model; an error where they are none.
Result<ModelCard> ReadModelCard(const ModelSource& source);

}  // namespace foretoken
