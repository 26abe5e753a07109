#include "text/hub/repository/choose_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text/parse_number.h"
#include "base/text/printable.h"

namespace foretoken {
namespace {

// What a GGUF file of a repository is, as far as names tell.
enum class GgufKind {
  kModel,
  kDrafter,  //< Drafts for the model beside it: "MTP/mtp-X-Q8_0.gguf", "X-DFlash-Q8_0.gguf".
  kOther     //< A projector of images, a matrix of importance, an adapter, a control vector ...
};

using Words = std::set<std::string, std::less<>>;

constexpr std::string_view kDrafterWords[] = {
    "MTP",    "NEXTN",  "DFLASH", "DSPARK", "DRAFT",      "DRAFTER",  "EAGLE",
    "EAGLE2", "EAGLE3", "MEDUSA", "HYDRA",  "SPECULATOR", "ASSISTANT"};
constexpr std::string_view kOtherWords[] = {"LORA",      "LORAS",    "ADAPTER", "ADAPTERS",
                                            "CVECTOR",   "CONTROL",  "VOCAB",   "VOCODER",
                                            "PROJECTOR", "TOKENIZER"};

// A path's words in capitals, those of its folders among them.
Words WordsOf(std::string_view path) {
  Words words;
  std::string word;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      word += static_cast<char>(std::toupper(byte));
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
  words.insert(word);
  return words;
}

bool HasAny(const Words& words, std::span<const std::string_view> listed, const Words& but) {
  return std::ranges::any_of(
      listed, [&](std::string_view word) { return words.contains(word) && !but.contains(word); });
}

// "Q4", of "Q4_K_M", and its like.
bool BeginsQuantisation(std::string_view word) {
  if (word == "BF16" || word == "F16" || word == "F32") return true;
  if (word.starts_with('I')) word.remove_prefix(1);
  return word.size() >= 2 && word[0] == 'Q' && word[1] >= '1' && word[1] <= '8';
}

// The matrix of importance itself, and no model that was quantised by one and says so.
bool IsImportanceMatrix(std::string_view path, const Words& words) {
  if (!words.contains("IMATRIX")) return false;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  constexpr std::string_view kFront = "imatrix";
  const bool front =
      std::ranges::equal(name.substr(0, kFront.size()), kFront,
                         [](unsigned char a, char b) { return std::tolower(a) == b; });
  return front || std::ranges::none_of(words, BeginsQuantisation);
}

bool IsNeverAModel(std::string_view path, const Words& words) {
  return words.contains("MMPROJ") || IsImportanceMatrix(path, words);
}

// Words that are `shared` by all files tell nothing.
GgufKind KindOf(std::string_view path, const Words& words, const Words& shared) {
  if (IsNeverAModel(path, words) || HasAny(words, kOtherWords, shared)) return GgufKind::kOther;
  return HasAny(words, kDrafterWords, shared) ? GgufKind::kDrafter : GgufKind::kModel;
}

// The kinds of a repository's GGUF files. A word sets a file apart only where others lack it: of a
// repository whose files all have "MTP" in their names, none is a drafter for another. Projectors
// and matrices of importance are never models.
std::vector<GgufKind> KindsOf(std::span<const std::string> paths) {
  std::vector<Words> words;
  Words shared;  // By all that may be models.
  bool first = true;
  for (const std::string& path : paths) {
    words.push_back(WordsOf(path));
    if (IsNeverAModel(path, words.back())) continue;
    if (first) {
      shared = words.back();
    } else {
      std::erase_if(shared, [&](const std::string& word) { return !words.back().contains(word); });
    }
    first = false;
  }
  std::vector<GgufKind> kinds;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    kinds.push_back(KindOf(paths[i], words[i], shared));
  }
  return kinds;
}

// The kind of one of which the others are not in sight: any word may set it apart.
GgufKind SeemingKindOf(std::string_view path) { return KindOf(path, WordsOf(path), {}); }

// What a name without a quantisation means: the first of these that there is. All of them run.
constexpr std::string_view kUsual[] = {"Q4_K_M", "Q8_0", "Q4_0", "Q5_K_M", "Q6_K",
                                       "Q4_K_S", "BF16", "F16",  "F32"};
constexpr std::string_view kConfig = "config.json";
// Forms of a folder's weights, as its reader prefers them: what an index names, else one file.
// Heads of Medusa and Hydra have no index.
struct WeightsForm {
  std::string_view index;
  std::string_view single;
  std::string_view part;  // Before a part's number, and behind it.
  std::string_view end;
};
constexpr WeightsForm kWeightsForms[] = {
    {"model.safetensors.index.json", "model.safetensors", "model", ".safetensors"},
    {"pytorch_model.bin.index.json", "pytorch_model.bin", "pytorch_model", ".bin"},
    {"", "medusa_lm_head.safetensors", "", ""},
    {"", "medusa_lm_head.pt", "", ""},
    {"", "hydra_lm_head.pt", "", ""}};
// What is read beside the weights of a folder, or tells its users about it.
constexpr std::string_view kBesideWeights[] = {kConfig,
                                               "generation_config.json",
                                               "tokenizer.json",
                                               "tokenizer.model",
                                               "vocab.json",
                                               "merges.txt",
                                               "tokenizer_config.json",
                                               "added_tokens.json",
                                               "chat_template.jinja",
                                               "chat_template.json",
                                               "special_tokens_map.json"};

// Chat templates for some uses, as "tool_use", beside the usual one.
bool IsFurtherTemplate(std::string_view path) {
  constexpr std::string_view kFolder = "additional_chat_templates/";
  return path.starts_with(kFolder) && path.ends_with(".jinja") &&
         path.find('/', kFolder.size()) == path.npos;
}

std::string Capitals(std::string_view text) {
  std::string capitals(text);
  std::ranges::transform(capitals, capitals.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return capitals;
}

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// Where a file is part of a split one: "NAME-00002-of-00003.gguf".
struct Split {
  std::string_view name;  // Up to the number.
  int number = 1;
  int count = 1;
};

std::optional<Split> SplitOf(std::string_view path, std::string_view end) {
  constexpr std::size_t kDigits = 5;
  constexpr std::string_view kOf = "-of-";
  constexpr std::size_t kTail = 1 + kDigits + kOf.size() + kDigits;
  if (!path.ends_with(end)) return std::nullopt;
  path.remove_suffix(end.size());
  if (path.size() <= kTail) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kTail);
  const std::string_view number = tail.substr(1, kDigits);
  const std::string_view count = tail.substr(tail.size() - kDigits);
  Split split{path.substr(0, path.size() - kTail)};
  const bool good = tail.front() == '-' && tail.substr(1 + kDigits, kOf.size()) == kOf &&
                    IsDigits(number) && IsDigits(count) && ParseNumber(number, &split.number) &&
                    ParseNumber(count, &split.count) && split.number >= 1 &&
                    split.number <= split.count;
  return good ? std::optional(split) : std::nullopt;
}

// "Q4_K_M", "IQ4_XS", "BF16", "MXFP4_MOE": a letter or more of a format, a digit, and what follows.
bool IsQuantisation(std::string_view capitals) {
  for (const std::string_view format : {"Q", "IQ", "TQ", "BF", "F", "FP", "MXFP", "NVFP"}) {
    if (!capitals.starts_with(format)) continue;
    const std::string_view rest = capitals.substr(format.size());
    const bool known =
        !rest.empty() && std::isdigit(static_cast<unsigned char>(rest[0])) != 0 &&
        std::ranges::all_of(rest, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (known) return true;
  }
  return false;
}

// What of a name in capitals is a quantisation; empty: nothing.
std::string QuantisationIn(const std::string& name) {
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (at > 0 && std::isalnum(static_cast<unsigned char>(name[at - 1])) != 0) continue;
    if (!IsQuantisation(std::string_view(name).substr(at))) continue;
    constexpr std::string_view kDynamic = "UD-";
    const bool dynamic = at >= kDynamic.size() && name.substr(at - 3, 3) == kDynamic;
    return name.substr(dynamic ? at - 3 : at);
  }
  return {};
}

// One model in GGUF files: a file, or all parts of a split one.
struct GgufModel {
  std::string quantisation;
  std::vector<std::string> paths;
  int parts = 1;  // How many parts it should have.
  GgufKind kind = GgufKind::kModel;
};

bool IsGguf(std::string_view path) { return Capitals(FileName(path)).ends_with(".GGUF"); }

std::vector<GgufModel> GgufModels(std::span<const std::string> all) {
  std::vector<std::string> paths;
  std::ranges::copy_if(all, std::back_inserter(paths), IsGguf);
  const std::vector<GgufKind> kinds = KindsOf(paths);
  std::map<std::string, GgufModel, std::less<>> models;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    const std::optional<Split> split = SplitOf(path, ".gguf");
    GgufModel& model = models[split ? fmt::format("{}-of-{}", split->name, split->count) : path];
    model.quantisation = QuantisationOf(path);
    model.parts = split ? split->count : 1;
    model.kind = kinds[i];
    model.paths.push_back(path);
  }
  std::vector<GgufModel> listed;
  for (auto& [key, model] : models) {
    std::ranges::sort(model.paths);
    listed.push_back(std::move(model));
  }
  return listed;
}

