#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/adapter.h"
#include "foretoken/kv_format.h"
#include "foretoken/precision.h"
#include "foretoken/result.h"
#include "foretoken/tokenizer.h"

namespace foretoken {

class TokenConstraint;
struct LoadedModel;

/// Where the weights of experts are kept: packed in memory; or in the model's file, which is mapped
/// and of which a pass reads those experts that its rows choose, so that a model may be larger than
/// memory. The tokens are the same.
enum class ExpertsPlace { kMemory, kFile };

/// Which of the target's tokens a draft may say. Those that end a text are always among them. Its
/// lm head has their rows alone, so that its passes are shorter; it reads all tokens, and what the
/// target says stays the same.
struct DraftVocabulary {
  /// A file that ranks them, as `foretoken datastore rank` makes; empty: of random weights, which
  /// have no texts, the lowest ids count as the most frequent.
  std::string ranking;
  /// How many of the ranking's first tokens it may say; none: all that it ranks.
  std::optional<int> most = {};

  /// Whether the draft says all that it can.
  bool whole() const { return ranking.empty() && !most; }
};

/// Where a model comes from: a Hugging Face folder, a GGUF file (of a split one the first part), or
/// random weights of a named shape.
struct ModelSource {
  std::string path;       ///< The path of the folder or file.
  std::string synthetic;  ///< "llama-135m", say; used when `path` is empty.
  /// What its weights are converted to as they are loaded: "q8_0", "q4_k_m" ...; empty: nothing.
  std::string weights = {};
  /// How reports call it, where not by its path.
  std::string name = {};
  /// Jinja, in place of the model's own chat template; empty: that one.
  std::string chat_template = {};
  /// Positions that it is used for at most; none: all that it was made for. A model with one
  /// rotation for short texts and another for long ones takes the short one where this is short
  /// enough.
  std::optional<int> context = {};
  /// kFile is for targets with experts, as their files have them: without `weights`.
  ExpertsPlace experts = ExpertsPlace::kMemory;
  /// How it writes calls of functions, by the name of a CallForm; empty: as its template tells.
  std::string call_form = {};
  /// For a draft: what in the model's files drafts for it, in place of the model: "mtp", layers
  /// that guess further tokens, "medusa", heads, "exit=E", its first layers, or "skip=WHICH", all
  /// but some sub-layers; empty: the model or drafter itself.
  std::string own_drafter = {};
  DraftVocabulary draft_vocabulary = {};  ///< The tokens that a draft may say; for drafts only.

  bool empty() const { return path.empty() && synthetic.empty(); }
  /// How reports call it: its name, or the folder's, the file's without ".gguf", or the shape's,
  /// behind a colon what its weights are converted to, and in brackets the tokens that it may say:
  /// how many, or the ranking's name.
  std::string label() const;
};

/// Told how many of a model's bytes have been packed, and of how many: first of none, then between
/// two tensors, at last of all.
using LoadProgress = std::function<void(std::size_t packed, std::size_t all)>;

/// What to load, and where it runs.
struct LoadOptions {
  ModelSource source;
  std::vector<int> cores;  ///< One thread is pinned to each; empty: all that the process may use.
  /// None: kPortable for models with quantised weights, else kBF16.
  std::optional<Precision> precision;
  std::optional<KvFormat> kv;  ///< None: kF32 under kF32, else kBF16.
  LoadProgress progress;       ///< May be null.
  /// The adapters that requests may ask for (Request::adapter).
  std::vector<AdapterSource> adapters = {};
};

/// What is known of a loaded model.
struct ModelFacts {
  std::int64_t parameters = 0;
  int vocabulary = 0;
  int hidden = 0;                ///< Numbers in an embedding.
  int max_context = 0;           ///< Tokens per sequence at most.
  std::size_t weight_bytes = 0;  ///< Read by a pass over one row.
  std::size_t kv_bytes_per_token = 0;
  std::string backend;  ///< "cpu/avx512_bf16", say.
  /// What the model's files have besides and is not used, in a sentence for each part: "the vision
  /// tower (435 tensors, 812.0 MB) is not used: images are refused", say.
  std::vector<std::string> not_used;
};

/// A loaded model: text to tokens and back, grammars for its outputs, and the target of any number
/// of engines. Immutable and thread-safe, apart from the engines that run on its cores: one thread
/// steps these.
class LanguageModel {
 public:
  /// Refuses in one sentence what is no model or not supported.
  static Result<std::shared_ptr<LanguageModel>> Load(const LoadOptions& options);
  ~LanguageModel();

  /// The same weights for other cores; nothing is loaded again.
  std::shared_ptr<LanguageModel> OnCores(std::vector<int> cores) const;

  const ModelSource& source() const { return source_; }
  const ModelFacts& facts() const { return facts_; }
  /// As they were loaded, in the order of LoadOptions::adapters.
  const std::vector<AdapterSource>& adapters() const { return adapters_; }
  /// Null for synthetic models.
  const Tokenizer* tokenizer() const;

  /// What an output must match to be a text of this grammar (GBNF). Used by one engine at a time.
  Result<std::shared_ptr<TokenConstraint>> CompileGrammar(std::string_view grammar) const;

  /// For the layers below.
  LoadedModel& loaded() const { return *loaded_; }

 private:
  LanguageModel(ModelSource source, std::vector<AdapterSource> adapters,
                std::unique_ptr<LoadedModel> loaded);

  ModelSource source_;
  std::vector<AdapterSource> adapters_;
  std::unique_ptr<LoadedModel> loaded_;
  ModelFacts facts_;
};

}  // namespace foretoken
