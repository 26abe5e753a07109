#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "foretoken/saved_prefix.h"

namespace foretoken::server {

/// What is asked of a slot.
struct SlotAction {
  enum class Kind { kSave, kRestore, kErase };
  Kind kind = Kind::kSave;
  int slot = 0;
  std::string filename;  ///< Not of kErase.
};

/// What came of it.
struct SlotOutcome {
  std::int32_t tokens = 0;  ///< Whose keys and values were saved, restored or erased.
  std::uint64_t bytes = 0;  ///< The size of the file.
  double milliseconds = 0;
};

/// Who asks, and the scope of his cached prefixes.
struct SlotUser {
  std::string name;  ///< Empty where there are no keys: all are one.
  std::uint64_t scope = 0;
};

/// The engine that has the texts of the slots.
struct SlotEngine {
  const LanguageModel* model = nullptr;
  Engine* engine = nullptr;
  OnEngineThread on_engine;
};

/// llama.cpp's slots over a prefix cache that has none: each is the name of a text, the one that
/// was decoded there last, whose keys and values can be put into a file of one folder and taken
/// back. Thread-safe; one file is written or read at a time.
class SlotKeeper {
 public:
  SlotKeeper(std::string folder, int slots);

  int slots() const { return texts_.size(); }

  /// Notes a text that has ended, in `slot`; below 0: in the one with the text that it goes on
  /// with, else in the one whose text is the oldest.
  void Note(int slot, CachedText text);
  /// How many tokens the text in a slot has; 0 for none, or somebody else's.
  std::size_t TokensIn(int slot, const SlotUser& user) const;

  /// An error's field is `filename` or `id_slot`. kUnavailable: the same may work later.
  Result<SlotOutcome> Do(const SlotAction& action, const SlotUser& user, const SlotEngine& engine);

 private:
  struct Slot {
    CachedText text;
    std::int64_t noted = 0;  // As notes are counted.
  };

  std::size_t PlaceOf(const CachedText& text) const;
  std::optional<CachedText> TextIn(int slot, const SlotUser& user) const;
  Result<std::string> PathOf(const std::string& filename) const;
  Result<SlotOutcome> Run(const SlotAction& action, const SlotUser& user, const SlotEngine& engine);

  const std::string folder_;
  mutable std::mutex mutex_;
  std::vector<Slot> texts_;
  std::int64_t notes_ = 0;
  std::mutex files_mutex_;
};

}  // namespace foretoken::server