std::vector<GgufModel> OfKind(const std::vector<GgufModel>& models, GgufKind kind) {
  std::vector<GgufModel> chosen;
  std::ranges::copy_if(models, std::back_inserter(chosen),
                       [kind](const GgufModel& model) { return model.kind == kind; });
  return chosen;
}

// What is looked for first.
GgufKind KindFor(ModelUse use) {
  return use == ModelUse::kDraft ? GgufKind::kDrafter : GgufKind::kModel;
}

// The models that a name without a file may mean. A repository may be of drafters alone, and a
// draft may be any model.
std::vector<GgufModel> CandidatesFor(ModelUse use, const std::vector<GgufModel>& models) {
  std::vector<GgufModel> first = OfKind(models, KindFor(use));
  if (!first.empty()) return first;
  return OfKind(models, use == ModelUse::kDraft ? GgufKind::kModel : GgufKind::kDrafter);
}

std::string Listed(std::set<std::string> names) {
  constexpr std::size_t kMost = 30;
  const std::size_t more = names.size() > kMost ? names.size() - kMost : 0;
  for (std::size_t i = 0; i < more; ++i) names.erase(std::prev(names.end()));
  return fmt::format("{}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string FilesOf(std::span<const GgufModel> models) {
  std::set<std::string> names;
  for (const GgufModel& model : models) names.insert(Printable(model.paths.front()));
  return Listed(std::move(names));
}

// What may be written behind the colon.
std::string PartsOf(std::span<const GgufModel> models) {
  std::set<std::string> names;
  for (const GgufModel& model : models) {
    names.insert(Printable(model.quantisation.empty() ? model.paths.front() : model.quantisation));
  }
  return Listed(std::move(names));
}

// `certain`: whether a model of that kind and quantisation can be no other one. By the files of a
// cache alone it may be of another kind than it seems: others may lie beside it on the hub.
Result<ModelFiles> Chosen(const GgufModel& model, bool certain, const ModelName& name) {
  if (std::ssize(model.paths) != model.parts) {
    return Invalid("of {} there are {} of the {} parts that '{}' has", name.Text(),
                   model.paths.size(), model.parts, Printable(model.paths.front()));
  }
  const bool of_kind = name.names_file() || SeemingKindOf(model.paths.front()) == KindFor(name.use);
  return ModelFiles{model.paths, model.paths.front(), certain && of_kind};
}

std::vector<GgufModel> Fitting(const std::vector<GgufModel>& models, const ModelName& name) {
  const auto by_file = [&](std::string_view path) {
    return path == name.part || FileName(path) == name.part;
  };
  // ":Q4_K_XL" is enough for "UD-Q4_K_XL" where there is no "Q4_K_XL".
  const std::string wanted = Capitals(name.part);
  std::vector<GgufModel> exact;
  std::vector<GgufModel> ending;
  for (const GgufModel& model : models) {
    const bool named = name.names_file() ? std::ranges::any_of(model.paths, by_file)
                                         : model.quantisation == wanted;
    if (named) exact.push_back(model);
    if (model.quantisation.ends_with("-" + wanted)) ending.push_back(model);
  }
  return exact.empty() && !name.names_file() ? ending : exact;
}

Result<ModelFiles> ChooseNamed(const std::vector<GgufModel>& models, const ModelName& name) {
  const std::vector<GgufModel> candidates =
      name.names_file() ? models : CandidatesFor(name.use, models);
  std::vector<GgufModel> fitting = Fitting(candidates, name);
  // A draft may be an ordinary model, though there are drafters.
  if (fitting.empty() && name.use == ModelUse::kDraft) {
    fitting = Fitting(OfKind(models, GgufKind::kModel), name);
  }
  if (fitting.empty()) {
    return Invalid("{} has no {}{}; it has {}", name.repository, name.names_file() ? "file " : "",
                   Printable(name.part), name.names_file() ? FilesOf(models) : PartsOf(candidates));
  }
  if (fitting.size() > 1) {
    return Invalid("{} could be several files of {}: name one of {} behind the colon",
                   Printable(name.part), name.repository, FilesOf(fitting));
  }
  return Chosen(fitting.front(), /*certain=*/true, name);
}

Result<ModelFiles> ChooseUsual(const std::vector<GgufModel>& models, const ModelName& name) {
  if (models.size() == 1) {
    return Chosen(models.front(), models.front().quantisation == kUsual[0], name);
  }
  for (const std::string_view usual : kUsual) {
    std::vector<GgufModel> fitting;
    std::ranges::copy_if(models, std::back_inserter(fitting),
                         [&](const GgufModel& model) { return model.quantisation == usual; });
    if (fitting.size() == 1) return Chosen(fitting.front(), usual == kUsual[0], name);
    if (fitting.size() > 1) {
      return Invalid("{} has several models: name one of {} behind a colon", name.repository,
                     FilesOf(models));
    }
  }
  return Invalid("{} has none of the usual quantisations: name one of {} behind a colon",
                 name.repository, PartsOf(models));
}

// The weights of a folder; none where it has none.
Result<std::vector<std::string>> FolderWeights(const std::set<std::string_view>& paths,
                                               const ModelName& name) {
  std::vector<std::string> weights;
  const auto* form = std::ranges::find_if(kWeightsForms, [&](const WeightsForm& each) {
    return paths.contains(each.index) || paths.contains(each.single);
  });
  if (form == std::end(kWeightsForms)) return weights;
  if (!paths.contains(form->index)) return std::vector{std::string(form->single)};
  int count = 1;
  for (const std::string_view path : paths) {
    const std::optional<Split> split = SplitOf(path, form->end);
    if (!split || split->name != form->part) continue;
    weights.emplace_back(path);
    count = split->count;
  }
  if (std::ssize(weights) != count) {
    return Invalid("of {} there are {} of the {} files of weights", name.Text(), weights.size(),
                   count);
  }
  weights.emplace_back(form->index);
  return weights;
}

Result<ModelFiles> ChooseFolder(std::span<const std::string> paths, const ModelName& name) {
  const std::set<std::string_view> all(paths.begin(), paths.end());
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> weights, FolderWeights(all, name));
  if (!all.contains(kConfig) || weights.empty()) {
    return Invalid(
        "{} holds no model that runs here: neither GGUF files nor a config.json with weights in "
        "model.safetensors or pytorch_model.bin",
        name.repository);
  }
  if (!name.part.empty()) {
    return Invalid("{} has no GGUF files, among which ':{}' could choose: leave it out",
                   name.repository, Printable(name.part));
  }
  ModelFiles chosen{.certain = true};
  for (const std::string_view path : kBesideWeights) {
    if (all.contains(path)) chosen.paths.emplace_back(path);
  }
  std::ranges::copy_if(paths, std::back_inserter(chosen.paths), IsFurtherTemplate);
  chosen.paths.insert(chosen.paths.end(), weights.begin(), weights.end());
  return chosen;
}

}  // namespace

