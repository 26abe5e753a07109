#include "text/hub/repository/companions.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <utility>

namespace foretoken {
namespace {

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

}  // namespace

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

GgufKind SeemingKindOf(std::string_view path) { return KindOf(path, WordsOf(path), {}); }

}  // namespace foretoken