std::string QuantisationOf(std::string_view path) {
  std::string name = Capitals(FileName(path));
  constexpr std::string_view kEnd = ".GGUF";
  if (const std::optional<Split> split = SplitOf(FileName(path), ".gguf")) {
    name.resize(split->name.size());
  } else if (name.ends_with(kEnd)) {
    name.resize(name.size() - kEnd.size());
  }
  const std::string found = QuantisationIn(name);
  if (!found.empty()) return found;
  // Large models lie in a folder that is called so.
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos) return {};
  const std::string folder = Capitals(FileName(path.substr(0, slash)));
  return QuantisationIn(folder) == folder ? folder : std::string();
}

std::vector<std::string> FilesCalled(std::span<const std::string> paths, const ModelName& name) {
  std::vector<std::string> files;
  const std::vector<GgufModel> models = GgufModels(paths);
  const auto candidates = name.names_file() ? models : CandidatesFor(name.use, models);
  for (const GgufModel& model : Fitting(candidates, name)) {
    files.insert(files.end(), model.paths.begin(), model.paths.end());
  }
  return files;
}

Result<ModelFiles> ChooseFiles(std::span<const std::string> paths, const ModelName& name) {
  const std::vector<GgufModel> models = GgufModels(paths);
  const std::vector<GgufModel> candidates = CandidatesFor(name.use, models);
  if (candidates.empty() && !name.names_file()) return ChooseFolder(paths, name);
  return name.part.empty() ? ChooseUsual(candidates, name) : ChooseNamed(models, name);
}

}  // namespace foretoken
